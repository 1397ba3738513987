"""Canonical forms: every integer expression as a polynomial over shared atoms.

Products of sums are distributed, so expressions that differ only by the laws of addition and multiplication
have one form. What is not a sum or product (a symbol, a quotient, a minimum, ...) is an atom; atoms are
compared by the forms of their arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilecheck.ir.expr import Expr, Symbol, children, floordiv, mod, sym, symbols
from tilecheck.proof.algebra.linear import meaning, postorder
from tilecheck.proof.algebra.memo import Answers
from tilecheck.proof.algebra.polynomial import (
    ZERO,
    Key,
    Polynomial,
    atom,
    combine,
    constant,
    key,
    literal,
    single,
    split_multiples,
    times,
)

_TERMS = 48  # a product with more terms stays whole, as an atom


@dataclass(frozen=True, slots=True)
class Atom:
    """What is not a sum or product: `op` of `args`. `symbols` are those that its value depends on; `condition`
    is what a conditional asks for."""

    op: str
    args: tuple[Polynomial, ...]
    symbols: tuple[Symbol, ...]
    condition: Expr | None = None


@dataclass
class Forms:
    """A numbering of atoms and the forms found so far. Mutable: it grows with every new expression."""

    atoms: list[Atom] = field(default_factory=list)
    _numbers: dict[object, int] = field(default_factory=dict)
    _forms: dict[Expr, Polynomial] = field(default_factory=dict)
    # Divisors that are known to be positive, of which other numbers are known to be multiples.
    _whole: set[Key] = field(default_factory=set)
    _meant: tuple[tuple[int, int], dict[int, Expr]] = ((0, 0), {})  # for so many forms and atoms
    answers: Answers = field(default_factory=Answers)  # shared by all copies
    number: int = 0  # says which atoms there are, and in which order: see `Answers`

    def copy(self) -> Forms:
        return Forms(
            list(self.atoms),
            dict(self._numbers),
            dict(self._forms),
            set(self._whole),
            answers=self.answers,
            number=self.number,
        )

    def __contains__(self, e: Expr) -> bool:
        return e in self._forms

    def identify(self, symbol: Expr, same: Expr) -> None:
        """From now on write `same` for a symbol that has not occurred yet, and that equals it."""
        self._forms[symbol] = self.of(same)

    def divide_by(self, divisor: Expr) -> None:
        """From now on write d*y + r divided by this d as y and r divided by it: d is known to be at least 1."""
        self._whole.add(key(self.of(divisor)))

    def of(self, e: Expr) -> Polynomial:
        found = self._forms.get(e)
        if found is None:
            for node in postorder([e], self._forms):
                if not node.is_bool:
                    self._forms[node] = self._form(node)
            found = self._forms[e]
        return found

    def difference(self, a: Expr, b: Expr) -> Polynomial:
        return combine(self.of(a), self.of(b), -1)

    def meanings(self) -> dict[int, Expr]:
        """What each atom stands for."""
        grown = len(self._forms), len(self.atoms)
        if self._meant[0] != grown:
            self._meant = grown, self._meanings()
        return self._meant[1]

    def _meanings(self) -> dict[int, Expr]:
        found: dict[int, Expr] = {}
        for e, p in self._forms.items():
            index = single(p)
            if index is not None and (e.op not in ("add", "mul") or self.atoms[index].op == "mul"):
                found.setdefault(index, e)
        for index, a in enumerate(self.atoms):  # arguments have lower numbers
            if index not in found and a.op == "sym":  # what is written as a product elsewhere
                found[index] = sym(a.symbols[0])
            elif index not in found:  # a division of a dividend without its multiples of the divisor
                x, d = (meaning(p, found) for p in a.args)
                found[index] = floordiv(x, d) if a.op == "floordiv" else mod(x, d)
        return found

    def _form(self, e: Expr) -> Polynomial:
        args = [self._forms[x] for x in children(e) if not x.is_bool]
        match e.op:
            case "const":
                return constant(e.args[0])
            case "add":
                total = ZERO
                for term in args:
                    total = combine(total, term)
                return total
            case "mul":
                return self._product(e, args)
            case "floordiv" | "mod":
                return self._division(e.op, args[0], args[1])
            case "min" | "max":
                return self._symmetric(e.op, args)
            case "bit":
                return self._symmetric(f"bit {e.args[0]}", args)
            case "read":
                return self._atom(f"read {e.args[0]}", args)
            case "ite":
                return self._atom("ite", args, e.args[0], symbols(e.args[0]))
            case "sym":
                return self._atom("sym", (), e.args[0], (e.args[0],))
            case _:
                raise ValueError(f"not an integer expression: {e.op}")

    def _product(self, e: Expr, args: list[Polynomial]) -> Polynomial:
        product = args[0]
        for factor in args[1:]:
            if len(product) * len(factor) > _TERMS:
                return self._atom("mul", (), e, symbols(e))
            product = times(product, factor)
        return product

    def _division(self, op: str, x: Polynomial, d: Polynomial) -> Polynomial:
        """With a literal d > 0, x = d*a + b gives x // d = a + b // d and x % d = b % d."""
        size = literal(d)
        if size is None and key(d) in self._whole:
            return self._part(op, x, d)
        if size is None or size <= 0:
            return self._atom(op, (x, d))
        whole = {m: c // size for m, c in x.items() if c // size}
        rest = {m: c % size for m, c in x.items() if c % size}
        left = literal(rest)
        if op == "mod":
            return self._atom(op, (rest, d)) if left is None else rest
        return whole if left is not None else combine(whole, self._atom(op, (rest, d)))

    def _part(self, op: str, x: Polynomial, d: Polynomial) -> Polynomial:
        """The same for a name or product d >= 1 and a that is more than a literal: (i * n * d + d - 1) // d is
        i * n, the number of blocks in i parts of n whole ones."""
        multiples, _ = split_multiples(x, d)
        whole = {m: c for m, c in multiples.items() if m}
        rest = combine(x, times(whole, d), -1)
        last = combine(d, constant(-1))
        if op == "mod":
            return rest if not rest or rest == last else self._atom(op, (rest, d))
        return whole if not rest or rest == last else combine(whole, self._atom(op, (rest, d)))

    def _symmetric(self, op: str, args: list[Polynomial]) -> Polynomial:
        return self._atom(op, sorted(args, key=key))

    def _atom(
        self, op: str, args: Sequence[Polynomial], what: object = None, own: tuple[Symbol, ...] = ()
    ) -> Polynomial:
        identity = (op, what, tuple(map(key, args)))
        number = self._numbers.get(identity)
        if number is None:
            number = self._numbers[identity] = len(self.atoms)
            self.number = self.answers.after(self.number, identity)
            inner = (s for p in args for m in p for a in m for s in self.atoms[a].symbols)
            condition = what if op == "ite" and isinstance(what, Expr) else None
            self.atoms.append(Atom(op, tuple(args), tuple(dict.fromkeys((*own, *inner))), condition))
        return atom(number)
