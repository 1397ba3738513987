"""Assertions in, SMT-LIB text in linear integer arithmetic out.

A product of unknowns becomes a fresh integer constant, a quotient or remainder a fresh constant tied to its
dividend, and so on: every model of the assertions extends to a model of the text, so "unsat" for the text is
"unsat" for the assertions. What the fresh constants lose is given back as instances of valid lemmas
(`lemmas`). Names are numbered in the order of traversal, so the text depends on the assertions alone.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field, replace

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr, Symbol, add, bool_sym, children, floordiv, mod, mul, rebuild, sym
from tilecheck.proof.algebra.polynomial import (
    ZERO,
    Key,
    Monomial,
    Polynomial,
    atom,
    combine,
    constant,
    key,
    literal,
    single,
    times,
)

_LONG = 240  # formula text longer than this gets a name, so that a shared condition is written once


@dataclass(frozen=True, slots=True)
class Definition:
    """`atom = value`, wherever the text `guard` holds (always, when it is None)."""

    value: Polynomial
    guard: str | None


# A lemma as a certificate names it: a schema of `certificate.schemas` and the integers it is about.
Instance = tuple[str, tuple[Polynomial, ...]]


@dataclass
class Linear:
    """The text under construction. Mutable: encoding and lemmas append to it.

    Integer unknowns ("atoms") are numbered and written `v0`, `v1`, ...; a monomial of two or more atoms is
    written `p0`, `p1`, ... and a boolean unknown `b0`, `b1`, ... .
    """

    symbols: dict[Symbol, str] = field(default_factory=dict)
    reads: dict[Expr, int] = field(default_factory=dict)
    products: dict[Monomial, str] = field(default_factory=dict)
    definitions: dict[int, Definition] = field(default_factory=dict)
    choices: dict[int, tuple[Polynomial, Polynomial]] = field(default_factory=dict)
    compared: list[Polynomial] = field(default_factory=list)
    clauses: list[str] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    _atoms: int = 0
    _booleans: int = 0
    _integer: dict[Expr, Polynomial] = field(default_factory=dict)
    _boolean: dict[Expr, str] = field(default_factory=dict)
    _units: dict[Key, int] = field(default_factory=dict)
    _quotients: dict[tuple[Key, Key], tuple[int, int]] = field(default_factory=dict)
    _extrema: dict[tuple[str, Key, Key], int] = field(default_factory=dict)
    _cells: dict[str, dict[tuple[Key, ...], int]] = field(default_factory=dict)
    _bits: dict[str, dict[tuple[Key, Key], int]] = field(default_factory=dict)

    # -- building ------------------------------------------------------------------------------------------

    def assert_all(self, assertions: Sequence[Expr]) -> None:
        for node in postorder(assertions):
            if node.is_bool:
                self._boolean[node] = self._shortened(self._formula(node))
            else:
                self._integer[node] = self._polynomial(node)
        self.clauses += [self._boolean[a] for a in assertions]

    def text(self, *, exact: bool = False) -> str:
        """The whole query; with `exact`, the fresh constants of products are defined by multiplication."""
        lines = [f"(declare-const v{i} Int)" for i in range(self._atoms)]
        lines += [f"(declare-const {name} Int)" for name in self.products.values()]
        lines += [f"(declare-const b{i} Bool)" for i in range(self._booleans)]
        lines += [f"(assert {clause})" for clause in self.clauses]
        if exact:
            for m, name in self.products.items():
                lines.append(f"(assert (= {name} (* {' '.join(f'v{i}' for i in m)})))")
        return "\n".join(lines)

    def described(self, *, exact: bool = False) -> str:
        """The whole query after comments that say what its constants stand for."""
        names = [(name, s.name, s.instance) for s, name in self.symbols.items()]
        said = [f"; {name} = {of}{f' of instance {n}' if n else ''}" for name, of, n in names]
        return "\n".join([*said, self.text(exact=exact)])

    def fresh(self) -> int:
        self._atoms += 1
        return self._atoms - 1

    def name(self, m: Monomial) -> str:
        """The constant that stands for a monomial; declares it when it is a new product."""
        if len(m) == 1:
            return f"v{m[0]}"
        if not m:
            return "1"
        found = self.products.get(m)
        if found is None:
            found = self.products[m] = f"p{len(self.products)}"
        return found

    def term(self, p: Polynomial) -> str:
        parts = [_scaled(c, self.name(m)) if m else numeral(c) for m, c in p.items()]
        if not parts:
            return "0"
        return parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"

    def polynomials(self) -> list[Polynomial]:
        """What is known to be compared with zero: the comparisons, and `x - d*q - r` of each division."""
        found = list(self.compared)
        for (dividend, divisor), (q, r) in self._quotients.items():
            whole = combine(self.product(dict(divisor), atom(q)), atom(r))
            found.append(combine(dict(dividend), whole, -1))
        return found

    def note(self, schema: str, *about: Polynomial) -> None:
        """Remember the lemma that a clause states, for a certificate."""
        self.instances.append((schema, about))

    def meanings(self) -> dict[int, Expr]:
        """What each atom stands for."""
        found = {int(name[1:]): sym(s) for s, name in self.symbols.items() if name.startswith("v")}
        for e, p in self._integer.items():
            index = single(p)
            if index is not None and e.op not in ("add", "mul"):
                found.setdefault(index, e)
                if e.op in ("floordiv", "mod"):
                    q, r = self._quotients[key(self._integer[e.args[0]]), key(self._integer[e.args[1]])]
                    found.setdefault(q, floordiv(*e.args))
                    found.setdefault(r, mod(*e.args))
        for k, unit in self._units.items():  # their parts have lower numbers
            found[unit] = meaning(dict(k), found)
        return found

    # -- integers ------------------------------------------------------------------------------------------

    def _polynomial(self, e: Expr) -> Polynomial:
        args = [self._integer[x] for x in children(e) if not x.is_bool]
        match e.op:
            case "const":
                return constant(e.args[0])
            case "sym":
                return self._symbol(e.args[0])
            case "add":
                total = ZERO
                for term in args:
                    total = combine(total, term)
                return total
            case "mul":
                product = args[0]
                for factor in args[1:]:
                    product = self.product(product, factor)
                return product
            case "floordiv" | "mod":
                return atom(self._divide(args[0], args[1])[e.op == "mod"])
            case "min" | "max":
                return self._extremum(e.op, args[0], args[1])
            case "ite":
                return self._choice(self._boolean[e.args[0]], args[0], args[1])
            case "read":
                return self._read(e, args)
            case "bit":
                return self._bitwise(e.args[0], args[0], args[1])
            case _:
                raise ValueError(f"not an integer expression: {e.op}")

    def _symbol(self, symbol: Symbol) -> Polynomial:
        index = self.fresh()
        self.symbols[symbol] = f"v{index}"
        return atom(index)

    def product(self, p: Polynomial, q: Polynomial) -> Polynomial:
        """p * q. A sum that is multiplied by an unknown is first given a name ("unit"): distributing it
        would tear apart the `u` of `u * stride`, which the mask `u < M` speaks of."""
        if literal(p) is not None or literal(q) is not None:
            return times(p, q)
        return times(self._unit(p), self._unit(q))

    def _unit(self, p: Polynomial) -> Polynomial:
        if len(p) == 1:
            return p
        k = key(p)
        if k not in self._units:
            index = self._units[k] = self.fresh()
            self.definitions[index] = Definition(p, None)
            self.clauses.append(f"(= v{index} {self.term(p)})")
        return atom(self._units[k])

    def _divide(self, x: Polynomial, d: Polynomial) -> tuple[int, int]:
        """Quotient and remainder: x = d*q + r and 0 <= r < d where 0 < d. Elsewhere both are free, which
        covers whatever the language makes of such a division."""
        k = key(x), key(d)
        if k in self._quotients:
            return self._quotients[k]
        q, r = self._quotients[k] = self.fresh(), self.fresh()
        whole = combine(self.product(d, atom(q)), atom(r))
        divisor, dividend = self.term(d), self.term(x)
        meaning = f"(and (= {dividend} {self.term(whole)}) (<= 0 v{r}) (< v{r} {divisor}))"
        size = literal(d)
        guard = None if size is not None and size > 0 else f"(< 0 {divisor})"
        self.clauses.append(_implies(guard, meaning))
        self.clauses.append(_implies(guard, f"(=> (<= 0 {dividend}) (and (<= 0 v{q}) (<= v{q} {dividend})))"))
        name = single(x)
        if name is not None and name not in self.definitions:
            self.definitions[name] = Definition(whole, guard)
        return q, r

    def _extremum(self, op: str, a: Polynomial, b: Polynomial) -> Polynomial:
        first, second = sorted((key(a), key(b)))
        k = op, first, second
        if k not in self._extrema:
            v = self._extrema[k] = self.fresh()
            relation, left, right = ("<=" if op == "min" else ">="), self.term(a), self.term(b)
            self.clauses += [f"({relation} v{v} {left})", f"({relation} v{v} {right})"]
            self.clauses.append(f"(or (= v{v} {left}) (= v{v} {right}))")
            self.choices[v] = (a, b)
        return atom(self._extrema[k])

    def _choice(self, condition: str, a: Polynomial, b: Polynomial) -> Polynomial:
        v = self.fresh()
        self.clauses.append(f"(ite {condition} (= v{v} {self.term(a)}) (= v{v} {self.term(b)}))")
        self.choices[v] = (a, b)
        return atom(v)

    def _read(self, e: Expr, indices: list[Polynomial]) -> Polynomial:
        """A cell of unchanging memory: equal indices give equal values (Ackermann)."""
        table = self._cells.setdefault(f"{e.args[0]}/{len(indices)}", {})
        cell = tuple(key(p) for p in indices)
        if cell not in table:
            v = self.fresh()
            for other, value in table.items():
                same = [self._equal(dict(a), dict(b)) for a, b in zip(cell, other, strict=True)]
                self.clauses.append(f"(=> {_conjunction(same)} (= v{v} v{value}))")
            table[cell] = v
        self.reads[e] = table[cell]
        return atom(table[cell])

    def _bitwise(self, kind: str, a: Polynomial, b: Polynomial) -> Polynomial:
        """A bitwise operation: what holds of it in two's complement of any width, and congruence."""
        table = self._bits.setdefault(kind, {})
        first, second = sorted((key(a), key(b)))
        if (first, second) in table:
            return atom(table[first, second])
        v = self.fresh()
        self.clauses += _bit_facts(kind, f"v{v}", self.term(a), self.term(b))
        for (x, y), w in table.items():
            left, right = self._equal(dict(first), dict(x)), self._equal(dict(second), dict(y))
            self.clauses.append(f"(=> (and {left} {right}) (= v{v} v{w}))")
            if kind == "xor":  # a ^ b = c determines each of a, b, c from the other two
                self.clauses.append(f"(=> (and {left} (= v{v} v{w})) {right})")
                self.clauses.append(f"(=> (and {right} (= v{v} v{w})) {left})")
        table[first, second] = v
        return atom(v)

    # -- booleans ------------------------------------------------------------------------------------------

    def _formula(self, e: Expr) -> str:
        match e.op:
            case "true" | "false":
                return e.op
            case "bsym":
                return self._boolean_symbol(e.args[0])
            case "lt" | "le" | "eq":
                return self._comparison(e.op, self._integer[e.args[0]], self._integer[e.args[1]])
            case "not":
                return f"(not {self._boolean[e.args[0]]})"
            case "all" | "any":
                return f"({'and' if e.op == 'all' else 'or'} {' '.join(self._boolean[x] for x in e.args)})"
            case _:
                raise ValueError(f"not a boolean expression: {e.op}")

    def _boolean_symbol(self, symbol: Symbol) -> str:
        name = self._fresh_boolean()
        self.symbols[symbol] = name
        return name

    def _fresh_boolean(self) -> str:
        self._booleans += 1
        return f"b{self._booleans - 1}"

    def _comparison(self, op: str, a: Polynomial, b: Polynomial) -> str:
        difference = combine(a, b, -1)
        self.compared.append(difference)
        left = {m: c for m, c in difference.items() if c > 0}
        right = {m: -c for m, c in difference.items() if c < 0}
        relation = {"lt": "<", "le": "<=", "eq": "="}[op]
        return f"({relation} {self.term(left)} {self.term(right)})"

    def _equal(self, a: Polynomial, b: Polynomial) -> str:
        return f"(= {self.term(a)} {self.term(b)})"

    def _shortened(self, text: str) -> str:
        if len(text) <= _LONG:
            return text
        name = self._fresh_boolean()
        self.clauses.append(f"(= {name} {text})")
        return name

    # -- the two instances ---------------------------------------------------------------------------------

    def twins(self) -> dict[int, int]:
        """Pairs of atoms that are the same expression seen by the two blocks. Only a choice of where to
        instantiate lemmas: the lemmas hold for any pair."""
        memo: dict[Expr, Expr] = {}
        paired: dict[int, int] = {}
        for e, p in self._integer.items():
            other = rebuild(e, _swapped, memo)
            if other is e or other not in self._integer:
                continue
            self._pair(paired, single(p), single(self._integer[other]))
        for (x, d), (q, r) in self._quotients.items():
            found = self._quotients.get((_mapped(x, paired), _mapped(d, paired)))
            if found is not None:
                self._pair(paired, q, found[0])
                self._pair(paired, r, found[1])
        for k, unit in self._units.items():
            self._pair(paired, unit, self._units.get(_mapped(k, paired)))
        return paired

    def _pair(self, paired: dict[int, int], a: int | None, b: int | None) -> None:
        if a is not None and b is not None and a != b:
            paired[a], paired[b] = b, a


