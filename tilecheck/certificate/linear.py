"""From formulas to a query in linear integer arithmetic that is satisfiable wherever they are.

Every integer term becomes a sum of products of *atoms*: constants, quotients, minima and whatever else is no
sum or product. Distributing is exact. A product of two or more atoms becomes a fresh constant of which nothing
is said; of the other atoms it is said what defines them (`_divide` and the functions below it). So every
assignment that satisfies the formulas gives one that satisfies the query: "unsat" carries over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilecheck.certificate.terms import CertificateError, Term, Terms

Monomial = tuple[int, ...]
Sum = dict[Monomial, int]
Key = tuple[tuple[Monomial, int], ...]

_TERMS = 3000  # a product with more terms is refused: no certificate that we write has one
_LONG = 160  # conditions longer than this are defined once and then named


def linear_query(terms: Terms, formulas: Sequence[Term]) -> str:
    """The query, as SMT-LIB text. `terms` holds `formulas` and all their parts."""
    encoder = _Encoder()
    for term in terms.made.values():  # arguments come before what is made of them
        if term.is_bool:
            encoder.conditions[term] = encoder.named(encoder.condition(term))
        else:
            encoder.sums[term] = encoder.sum(term)
    return encoder.text([encoder.conditions[f] for f in formulas])


@dataclass
class _Encoder:
    """The query under construction. Mutable: it grows with every term."""

    sums: dict[Term, Sum] = field(default_factory=dict)
    conditions: dict[Term, str] = field(default_factory=dict)
    _lines: list[str] = field(default_factory=list)
    _atoms: dict[object, int] = field(default_factory=dict)
    _products: dict[Monomial, str] = field(default_factory=dict)
    _calls: dict[str, list[tuple[list[Sum], int]]] = field(default_factory=dict)
    _names: int = 0

    def text(self, asserted: Sequence[str]) -> str:
        lines = ["(set-logic QF_LIA)", *self._lines, *(f"(assert {c})" for c in asserted), "(check-sat)"]
        return "\n".join(lines) + "\n"

    # -- integers ------------------------------------------------------------------------------------------

    def sum(self, term: Term) -> Sum:
        args = [self.sums[a] for a in term.args if not a.is_bool]
        match term.op:
            case "number":
                return {(): int(term.label)} if term.label else {}
            case "constant":
                return self._atom(("constant", term.label))
            case "+":
                return _added(*args)
            case "-":
                return _added(args[0], _scaled(args[1], -1)) if len(args) == 2 else _scaled(args[0], -1)
            case "*":
                return _multiplied(args)
            case "floor-div" | "floor-mod":
                return self._divide(args[0], args[1])[term.op == "floor-mod"]
            case "minimum" | "maximum":
                return self._extremum(term.op, args[0], args[1])
            case "ite":
                return self._choice(self.conditions[term.args[0]], args[0], args[1])
            case "call":
                return self._call(str(term.label), args)
            case "bit-and" | "bit-or" | "bit-xor":
                return self._bits(term.op, args[0], args[1])
        raise CertificateError(f"`{term.op}` is no operator of integers")

    def _divide(self, x: Sum, d: Sum) -> tuple[Sum, Sum]:
        """Where 0 < d: x = d*q + r and 0 <= r < d, which define them, so 0 <= q <= x if 0 <= x. Elsewhere they
        are free: that covers every convention."""
        known = ("quotient", _key(x), _key(d)) in self._atoms
        q = self._atom(("quotient", _key(x), _key(d)))
        r = self._atom(("remainder", _key(x), _key(d)))
        if not known:
            zero, size = self._term({}), self._term(d)
            whole = f"(= {self._term(x)} {self._term(_added(_multiplied([d, q]), r))})"
            rest = f"(<= {zero} {self._term(r)}) (< {self._term(r)} {size})"
            bound = f"(and (<= {zero} {self._term(q)}) (<= {self._term(q)} {self._term(x)}))"
            natural = f"(=> (<= {zero} {self._term(x)}) {bound})"
            self._assert(f"(=> (< {zero} {size}) (and {whole} {rest} {natural}))")
        return q, r

    def _extremum(self, op: str, a: Sum, b: Sum) -> Sum:
        """On the right side of both, and equal to one of them."""
        v = self._atom((op, *sorted((_key(a), _key(b)))))
        relation = "<=" if op == "minimum" else ">="
        name, left, right = self._term(v), self._term(a), self._term(b)
        self._assert(f"(and ({relation} {name} {left}) ({relation} {name} {right}))")
        self._assert(f"(or (= {name} {left}) (= {name} {right}))")
        return v

    def _choice(self, condition: str, a: Sum, b: Sum) -> Sum:
        """Equal to the branch that the condition chooses."""
        v = self._atom(("ite", condition, _key(a), _key(b)))
        name = self._term(v)
        self._assert(f"(ite {condition} (= {name} {self._term(a)}) (= {name} {self._term(b)}))")
        return v

    def _call(self, function: str, args: list[Sum]) -> Sum:
        """A value of a function: equal arguments, equal values. Nothing else is known of it."""
        identity = ("call", function, *map(_key, args))
        if identity in self._atoms:
            return self._atom(identity)
        known = self._calls.setdefault(f"{function}/{len(args)}", [])
        v = self._atom(identity)
        (index,) = next(iter(v))
        for others, other in known:
            same = " ".join(f"(= {self._term(a)} {self._term(b)})" for a, b in zip(args, others, strict=True))
            self._assert(f"(=> (and true {same}) (= v{index} v{other}))")
        known.append((args, index))
        return v

    def _bits(self, op: str, a: Sum, b: Sum) -> Sum:
        """A bitwise operation in two's complement: a function of both sides in any order, with these bounds.

        and: the bits of the result are among those of a, so 0 <= a gives 0 <= v <= a whatever b is. or, xor:
        for a, b >= 0, `or` has the bits of both and is at most a + b; `xor` has some of the bits of `or`. With
        `xor` two of a, b, v determine the third.
        """
        first, second = sorted((a, b), key=_key)
        v = self._call(op, [first, second])
        name, left, right = self._term(v), self._term(a), self._term(b)
        natural, total = f"(and (<= 0 {left}) (<= 0 {right}))", self._term(_added(a, b))
        if op == "bit-and":
            for side in (left, right):
                self._assert(f"(=> (<= 0 {side}) (and (<= 0 {name}) (<= {name} {side})))")
        else:
            low = f"(<= {left} {name}) (<= {right} {name})" if op == "bit-or" else f"(<= 0 {name})"
            self._assert(f"(=> {natural} (and {low} (<= {name} {total})))")
        if op == "bit-xor":
            (index,) = next(iter(v))
            for (c, d), other in self._calls[f"{op}/2"][:-1]:
                one = f"(= {self._term(first)} {self._term(c)})"
                two = f"(= {self._term(second)} {self._term(d)})"
                self._assert(f"(=> (and {one} (= v{index} v{other})) {two})")
                self._assert(f"(=> (and {two} (= v{index} v{other})) {one})")
        return v

    # -- conditions ----------------------------------------------------------------------------------------

    def condition(self, term: Term) -> str:
        if term.op in ("true", "false"):
            return term.op
        if term.op == "constant":
            return self._declared(f"b{len(self.conditions)}", "Bool")
        if term.op in ("<", "<=", "="):
            difference = _added(self.sums[term.args[0]], _scaled(self.sums[term.args[1]], -1))
            left = {m: c for m, c in difference.items() if c > 0}
            right = {m: -c for m, c in difference.items() if c < 0}
            return f"({term.op} {self._term(left)} {self._term(right)})"
        return f"({term.op} {' '.join(self.conditions[a] for a in term.args)})"

    def named(self, text: str) -> str:
        """The text, or a name for it if it is long."""
        if len(text) <= _LONG:
            return text
        self._names += 1
        self._lines.append(f"(define-fun f{self._names} () Bool {text})")
        return f"f{self._names}"

    # -- names ---------------------------------------------------------------------------------------------

    def _assert(self, text: str) -> None:
        self._lines.append(f"(assert {text})")

    def _declared(self, name: str, sort: str) -> str:
        self._lines.append(f"(declare-const {name} {sort})")
        return name

    def _atom(self, identity: object) -> Sum:
        if identity not in self._atoms:
            self._atoms[identity] = len(self._atoms)
            self._declared(f"v{self._atoms[identity]}", "Int")
        return {(self._atoms[identity],): 1}

    def _name(self, m: Monomial) -> str:
        if len(m) == 1:
            return f"v{m[0]}"
        if m not in self._products:
            self._products[m] = self._declared(f"p{len(self._products)}", "Int")
        return self._products[m]

    def _term(self, p: Sum) -> str:
        parts = [_times(c, self._name(m)) if m else _numeral(c) for m, c in sorted(p.items())]
        return f"(+ {' '.join(parts)})" if len(parts) > 1 else "".join(parts) or "0"


def _key(p: Sum) -> Key:
    return tuple(sorted(p.items()))


def _added(*sums: Sum) -> Sum:
    total: Sum = {}
    for p in sums:
        for m, c in p.items():
            total[m] = total.get(m, 0) + c
    return {m: c for m, c in total.items() if c}


def _scaled(p: Sum, scale: int) -> Sum:
    return {m: c * scale for m, c in p.items()}


def _multiplied(factors: Sequence[Sum]) -> Sum:
    """The product, distributed."""
    total: Sum = {(): 1}
    for factor in factors:
        if len(total) * len(factor) > _TERMS:
            raise CertificateError("it has a product of long sums")
        product: Sum = {}
        for m, a in total.items():
            for n, b in factor.items():
                both = tuple(sorted(m + n))
                product[both] = product.get(both, 0) + a * b
        total = {m: c for m, c in product.items() if c}
    return total


def _numeral(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


def _times(coefficient: int, name: str) -> str:
    return name if coefficient == 1 else f"(* {_numeral(coefficient)} {name})"
