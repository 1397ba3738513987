"""From the kernels of a run to all files in which they may be launched.

A kernel is followed by name from its module to those that import it, under whatever names, and by its value
where a file does more with it than to launch it. Only such files are parsed; in the others, and in those too,
the launches are read later on, by running their host functions.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError
from tilecheck.model import Span
from tilecheck.patches.hints import Imported
from tilecheck.patches.places import Place, named
from tilecheck.text import Source, decode
from tilecheck.uses.flow import Flow
from tilecheck.uses.modules import Modules, parts_of
from tilecheck.uses.scopes import Callee, Scope, callee, positional
from tilecheck.uses.text import chains, mentions, usage
from tilecheck.uses.values import NOT_READ, NOTHING, Kind, Lead, Leads, Named, Use, held, of_kind

_MOST_IMPORTS = 4  # from a call to the function that it names
_Definition = tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]
_Parsed = tuple[Source, ast.Module]


@dataclass(slots=True, eq=False)
class Index:
    """What names of modules may lead to. Mutable: grows until nothing is added.

    Args:
        modules: the files of the run.
        by_file: the names of the kernels that are looked for, by file.
    """

    modules: Modules
    by_file: Mapping[str, frozenset[str]]
    flows: dict[str, Flow | None] = field(default_factory=dict)
    texts: dict[str, dict[Use, None]] = field(default_factory=dict)  # `kernel[grid](...)`, as the text shows
    kernels: Leads = NOTHING
    _names: dict[str, dict[str, Leads]] = field(default_factory=dict)
    _members: dict[str, set[str]] = field(default_factory=dict)  # of a module and of those inside it
    _attributes: dict[str, Leads] = field(default_factory=dict)
    _given: dict[tuple[str, str], dict[str, Leads]] = field(default_factory=dict)
    _readers: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    _todo: dict[str, None] = field(default_factory=dict)  # files to be looked at
    _holders: dict[str, set[str]] = field(default_factory=dict)  # the files that have a name for a module
    _news: list[tuple[str, str]] = field(default_factory=list)
    _of_name: dict[str, set[Named]] = field(default_factory=dict)
    _definitions_of: dict[tuple[str, str], tuple[_Definition, ...]] = field(default_factory=dict)
    _reading: str = ""

    def follow(self) -> None:
        """Follow all kernels to where they may be launched."""
        every = [Named(file, name) for file, names in self.by_file.items() for name in sorted(names)]
        self.kernels = frozenset(Lead(one, Kind.KERNEL) for one in every)
        for one in every:
            self._of_name.setdefault(one.name, set()).add(one)
            self.add(one.file, one.name, frozenset({Lead(one, Kind.KERNEL)}))
        for name in sorted(self._of_name):
            for file, imported in self.modules.importing(name):
                if imported.member == name:  # perhaps of a module that is not found
                    self._import(file, imported)
        while self._news or self._todo:
            while self._news:
                self._tell(*self._news.pop())
            if self._todo:
                file = next(iter(self._todo))
                del self._todo[file]
                self._look(file)

    def uses(self) -> dict[str, tuple[Use, ...]]:
        """The places at which kernels may be launched, by file."""
        found = {file: list(uses) for file, uses in self.texts.items()}
        for file, flow in self.flows.items():
            if flow is not None:
                found[file] = list(flow.uses)
        places = (
            (file, sorted(uses, key=lambda u: (u.span.start, u.span.end, u.why)))
            for file, uses in found.items()
        )
        return {file: tuple(uses) for file, uses in places if uses}

    # ---- names ----------------------------------------------------------------------------------------------

    def add(self, file: str, name: str, leads: Leads) -> bool:
        """A name of a module may lead to more; whether that is new."""
        known = self._names.setdefault(file, {})
        if leads <= known.get(name, NOTHING):
            return False
        known[name] = known.get(name, NOTHING) | leads
        for lead in of_kind(leads, Kind.MODULE):
            self._holders.setdefault(lead.to.file, set()).add(file)
        self._news.append((file, name))
        self._wake(file, name)
        self._todo[file] = None
        return True

    def _wake(self, *key: str) -> None:
        for reader in self._readers.get((key[0], key[1]), ()):
            if reader != self._reading:
                self._todo[reader] = None

    def _tell(self, module: str, name: str) -> None:
        """Who imports a module may get the name from it."""
        for around in self.modules.around(module):
            members = self._members.setdefault(around, set())
            if name in members:
                continue
            first = not members
            members.add(name)
            self._todo.update(dict.fromkeys(self._holders.get(around, ())))
            for file, one in self.modules.importing(self.modules.name(around)) if first else ():
                self._import(file, one)
        for file, one in self.modules.members(name).get(module, ()):
            self._import(file, one)
        for file, _ in self.modules.members("*").get(module, ()):
            self.add(file, name, self._names[module][name])

    def _import(self, file: str, one: Imported) -> None:
        for name, leads in self._imported(file, one):
            if leads:
                self.add(file, name, leads)

    def _imported(self, file: str, one: Imported) -> Iterator[tuple[str, Leads]]:
        parts = parts_of(one)
        if not one.member:
            whole = parts if one.bound != one.module.partition(".")[0] else parts[:1]
            yield one.bound, self._as_modules(self.modules.find(file, one.level, whole))
        elif one.member == "*":
            for module in self.modules.find(file, one.level, parts):
                yield from ((n, ls) for n, ls in self._names.get(module, {}).items() if module != file)
        else:
            yield one.bound, self._from(file, one.level, parts, one.member)

    def _from(self, file: str, level: int, parts: tuple[str, ...], name: str) -> Leads:
        found = self.modules.find(file, level, parts)
        leads = NOTHING.union(*(self.member(module, name) for module in found))
        if leads or name not in self._of_name:
            return leads
        # A name that no statement of a package binds, or of a module that is not found, may mean the kernel.
        ends = frozenset(parts[-1:])
        meant = set()
        for one in self._of_name[name]:
            around = self.modules.around(one.file)
            unbound = any(m in around[1:] and self.modules.may_give(m, name) for m in found)
            unknown = not found and (not ends or ends & {self.modules.name(module) for module in around})
            meant |= {Lead(one, Kind.KERNEL)} if unbound or unknown else set()
        return frozenset(meant)

    def _as_modules(self, found: Iterable[str]) -> Leads:
        return frozenset(Lead(Named(module, ""), Kind.MODULE) for module in found if module in self._members)

    # ---- what the code of a file asks for -------------------------------------------------------------------

    def names(self, file: str) -> Mapping[str, Leads]:
        return self._names.get(file, {})

    def named(self, file: str, name: str) -> Leads:
        self._readers.setdefault((file, name), set()).add(self._reading)
        return self._names.get(file, {}).get(name, NOTHING)

    def member(self, module: str, name: str) -> Leads:
        """What `module.name` may lead to."""
        inside = self.modules.inside(module, name)
        return self.named(module, name) | (self._as_modules([inside]) if inside else NOTHING)

    def all_of(self, module: str) -> Leads:
        """What any name of a module may lead to."""
        leads = NOTHING.union(*self._names.get(module, {}).values())
        return frozenset(Lead(lead.to, Kind.HELD) for lead in leads if lead.kind is not Kind.MODULE)

    def at(self, file: str, place: Place) -> Leads:
        """What an import binds, by its place."""
        if len(place.path) == 1 and not place.level:
            return self._as_modules(self.modules.find(file, 0, place.path))
        whole = self._as_modules(self.modules.find(file, place.level, place.path))
        return whole | self._from(file, place.level, place.path[:-1], place.path[-1])

    def imported_as(self, file: str, name: str) -> list[str]:
        """The dotted names that absolute imports of a file bind to a name."""
        every = (one for one in self.modules.imports(file) if one.bound == name and not one.level)
        return [".".join(one.parts) if one.member else one.module for one in every]

    def module(self, file: str, text: str) -> Leads:
        """The module that a text names."""
        place = named(text)
        return self._as_modules(self.modules.find(file, place.level, place.path))

    def attribute(self, file: str, name: str) -> Leads:
        """What is stored as an attribute of some object, of the kernels that names of the file lead to."""
        self._readers.setdefault(("", name), set()).add(file)
        leads = self._attributes.get(name, NOTHING)
        if not leads:
            return NOTHING
        known = {lead.to for one in self._names.get(file, {}).values() for lead in one}
        return frozenset(lead for lead in leads if lead.to in known)

    def words(self, file: str) -> frozenset[str]:
        """The words without which a piece of code of a file has nothing to do with kernels."""
        leads = self._names.get(file, {})
        known = {lead.to for one in leads.values() for lead in one}
        stored = (name for name, ls in self._attributes.items() if not known.isdisjoint(lead.to for lead in ls))
        return frozenset((*leads, *stored)) - {""}

    def add_attribute(self, name: str, leads: Leads) -> bool:
        if leads <= self._attributes.get(name, NOTHING):
            return False
        self._attributes[name] = self._attributes.get(name, NOTHING) | leads
        self._wake("", name)
        objects = {lead.to for lead in leads}
        for file, names in self._names.items():
            if any(one.to in objects for one in of_kind(frozenset().union(*names.values()), Kind.OBJECT)):
                self._todo[file] = None
        return True

    def give(self, file: str, path: str, name: str, leads: Leads) -> bool:
        """Values for a parameter of a function of another file; whether that is new."""
        known = self._given.setdefault((file, path), {})
        if leads <= known.get(name, NOTHING):
            return False
        known[name] = known.get(name, NOTHING) | leads
        self._todo[file] = None
        return True

    def given(self, file: str, path: str) -> Mapping[str, Leads]:
        return self._given.get((file, path), {})

    def callees(self, file: str, name: str) -> Iterator[Callee]:
        """The functions of other files that a name of a module may stand for."""
        for module, node in self._defined(file, name):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield callee(module, node, None)
            else:
                for part in node.body:
                    if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                        yield callee(module, part, None, node.name)

    def class_of(self, file: str, name: str) -> ast.ClassDef | None:
        for _, node in self._defined(file, name):
            if isinstance(node, ast.ClassDef):
                return node
        return None

    def _defined(self, file: str, name: str) -> Sequence[_Definition]:
        if (file, name) not in self._definitions_of:
            self._definitions_of[file, name] = tuple(self._definitions(file, name, _MOST_IMPORTS))
        return self._definitions_of[file, name]

    def _definitions(self, file: str, name: str, imports: int) -> Iterator[_Definition]:
        if file not in self.modules.files:
            return
        parsed = _parsed(self.modules.files[file]) if name in self.modules.words(file) else None
        found = _defined(parsed[1].body, name) if parsed is not None else []
        yield from ((file, node) for node in found)
        if found or not imports:
            return
        for one in self.modules.imports(file):
            if one.member and one.bound in (name, "*"):
                member = name if one.member == "*" else one.member
                for module in self.modules.find(file, one.level, parts_of(one)):
                    yield from self._definitions(module, member, imports - 1)

    # ---- files ----------------------------------------------------------------------------------------------

    def _look(self, file: str) -> None:
        if file not in self.modules.files:
            return
        if file not in self.flows and not self._is_odd(file):
            return
        if file not in self.flows:
            parsed = _parsed(self.modules.files[file])
            self.flows[file] = None if parsed is None else Flow(self, file, parsed[0], Scope(parsed[1], None))
        flow = self.flows[file]
        if flow is not None:
            self._reading = file
            flow.run()
            self._reading = ""

    def _is_odd(self, file: str) -> bool:
        """Whether the text does more with what leads to kernels than to launch them."""
        words, spans = self.modules.words(file), [one.span for one in self.modules.imports(file)]
        odd = any(known == file for known, _ in self._given)
        for name, leads in self._names.get(file, {}).items():
            if modules := of_kind(leads, Kind.MODULE):
                odd = odd or not name or any(self._leads_on(modules, *c) for c in chains(words, name, spans))
            if objects := {lead.to for lead in of_kind(leads, Kind.OBJECT)}:
                stored = (n for n, ls in self._attributes.items() if objects & {lead.to for lead in ls})
                odd = odd or mentions(words, frozenset(stored))
            if of_kind(leads, Kind.GRIDDED, Kind.SHOWN, Kind.HELD, Kind.GIVEN):
                found = usage(words, name, spans, calls=True)
                odd = odd or found.otherwise or bool(found.launches)
            if kernels := sorted({lead.to for lead in of_kind(leads, Kind.KERNEL)}, key=str):
                found = usage(words, name, spans)
                odd = odd or found.otherwise or (bool(found.launches) and not words.isascii())
                for decorator, plain in found.decorators:
                    odd |= self._decorates(file, words, decorator, leads if plain else NOTHING)
                known = self.texts.setdefault(file, {})
                for start in found.launches:
                    span = Span(start, start + len(name))
                    known.update((Use(one, span, NOT_READ, by_text=True), None) for one in kernels)
        return odd

    def _leads_on(self, leads: Leads, chain: Sequence[str], called: bool) -> bool:
        """Whether attributes, one after the other, lead from a module to a kernel, or stay with modules.
        To call either launches nothing."""
        for name in chain:
            if name == "__dict__":
                return bool(leads)
            leads = NOTHING.union(*(self.member(one.to.file, name) for one in of_kind(leads, Kind.MODULE)))
        return bool(leads - of_kind(leads, Kind.KERNEL, Kind.MODULE) if called else leads)

    def _decorates(self, file: str, words: str, name: str, leads: Leads) -> bool:
        """Whether a decorator of a kernel is of its own file; one of another file is given the kernel."""
        if re.search(rf"\b(?:def|class)\s+{re.escape(name)}\b", words):
            return True
        for one in self.callees(file, name) if leads else ():
            parameters = positional(one.node)[one.is_method :]
            if parameters:
                self.give(one.file, one.path, parameters[0], held(leads))
        return False


def _defined(
    body: Iterable[ast.stmt], name: str
) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """The definitions of a name in a module, in whatever branch."""
    found: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = []
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found += [node] if node.name == name else []
        else:
            inner = [c for c in ast.iter_child_nodes(node) if isinstance(c, (ast.stmt, ast.ExceptHandler))]
            found += _defined(inner, name) if inner else []  # type: ignore[arg-type]
    return found


def _order(use: Use) -> tuple[int, int, str, str, str]:
    return use.span.start, use.span.end, use.kernel.file, use.kernel.name, use.why


@functools.lru_cache(maxsize=512)
def _parsed(data: bytes) -> _Parsed | None:
    try:
        source = decode("", data)
        return source, source.tree()
    except (SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