def meaning(p: Polynomial, atoms: Mapping[int, Expr]) -> Expr:
    """A polynomial as an expression, given what its atoms stand for."""
    return add(0, *(mul(c, *(atoms[a] for a in m)) for m, c in sorted(p.items())))


def _mapped(k: Key, paired: dict[int, int]) -> Key:
    return tuple(sorted((tuple(sorted(paired.get(a, a) for a in m)), c) for m, c in k))


def _swapped(e: Expr) -> Expr | None:
    if e.op not in ("sym", "bsym"):
        return None
    symbol: Symbol = e.args[0]
    if not symbol.instance:
        return e
    bound = symbol.bound if symbol.bound is None else rebuild(symbol.bound, _swapped)
    other = replace(symbol, instance=3 - symbol.instance, bound=bound)
    return sym(other) if e.op == "sym" else bool_sym(other)


def postorder(roots: Sequence[Expr], known: Container[Expr] = ()) -> Iterator[Expr]:
    """Every node that is not `known` once, children before parents. Iterative: expressions may be deep."""
    done: set[Expr] = set()
    for root in roots:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in done or node in known:
                stack.pop()
                continue
            todo = [c for c in children(node) if c not in done and c not in known]
            if todo:
                stack += todo[::-1]
                continue
            stack.pop()
            done.add(node)
            yield node


