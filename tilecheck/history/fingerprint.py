"""What a finding is, whatever is edited elsewhere: rule, kernel and code, but no line and no column."""

from __future__ import annotations

import hashlib
import io
import tokenize
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields

from tilecheck.dataclass import dataclass
from tilecheck.model import Diagnostic, Site
from tilecheck.text import Source, decode_leniently

_LAYOUT = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)
# The code at a launch does not tell which condition it breaks, or which arguments are one array. Messages do.
_ABOUT_LAUNCHES = frozenset({"TC401", "TC402", "TC403"})


@dataclass(frozen=True, slots=True)
class Identity:
    """A finding as it can be found again after edits elsewhere in its file.

    `operation` is the code at its places without layout, `claim` the message where the code does not tell what
    is wrong; `occurrence` counts, from 0 and down the file, the findings that are alike in everything else.
    """

    rule: str
    path: str
    kernel: str
    operation: str
    claim: str
    occurrence: int

    def digest(self) -> str:
        """The identity as 40 hexadecimal digits."""
        parts = [str(getattr(self, entry.name)) for entry in fields(self)]
        # Lengths keep apart what mere joining would not.
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:40]


def identities(
    diagnostics: Sequence[Diagnostic],
    sources: Mapping[str, bytes],
    *,
    path: Callable[[str], str] = lambda file: file,
) -> tuple[Identity, ...]:
    """The identity of each finding, in the order of the findings; no two are equal.

    Args:
        diagnostics: all findings of a run, in any order.
        sources: the bytes of the files that they speak of.
        path: how a file is written in an identity.
    """
    decoded: dict[str, Source] = {}

    def code(site: Site) -> str:
        if site.file not in decoded:
            decoded[site.file] = decode_leniently(site.file, sources.get(site.file, b""))
        return without_layout(decoded[site.file].snippet(site.span))

    seen: Counter[tuple[str, ...]] = Counter()
    found: dict[int, Identity] = {}
    for number in sorted(range(len(diagnostics)), key=lambda number: _order(diagnostics[number])):
        diagnostic = diagnostics[number]
        operation = " with ".join(map(code, [diagnostic.site, *(r.site for r in diagnostic.related)]))
        claim = diagnostic.message if diagnostic.code in _ABOUT_LAUNCHES else ""
        key = (diagnostic.code, path(diagnostic.site.file), diagnostic.kernel or "", operation, claim)
        found[number] = Identity(*key, seen[key])
        seen[key] += 1
    return tuple(found[number] for number in range(len(diagnostics)))


def _order(diagnostic: Diagnostic) -> tuple[object, ...]:
    places = [diagnostic.site, *(r.site for r in diagnostic.related)]
    return ([(s.file, s.span.start, s.span.end) for s in places], diagnostic.code, diagnostic.message)


def without_layout(text: str) -> str:
    """Code without comments, line breaks, blanks that part no words, and the comma that ends a list of lines.

    Text that is no code, or a comment alone, loses its surplus blanks only.
    """
    try:
        # Parentheses, because an expression that spans lines stands in some.
        tokens = list(tokenize.generate_tokens(io.StringIO(f"({text}\n)").readline))[1:]
    except (tokenize.TokenError, SyntaxError):
        return " ".join(text.split())
    code = ""
    above = 0  # the line of the token before
    for token in tokens:
        if token.type in _LAYOUT:
            continue
        if code.endswith(",") and token.string in (")", "]", "}") and token.start[0] > above:
            code = code[:-1]
        code += " " * (_is_word(code[-1:]) and _is_word(token.string[:1])) + token.string
        above = token.end[0]
    return code.removesuffix(")") or " ".join(text.split())


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
