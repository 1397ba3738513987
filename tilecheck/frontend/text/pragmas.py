"""`# tilecheck:` comments: contracts and suppressions that live beside the code.

A comment on its own line speaks of the next statement of its block; above a `def` or one of its decorators
that is the whole function. A comment that trails code speaks of the statement it stands in; on the header of
a compound statement `ignore` speaks of the header alone and the other kinds of all of it. On the line of a
decorator every kind speaks of the whole function.
"""

from __future__ import annotations

import ast
import enum
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import replace

from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError, did_you_mean
from tilecheck.identifiers import normalised
from tilecheck.model import Span
from tilecheck.text import Source

_MENTION = re.compile(rb"#\s*tilecheck\s*:")
_PRAGMA = re.compile(r"(?:^|\s)#\s*tilecheck\s*:\s*(?P<body>.*)$", re.DOTALL)
_BODY = re.compile(r"(?P<kind>[A-Za-z_-]*)(?P<rest>.*)$", re.DOTALL)
# A further comment on the same line, `# tilecheck: mut out  # noqa: E501`, is not part of this one.
_NEXT_COMMENT = re.compile(r"\s+#(?=\s).*$", re.DOTALL)
_REASON = re.compile(r"(?:^|\s)--(?:\s|$)")
_RULE = re.compile(r"TC[0-9]{3}|[a-z0-9]+(?:-[a-z0-9]+)*")


class PragmaKind(enum.Enum):
    """What a comment asks for."""

    MUT = "mut"
    SHARED = "shared"
    FILLS = "fills"
    REQUIRES = "requires"
    UNSAFE = "unsafe"
    IGNORE = "ignore"
    MALFORMED = "malformed"  # not understood: `problem` says why, and nothing else may be read from it


@dataclass(frozen=True, slots=True)
class Pragma:
    """One `# tilecheck:` comment.

    `arguments` are parameter names (mut, shared, fills), one expression (requires) or rule codes and names
    (ignore). `span` is the comment, `argument` its part between kind and reason. `target` is the statement it
    speaks of, decorators included; `on_function` says that this is a whole function.
    """

    kind: PragmaKind
    arguments: tuple[str, ...]
    reason: str | None
    span: Span
    argument: Span
    target: Span
    on_function: bool = False
    problem: str | None = None


def read_pragmas(source: Source) -> tuple[Pragma, ...]:
    """The `# tilecheck:` comments of a file that parses, in order.

    Raises:
        SourceError: the file cannot be tokenized.
    """
    if not _MENTION.search(source.data):
        return ()
    comments, logical = _comments(source)
    if not comments:
        return ()
    statements = _Statements(source, logical)
    return tuple(_read(source, comment, statements.target(comment)) for comment in comments)


@dataclass(frozen=True, slots=True)
class _Comment:
    """A comment token that holds a pragma.

    `owner` is the logical line (first and last physical line) that it stands in, None between two.
    `body` is the text after the colon, from byte `start` of the file.
    """

    line: int
    column: int  # code points before the `#` on its line
    owner: tuple[int, int] | None
    span: Span
    body: str
    start: int


def _comments(source: Source) -> tuple[list[_Comment], dict[int, int]]:
    """The comments that hold pragmas, and the logical lines: first physical line to last."""
    lines = [source.line(number) for number in range(1, source.line_count + 1)]
    stream = io.StringIO("\n".join(lines) + "\n")
    found: list[tuple[int, int, str]] = []
    logical: dict[int, int] = {}
    begin = None
    try:
        for token in tokenize.generate_tokens(stream.readline):
            if token.type == tokenize.COMMENT:
                found.append((*token.start, token.string))
            elif token.type == tokenize.NEWLINE:
                logical[begin or token.start[0]] = token.start[0]
                begin = None
            elif token.type not in _LAYOUT and begin is None:
                begin = token.start[0]
    except (tokenize.TokenError, SyntaxError) as error:
        raise SourceError(f"cannot read the comments: {error.args[0]}") from None
    comments = (_comment(source, logical, *comment) for comment in found)
    return [comment for comment in comments if comment is not None], logical


_LAYOUT = frozenset({tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})


def _comment(source: Source, logical: dict[int, int], line: int, column: int, text: str) -> _Comment | None:
    found = _PRAGMA.search(text)
    if found is None:
        return None
    owner = next(((first, last) for first, last in logical.items() if first <= line <= last), None)
    span = Span(source.offset(line, column + 1), source.offset(line, column + len(text) + 1))
    start = source.offset(line, column + found.start("body") + 1)
    return _Comment(line, column, owner, span, _NEXT_COMMENT.sub("", found["body"]).rstrip(), start)


# --------------------------------------------------------------------------------------------------------
# Where a comment belongs.


@dataclass(frozen=True, slots=True)
class _Target:
    whole: Span
    header: Span
    on_function: bool


