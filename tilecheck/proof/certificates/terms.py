"""Expressions as the text of a certificate: SMT-LIB over the operators that `certificate.reader` defines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from tilecheck.certificate.reader import END, PRELUDE
from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr, Symbol, children
from tilecheck.proof.algebra.linear import postorder

_OPERATORS = {
    "add": "+",
    "mul": "*",
    "floordiv": "floor-div",
    "mod": "floor-mod",
    "min": "minimum",
    "max": "maximum",
    "lt": "<",
    "le": "<=",
    "eq": "=",
    "all": "and",
    "any": "or",
}
_LONG = 60  # terms longer than this that occur again get a name


@dataclass(frozen=True, slots=True)
class Lemma:
    """An instance of a schema of `certificate.schemas`."""

    schema: str
    about: tuple[Expr, ...]


def certificate_text(assertions: Sequence[Expr], lemmas: Sequence[Lemma], comments: Sequence[str]) -> str:
    """The whole file."""
    writer = _Writer()
    roots = [*assertions, *(e for lemma in lemmas for e in lemma.about)]
    writer.count(roots)
    for node in postorder(roots):
        writer.write(node)
    asserted = [f"(assert {writer.texts[a]})" for a in assertions]
    stated = [f"(set-info :lemma ({x.schema} {' '.join(writer.texts[e] for e in x.about)}))" for x in lemmas]
    heading = [f"; {_clean(comment)}" for comment in comments]
    return PRELUDE + "\n".join([*heading, *writer.lines, *asserted, *stated, END])


@dataclass
class _Writer:
    """The text of each node. Mutable: declarations and names are added as they are met."""

    lines: list[str] = field(default_factory=list)
    texts: dict[Expr, str] = field(default_factory=dict)
    _uses: dict[Expr, int] = field(default_factory=dict)
    _names: dict[str, int] = field(default_factory=dict)
    _functions: dict[str, str] = field(default_factory=dict)

    def count(self, roots: Sequence[Expr]) -> None:
        for root in roots:
            self._uses[root] = self._uses.get(root, 0) + 1
        for node in postorder(roots):
            for child in children(node):
                self._uses[child] = self._uses.get(child, 0) + 1

    def write(self, node: Expr) -> None:
        text = self._text(node)
        if len(text) > _LONG and self._uses[node] > 1:
            name = self._unused("t")
            self.lines.append(f"(define-fun {name} () {'Bool' if node.is_bool else 'Int'} {text})")
            text = name
        self.texts[node] = text

    def _text(self, e: Expr) -> str:
        args = [self.texts[x] for x in children(e)]
        match e.op:
            case "const":
                return numeral(e.args[0])
            case "sym" | "bsym":
                return self._symbol(e.args[0], "Bool" if e.is_bool else "Int")
            case "true" | "false":
                return e.op
            case "read":
                return f"({self._function(e.args[0], len(args))} {' '.join(args)})"
            case "bit":
                return f"(bit-{e.args[0]} {' '.join(args)})"
            case _:
                return f"({_OPERATORS.get(e.op, e.op)} {' '.join(args)})"

    def _symbol(self, symbol: Symbol, sort: str) -> str:
        seen_by = f" of {symbol.instance}" if symbol.instance else ""
        name = self._unused(f"{symbol.name}{seen_by}")
        self.lines.append(f"(declare-const {name} {sort})")
        return name

    def _function(self, array: str, rank: int) -> str:
        known = f"{array}/{rank}"
        if known not in self._functions:
            self._functions[known] = self._unused(f"{array}[]")
            self.lines.append(f"(declare-fun {self._functions[known]} ({' '.join(['Int'] * rank)}) Int)")
        return self._functions[known]

    def _unused(self, wanted: str) -> str:
        """A name that no other has, quoted so that it may contain anything."""
        clean = _clean(wanted).replace("|", "_").replace("\\", "_")
        self._names[clean] = self._names.get(clean, 0) + 1
        number = self._names[clean]
        return f"|{clean}|" if number == 1 else f"|{clean} ({number})|"


def _clean(text: str) -> str:
    return "".join(c if c.isascii() and c.isprintable() else "_" for c in text)


def numeral(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"
