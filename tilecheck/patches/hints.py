"""A look at the text of a file for anything that could reach into another module. Nothing is parsed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tilecheck.dataclass import dataclass

_LISTED = r"\((?:[^)#]|#[^\n]*)*\)"
_IMPORT = re.compile(rf"import\b[ \t]*({_LISTED}|(?:[^\n;\\]*\\\r?\n)*[^\n;]*)")
_FROM = re.compile(r"\bfrom\s+(\.*)[ \t\\\r\n]*([\w.]*)[ \t\\\r\n]*$")
_LONGEST_FROM = 400  # characters before `import`
_ALIAS = re.compile(r"([^\W\d][\w.]*|\*)(?:\s+as\s+(\w+))?")
_COMMENT = re.compile(r"#[^\n]*")
# What reaches modules without an import of them, or names a place as text.
_DYNAMIC = re.compile(
    r"\b(?:import_module|__import__|getmodule|__globals__|f_globals|f_locals)\b"
    r"|\b(?:patch|setattr|dict)\s*\(\s*[rRuU]?[\"']\w+\.|\bmultiple\s*\(\s*[rRuU]?[\"']|\b(?:exec|eval)\s*\("
)
_MODULES = re.compile(r"\bsys\b")  # beside the word `modules`, which packages are called as well
_STORED = r"[.\[][\w.\s\[\]\"',)*:|]*[-+*/%&|^@<>]{0,3}=(?!=)|(?:[-+*/%&|^@]|//|\*\*|<<|>>)="
_CHANGED = (
    r"(?:\.\s*\w+\s*|\[[^\n\]]*\]\s*)*\.\s*(?:append|extend|insert|pop|remove|clear|sort|reverse|update|"
    r"setdefault|popitem|add|discard|__\w+__)\b"
)
_AFTER = re.compile(rf"\s*(?:{_STORED}|{_CHANGED})")
_TARGET = re.compile(r"\b(?:for|del|as)\b(?:(?!\bin\b)[^\n:])*$")
_SET = re.compile(r"\b(?:setattr|delattr|vars|object|setitem|delitem|__\w+__)\s*\([^()\n]*$")
_LONGEST_BEFORE = 120  # characters of a statement before a name
_READ = re.compile(r"\s*\.|[ \t]*\(")  # a module is neither called nor defined
_PART = re.compile(r"\s*[.\[]")


@dataclass(frozen=True, slots=True)
class Imported:
    """One name that an import binds. `member` is empty where a module is imported; `span` is the import's."""

    level: int
    module: str
    member: str
    bound: str
    span: tuple[int, int]

    @property
    def parts(self) -> list[str]:
        return [part for part in (*self.module.split("."), self.member) if part]


def imports_in(words: str) -> Iterator[Imported]:
    """The imports of a text, also those that stand in comments and text literals."""
    for found in _IMPORT.finditer(words):
        before = _FROM.search(words[max(found.start() - _LONGEST_FROM, 0) : found.start()])
        dots, module = before.groups() if before is not None else ("", "")
        for name, alias in _ALIAS.findall(_COMMENT.sub("", found[1])):
            if dots or module:
                yield Imported(len(dots), module, name, alias or name, found.span())
            else:
                yield Imported(0, name, "", alias or name.partition(".")[0], found.span())


def may_patch(words: str, known: frozenset[str], leads_there: Callable[[str], bool]) -> bool:
    """Whether a file may reach into modules of a run. `known` are their last names, and `leads_there` says
    whether an absolute import that begins with a name may lead to one."""
    if _DYNAMIC.search(words) or ("modules" in words and _MODULES.search(words)):
        return True
    heads: dict[str, bool] = {}
    spans: list[tuple[int, int]] = []
    for found in imports_in(words):
        if not (found.level or leads_there(found.module.partition(".")[0])):
            continue
        if found.bound == "*":  # whatever it binds
            return True
        is_module = not found.member or found.member in known
        heads[found.bound] = heads.get(found.bound, False) or is_module
        spans.append(found.span)
    return any(_is_used(words, head, is_module, spans) for head, is_module in heads.items())


def _is_used(words: str, name: str, is_module: bool, imports: list[tuple[int, int]]) -> bool:
    """Whether something is assigned through a name, or a module is used for more than to read from it."""
    start = words.find(name)
    while start >= 0:
        end = start + len(name)
        alone = not _is_part(words[start - 1 : start]) and not _is_part(words[end : end + 1])
        if alone and words[start - 1 : start] != "." and not any(a <= start < b for a, b in imports):
            before = words[max(start - _LONGEST_BEFORE, 0) : start]
            if _AFTER.match(words, end) or _SET.search(before):
                return True
            if _PART.match(words, end) and _TARGET.search(before):
                return True
            if is_module and not _READ.match(words, end):
                return True
        start = words.find(name, end)
    return False


def _is_part(character: str) -> bool:
    return character == "_" or character.isalnum()
