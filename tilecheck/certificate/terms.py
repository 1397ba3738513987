"""Terms of integer arithmetic: each is made once, after its arguments, and has its sort checked."""

from __future__ import annotations

from dataclasses import dataclass, field


class CertificateError(Exception):
    """A certificate that cannot be accepted; the message says why, in words for its user."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """`op` applied to `args`. `label` is the value of a number, or the name of a constant or function."""

    op: str
    args: tuple[Term, ...]
    label: int | str
    is_bool: bool


_I, _B = False, True
# The sorts of arguments (the last repeats where more are allowed) and of the result; the fewest arguments.
_SIGNATURES: dict[str, tuple[tuple[bool, ...], bool, int, int | None]] = {
    "+": ((_I,), _I, 1, None),
    "-": ((_I,), _I, 1, 2),
    "*": ((_I,), _I, 2, None),
    "floor-div": ((_I,), _I, 2, 2),
    "floor-mod": ((_I,), _I, 2, 2),
    "minimum": ((_I,), _I, 2, 2),
    "maximum": ((_I,), _I, 2, 2),
    "bit-and": ((_I,), _I, 2, 2),
    "bit-or": ((_I,), _I, 2, 2),
    "bit-xor": ((_I,), _I, 2, 2),
    "ite": ((_B, _I), _I, 3, 3),
    "<": ((_I,), _B, 2, 2),
    "<=": ((_I,), _B, 2, 2),
    "=": ((_I,), _B, 2, 2),
    "not": ((_B,), _B, 1, 1),
    "and": ((_B,), _B, 1, None),
    "or": ((_B,), _B, 1, None),
    "=>": ((_B,), _B, 2, 2),
}
OPERATORS = frozenset(_SIGNATURES)


@dataclass
class Terms:
    """All terms of one certificate, arguments before what is made of them. Mutable: it grows."""

    made: dict[tuple[str, int | str, bool, tuple[int, ...]], Term] = field(default_factory=dict)

    def number(self, value: int) -> Term:
        return self._make("number", (), value, is_bool=False)

    def truth(self, value: bool) -> Term:
        return self._make("true" if value else "false", (), "", is_bool=True)

    def constant(self, name: str, *, is_bool: bool) -> Term:
        return self._make("constant", (), name, is_bool=is_bool)

    def call(self, function: str, *args: Term) -> Term:
        """The value of a declared function, which nothing is known of but that it is one."""
        _demand(not any(a.is_bool for a in args), f"a condition as an argument of `{function}`")
        return self._make("call", args, function, is_bool=False)

    def of(self, op: str, *args: Term) -> Term:
        """An operator applied to arguments of its sorts."""
        sorts, result, fewest, most = _SIGNATURES[op]
        fits = fewest <= len(args) and (most is None or len(args) <= most)
        _demand(fits, f"`{op}` with {len(args)} arguments")
        wanted = (*sorts, *[sorts[-1]] * len(args))
        for argument, is_bool in zip(args, wanted, strict=False):
            _demand(argument.is_bool is is_bool, f"an argument of the wrong sort in `{op}`")
        return self._make(op, args, "", is_bool=result)

    def _make(self, op: str, args: tuple[Term, ...], label: int | str, *, is_bool: bool) -> Term:
        key = (op, label, is_bool, tuple(map(id, args)))  # arguments live in the table, so ids are theirs
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = Term(op, args, label, is_bool)
        return found


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise CertificateError(f"it has {what}")
