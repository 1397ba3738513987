"""Reads the text of a certificate: a small part of SMT-LIB, and nothing outside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tilecheck.certificate.schemas import statement
from tilecheck.certificate.terms import OPERATORS, CertificateError, Term, Terms

# What the operators mean, for a solver that reads the file as it stands. Division rounds down; SMT-LIB's `div`
# does so for positive divisors. The checker knows these operators itself and only compares this text.
PRELUDE = """\
(set-logic ALL)
(define-fun floor-div ((x Int) (d Int)) Int (ite (< 0 d) (div x d) (div (- x) (- d))))
(define-fun floor-mod ((x Int) (d Int)) Int (- x (* d (floor-div x d))))
(define-fun minimum ((a Int) (b Int)) Int (ite (<= a b) a b))
(define-fun maximum ((a Int) (b Int)) Int (ite (<= a b) b a))
(declare-fun bit-and (Int Int) Int)
(declare-fun bit-or (Int Int) Int)
(declare-fun bit-xor (Int Int) Int)
"""
END = "(check-sat)\n"

_TOKEN = re.compile(r'\s+|;[^\n]*|([()]|"[^"]*"|\|[^|]*\||[^\s()|";]+)')
Tree = str | list["Tree"]


@dataclass
class Certificate:
    """What one file says. Mutable while it is read."""

    terms: Terms = field(default_factory=Terms)
    assertions: list[Term] = field(default_factory=list)
    lemmas: list[Term] = field(default_factory=list)  # what each instance states, built by its schema
    _known: dict[str, Term] = field(default_factory=dict)
    _functions: dict[str, int] = field(default_factory=dict)

    def read(self, command: Tree) -> None:
        match command:
            case ["assert", formula]:
                self.assertions.append(self._condition(formula))
            case ["set-info", ":lemma", [str(schema), *args]]:
                self.lemmas.append(statement(self.terms, schema, [self._term(a) for a in args]))
            case ["declare-const", str(name), ("Int" | "Bool") as sort]:
                self._name(name, self.terms.constant(name, is_bool=sort == "Bool"))
            case ["declare-fun", str(name), list(sorts), "Int"] if sorts and set(map(str, sorts)) == {"Int"}:
                self._fresh(name)
                self._functions[name] = len(sorts)
            case ["define-fun", str(name), [], ("Int" | "Bool") as sort, body]:
                term = self._term(body)
                if term.is_bool is not (sort == "Bool"):
                    raise CertificateError(f"`{name}` is defined as what it is not")
                self._name(name, term)
            case _:
                raise CertificateError(f"it has a command that certificates do not have: {_shown(command)}")

    def _name(self, name: str, term: Term) -> None:
        self._fresh(name)
        self._known[name] = term

    def _fresh(self, name: str) -> None:
        taken = name in self._known or name in self._functions or name in OPERATORS
        if taken or name in ("true", "false") or name.lstrip("-").isdecimal():
            raise CertificateError(f"it gives a second meaning to `{name}`")

    def _condition(self, tree: Tree) -> Term:
        term = self._term(tree)
        if not term.is_bool:
            raise CertificateError(f"it asserts an integer: {_shown(tree)}")
        return term

    def _term(self, tree: Tree) -> Term:
        """The term that a tree spells; arguments first, without recursion."""
        built: dict[int, Term] = {}
        stack: list[Tree] = [tree]
        while stack:
            node = stack[-1]
            parts = [] if isinstance(node, str) else node[1:]
            todo = [part for part in parts if id(part) not in built]
            if todo:
                stack += todo
                continue
            built[id(stack.pop())] = self._node(node, [built[id(part)] for part in parts])
        return built[id(tree)]

    def _node(self, node: Tree, args: list[Term]) -> Term:
        if isinstance(node, str):
            return self._leaf(node)
        head = node[0] if node else ""
        if not isinstance(head, str) or not args:
            raise CertificateError(f"it has a term without an operator: {_shown(node)}")
        if head in OPERATORS:
            return self.terms.of(head, *args)
        if self._functions.get(head) != len(args):
            raise CertificateError(f"`{head}` is no function of {len(args)} arguments")
        return self.terms.call(head, *args)

    def _leaf(self, name: str) -> Term:
        if name in self._known:
            return self._known[name]
        if name in ("true", "false"):
            return self.terms.truth(name == "true")
        if name.isascii() and name.isdecimal() and len(name) < _DIGITS:
            return self.terms.number(int(name))
        raise CertificateError(f"it never declares `{name}`")


_DIGITS = 1000  # Python refuses to read longer numbers


def parsed(text: str) -> Certificate:
    """Read a certificate.

    Raises:
        CertificateError: it is not a whole certificate.
    """
    # A solver must not see a line end where this reader sees a comment.
    if not all(c.isascii() and (c.isprintable() or c == "\n") for c in text):
        raise CertificateError("it has characters that certificates do not have")
    if not text.startswith(PRELUDE):
        raise CertificateError("it does not begin with the definitions of the operators")
    if not text.endswith(END):
        raise CertificateError("it is truncated: the end is missing")
    certificate = Certificate()
    for command in _trees(text[len(PRELUDE) : -len(END)]):
        certificate.read(command)
    if not certificate.assertions:
        raise CertificateError("it asserts nothing")
    return certificate


def _trees(text: str) -> Iterator[Tree]:
    """The expressions in parentheses that a text consists of."""
    open_: list[list[Tree]] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise CertificateError(f"it cannot be read at {text[position : position + 20]!r}")
        position = found.end()
        word = found.group(1)
        if word is None:
            continue
        if word == "(":
            open_.append([])
        elif not open_:
            raise CertificateError(f"it has {word!r} outside of parentheses")
        elif word != ")":
            open_[-1].append(word)
        elif len(open_) > 1:
            open_[-2].append(open_.pop())
        else:
            yield open_.pop()
    if open_:
        raise CertificateError("it is truncated: parentheses stay open")


def _shown(tree: Tree) -> str:
    """The head of a tree, for messages."""
    if isinstance(tree, str):
        return tree
    return f"({tree[0] if tree and isinstance(tree[0], str) else ''} ...)"