def numeral(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


def _scaled(coefficient: int, name: str) -> str:
    return name if coefficient == 1 else f"(* {numeral(coefficient)} {name})"


def _conjunction(parts: Sequence[str]) -> str:
    if not parts:
        return "true"
    return parts[0] if len(parts) == 1 else f"(and {' '.join(parts)})"


def _implies(guard: str | None, text: str) -> str:
    return text if guard is None else f"(=> {guard} {text})"


def _bit_facts(kind: str, v: str, a: str, b: str) -> list[str]:
    """Facts of `v = a <kind> b` over integers in two's complement.

    and: a non-negative operand bounds the result, whatever the sign of the other (its bits select some of
    the operand's). or: for non-negative operands every bit of either is in the result, and together they are
    at most the sum. xor: the bits of the result are among those of `or`.
    """
    natural = f"(and (<= 0 {a}) (<= 0 {b}))"
    if kind == "and":
        return [f"(=> (<= 0 {x}) (and (<= 0 {v}) (<= {v} {x})))" for x in (a, b)]
    if kind == "or":
        return [f"(=> {natural} (and (<= {a} {v}) (<= {b} {v}) (<= {v} (+ {a} {b}))))"]
    return [f"(=> {natural} (and (<= 0 {v}) (<= {v} (+ {a} {b}))))"]