class _Statements:
    """The statements of a file, found by line."""

    def __init__(self, source: Source, logical: dict[int, int]) -> None:
        self._source = source
        self._logical = logical
        try:
            tree = source.tree()
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise SourceError(f"cannot read the statements: {error}") from None
        self._statements = sorted(_all_statements(tree), key=lambda s: (_lines(s)[0], s.col_offset))

    def target(self, comment: _Comment) -> _Target | None:
        if comment.owner is not None:
            begin, end = comment.owner
            here = self._on(begin, end)
            found = self._join([s for s in here if not any(other in here for other in _body(s))])
            decorates = bool(here) and all(s.lineno > end for s in here)  # its `def` stands below
            return replace(found, header=found.whole) if found is not None and decorates else found
        first = min((line for line in self._logical if line > comment.line), default=None)
        if first is None:
            return None
        text = self._source.line(first)
        if comment.column > len(text) - len(text.lstrip()):
            return None  # the comment closes a block: what follows is not in it
        here = self._on(first, self._logical[first])
        return self._join([s for s in here if not any(s in _body(other) for other in here)])

    def _on(self, first: int, last: int) -> list[ast.stmt]:
        """The statements that begin on one logical line; none for `else:`, `case ...:` and the like."""
        return [s for s in self._statements if any(first <= line <= last for line in _lines(s))]

    def _join(self, statements: list[ast.stmt]) -> _Target | None:
        """One target for the statements of a line: several only where `;` joins them."""
        if not statements:
            return None
        begin, end = self._target(statements[0]), self._target(statements[-1])
        whole = Span(begin.whole.start, end.whole.end)
        return _Target(whole, Span(begin.header.start, end.header.end), begin.on_function)

    def _target(self, statement: ast.stmt) -> _Target:
        first = self._source.utf8_offset(statement.lineno, statement.col_offset)
        for decorator in getattr(statement, "decorator_list", []):
            at = self._source.utf8_offset(decorator.lineno, decorator.col_offset)
            first = min(first, self._source.data.rfind(b"@", 0, at))
        end = self._source.utf8_offset(statement.end_lineno or 0, statement.end_col_offset or 0)
        header_line = self._logical.get(statement.lineno, statement.lineno)
        header = end if header_line == statement.end_lineno else self._source.offset(header_line + 1, 1)
        is_function = isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef))
        return _Target(Span(first, end), Span(first, header if _body(statement) else end), is_function)


def _all_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    stack: list[ast.stmt] = list(tree.body)
    while stack:
        statement = stack.pop()
        yield statement
        stack.extend(_body(statement))


def _body(statement: ast.stmt) -> list[ast.stmt]:
    """The statements directly inside a compound statement."""
    found: list[ast.stmt] = []
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            found.append(child)
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            found.extend(child.body)
    return found


def _lines(statement: ast.stmt) -> list[int]:
    """The lines on which a statement's decorators and the statement itself begin, the first first."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return sorted([statement.lineno, *(decorator.lineno for decorator in decorators)])


# --------------------------------------------------------------------------------------------------------
# What a comment says.


def _read(source: Source, comment: _Comment, target: _Target | None) -> Pragma:
    body = _BODY.match(comment.body)
    kind_text, rest = (body["kind"], body["rest"]) if body else ("", comment.body)
    argument, reason = _split_reason(rest)
    start = comment.start + len((kind_text + rest[: len(rest) - len(rest.lstrip())]).encode())
    where = Span(start, start + len(argument.encode()))
    try:
        kind = _kind(kind_text)
        arguments = _ARGUMENTS[kind](argument)
    except _MalformedError as error:
        return Pragma(PragmaKind.MALFORMED, (), reason, comment.span, where, comment.span, problem=str(error))
    if target is None:
        problem = "no statement follows it in its block"
        return Pragma(PragmaKind.MALFORMED, (), reason, comment.span, where, comment.span, problem=problem)
    narrow = kind is PragmaKind.IGNORE and comment.owner is not None and target.header != target.whole
    span = target.header if narrow else target.whole
    return Pragma(kind, arguments, reason, comment.span, where, span, target.on_function and not narrow)


class _MalformedError(Exception):
    """Why a comment is not understood."""


def _split_reason(text: str) -> tuple[str, str | None]:
    found = _REASON.search(text)
    if found is None:
        return text.strip(), None
    return text[: found.start()].strip(), text[found.end() :].strip() or None


def _kind(text: str) -> PragmaKind:
    words = [kind.value for kind in PragmaKind if kind is not PragmaKind.MALFORMED]
    if text in words:
        return PragmaKind(text)
    said = f"`{text}` is not a kind of tilecheck comment" if text else "it says nothing"
    hint = did_you_mean(text, words, f"known are {', '.join(words)}")
    raise _MalformedError(f"{said}; {hint}")


def _names(argument: str) -> tuple[str, ...]:
    names = tuple(name for name in re.split(r"[\s,]+", argument) if name)
    if not names:
        raise _MalformedError("it names no parameter")
    for name in names:
        if not name.isidentifier():
            raise _MalformedError(f"`{name}` is not the name of a parameter")
    return tuple(map(normalised, names))


def _expression(argument: str) -> tuple[str, ...]:
    if not argument:
        raise _MalformedError("it states no condition")
    try:
        ast.parse(argument, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _MalformedError(f"`{argument}` is not a Python expression") from None
    return (argument,)


def _nothing(argument: str) -> tuple[str, ...]:
    if argument:
        raise _MalformedError(f"`{argument}` is not understood here; a reason follows ` -- `")
    return ()


def _rules(argument: str) -> tuple[str, ...]:
    if not (argument.startswith("[") and argument.endswith("]")):
        raise _MalformedError("it must name the rules it silences: `ignore[TC201]`")
    rules = tuple(rule.strip() for rule in argument[1:-1].split(",") if rule.strip())
    if not rules:
        raise _MalformedError("it names no rule")
    for rule in rules:
        if not _RULE.fullmatch(rule):
            raise _MalformedError(f"`{rule}` is neither a rule's code nor its name")
    return rules


_ARGUMENTS = {
    PragmaKind.MUT: _names,
    PragmaKind.SHARED: _names,
    PragmaKind.FILLS: _names,
    PragmaKind.REQUIRES: _expression,
    PragmaKind.UNSAFE: _nothing,
    PragmaKind.IGNORE: _rules,
}
