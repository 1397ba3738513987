"""Reads the annotations of a fixture: comments that say what a run must find, and where.

    # verdict: proved             on the `def` line, or on a line of its own above the decorators
    # verdict: unknown(budget)    with the reason, or its part before the colon; `unknown` alone takes any
    # expect: TC201               a finding starts on this line
    # expect: TC201 @5 "text"     in this column; its message has this text
    # expect: TC201 with=w        a finding with two ends, one here and one at `# site: w`
    # expect: TC902 line=-1       the finding starts so many lines away (a comment has no line for another)
    # suppressed: TC201           a finding is here and is silenced
    # ok: TC201                   no finding of this code is here: the near miss that the line is about
    # todo-expect: TC201          due here, not found yet: fails as soon as it is found
    # todo-ok: TC201              found here, wrongly: fails as soon as it is gone
    # todo-verdict: unknown       what is said today where the verdict above is the true one

`;` separates several, a comma several findings. A comment on a line of its own speaks of the next line of
code. The comment may follow another one on its line (`# tilecheck: ... # expect: ...`).
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Mapping

from tilecheck.dataclass import dataclass
from tilecheck.errors import TilecheckError

_MARK = re.compile(r"#\s*(?=(?:verdict|expect|suppressed|site|ok|todo-expect|todo-ok|todo-verdict)\s*:)")
_PART = re.compile(r"(?P<key>[a-z-]+)\s*:\s*(?P<body>\S.*?)\s*$")
_FINDING = re.compile(
    r"\s*(?P<code>TC[0-9]{3})(?:\s+@(?P<column>[0-9]+))?(?:\s+\"(?P<text>[^\"]*)\")?(?:\s+with=(?P<other>\w+))?"
    r"(?:\s+line=(?P<offset>[+-]?[0-9]+))?\s*(?:,|$)"
)
_VERDICT = re.compile(r"(?:proved|conditional|trusted|violated|unknown(?:\([^()]+\))?)$")
_LAYOUT = frozenset(
    {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}
)
_FINDINGS = ("expect", "suppressed", "ok", "todo-expect", "todo-ok")


class AnnotationError(TilecheckError):
    """An annotation of a fixture is not understood."""


@dataclass(frozen=True, slots=True)
class ExpectedFinding:
    """What one `expect`, `suppressed`, `ok` or `todo-...` asks for; `key` is that word."""

    key: str
    code: str
    line: int
    column: int | None = None
    text: str | None = None
    other: str | None = None  # the name of a `# site:`


@dataclass(frozen=True, slots=True)
class ExpectedVerdict:
    """The verdict written on a line; `today` is what is said at present, if that is known to be wrong."""

    line: int
    word: str
    today: str | None = None


@dataclass(frozen=True, slots=True)
class Expectations:
    """All annotations of one file, in order."""

    verdicts: tuple[ExpectedVerdict, ...]
    findings: tuple[ExpectedFinding, ...]
    sites: Mapping[str, tuple[int, ...]]  # name -> lines; kernels of one file may use a name again


def read_expectations(text: str) -> Expectations:
    """The annotations in the text of a fixture.

    Raises:
        AnnotationError: one of them is not understood, or the text cannot be tokenized.
    """
    findings: list[ExpectedFinding] = []
    sites: dict[str, list[int]] = {}
    verdicts: dict[int, str] = {}
    today: dict[int, str] = {}
    for line, key, body in _annotations(text):
        if key in _FINDINGS:
            findings += _read_findings(key, body, line)
        elif key == "site":
            sites.setdefault(body, []).append(line)
        elif not _VERDICT.match(body):
            raise AnnotationError(f"line {line}: {body!r} is no verdict")
        else:
            (verdicts if key == "verdict" else today)[line] = body
    _check_names(findings, sites, verdicts, today)
    return Expectations(
        tuple(ExpectedVerdict(line, word, today.get(line)) for line, word in sorted(verdicts.items())),
        tuple(findings),
        {name: tuple(lines) for name, lines in sites.items()},
    )


def _check_names(
    findings: list[ExpectedFinding],
    sites: dict[str, list[int]],
    verdicts: dict[int, str],
    today: dict[int, str],
) -> None:
    for finding in findings:
        if finding.other is not None and finding.other not in sites:
            raise AnnotationError(f"line {finding.line}: there is no `# site: {finding.other}`")
    for line in today:
        if line not in verdicts:
            raise AnnotationError(f"line {line}: `todo-verdict` without a `verdict`")


def _read_findings(key: str, body: str, line: int) -> Iterator[ExpectedFinding]:
    position = 0
    while position < len(body):
        found = _FINDING.match(body, position)
        if found is None:
            raise AnnotationError(f"line {line}: {body[position:]!r} is no finding")
        column = found["column"]
        yield ExpectedFinding(
            key,
            found["code"],
            line + int(found["offset"] or 0),
            None if column is None else int(column),
            found["text"],
            found["other"],
        )
        position = found.end()


def _annotations(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, keyword and body of each annotation."""
    for line, comment in _comments(text):
        mark = _MARK.search(comment)
        for part in comment[mark.end() :].split(";") if mark else ():
            found = _PART.match(part.strip())
            if found is None:
                raise AnnotationError(f"line {line}: {part.strip()!r} is no annotation")
            yield line, found["key"], found["body"]


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Every comment with the line that it speaks of: its own, or the next line of code."""
    waiting: list[str] = []
    has_code = 0  # the last line on which code ended
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and token.start[0] == has_code:
                yield has_code, token.string
            elif token.type == tokenize.COMMENT:
                waiting.append(token.string)
            elif token.type not in _LAYOUT:
                yield from ((token.start[0], comment) for comment in waiting)
                waiting = []
                has_code = token.end[0]
    except (tokenize.TokenError, SyntaxError) as error:
        raise AnnotationError(f"cannot be tokenized: {error.args[0]}") from None
    if any(_MARK.search(comment) for comment in waiting):
        raise AnnotationError("the last annotation of the file speaks of no code")
