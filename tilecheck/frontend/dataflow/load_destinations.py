"""Where loaded values go: the stores that alone take what a load gave, lane for lane, at once or in later
rounds of loops.

A pass over the statements of a Triton kernel. Each load is a source; names hold the sources that their values
may be computed from. What is not known to work lane by lane, and every use in an address, a test, an operation
that moves elements between lanes or a later round of a loop, lets the source escape. So what is said of a load
that does not escape is certain: its value reaches the values and masks of the named stores, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.kernels.definitions import Definition
from tilecheck.frontend.modules.bindings import Import, dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.syntax import children, has_kind, walk, walk_kind
from tilecheck.model import Site, Span

Sources = frozenset["Source"]
NONE: Sources = frozenset()
MOST_ROUNDS = 8  # a loop's names settle after as many rounds as they stand in a chain
MOST_CALLS = 8  # helpers that call helpers
_MOST_OF_RANGE = 3  # start, end and step

# Functions of which each lane of the result takes the same lane of the operands alone.
LANEWISE = frozenset(
    "where maximum minimum clamp abs cast to add sub mul cdiv fma exp exp2 log log2 sqrt sqrt_rn rsqrt sin cos "
    "tan sinh cosh tanh asin acos atan asinh acosh atanh floor ceil erf erfc erfinv div_rn fdiv sigmoid umulhi "
    "pow expm1 log1p log10 isnan isinf isnand isinfd finitef isfinited atan2 nearbyint rint round trunc lgamma "
    "tgamma hypot cbrt copysign fmod ldexp signbit fabs div_rz fast_expf fast_dividef fast_logf fast_powf "
    "j0 j1 y0 y1 cyl_bessel_i0 cyl_bessel_i1 remainder exp10 normcdf zeros_like constexpr float32 float16 "
    "bfloat16 float64 int1 int8 int16 int32 int64".split()
)
_OF_PYTHON = frozenset("float int bool min max abs".split())
_OF_TYPES = frozenset("dtype type element_ty scalar shape".split())
_LOAD, _STORE = "load", "store"


@dataclass(frozen=True, slots=True)
class Source:
    """A load, in the loops at `loops`; `stale` in a later round of one of them."""

    span: Span
    loops: tuple[cst.CSTNode, ...]
    stale: bool = False


@dataclass(slots=True)
class _State:
    """The names of one call. Mutable: statements assign into `names`; loops collect those of jumps."""

    names: dict[str, Sources]
    local: frozenset[str]  # names that are no module's
    captured: frozenset[str]  # names that functions inside refer to: when, is not known
    returned: Sources = NONE
    jumps: list[dict[str, Sources]] = field(default_factory=list)


class Unread(Exception):
    """A statement whose flow is not modelled."""


@dataclass(frozen=True, slots=True)
class Destinations:
    """The loads of a kernel whose values reach certain stores alone, by their places. A load whose value is not
    used reaches no store.

    `now` has those whose values reach them in the same iteration. In `ever`, later rounds and what comes after
    the loop count too; loads that may be made rounds before their own are left out."""

    now: Mapping[Site, frozenset[Site]] = field(default_factory=dict)
    ever: Mapping[Site, frozenset[Site]] = field(default_factory=dict)


def destinations(definition: Definition) -> Destinations:
    """Where the loads of a kernel go; nothing is said of any if it has a statement that is not modelled."""
    if definition.enclosing:
        return Destinations()  # a name may be one of the functions around
    flows, file = _Flows(definition.table), definition.table.file
    try:
        flows.block(definition.node.body.body, flows.state(definition.node, {}))
    except Unread:
        return Destinations()

    def without(lost: set[Span]) -> Mapping[Site, frozenset[Site]]:
        return {
            Site(file, load): frozenset(Site(file, store) for store in stores)
            for load, stores in flows.stores.items()
            if load not in lost
        }

    return Destinations(without(flows.escaped | flows.late), without(flows.escaped | flows.early))


class _Flows:
    """One pass over a kernel and the helpers that it calls."""

    def __init__(self, table: ModuleTable) -> None:
        self.table = table
        self.home = table
        self.loops: tuple[cst.CSTNode, ...] = ()
        self.calls = 0
        self.stores: dict[Span, set[Span]] = {}
        self.escaped: set[Span] = set()
        self.late: set[Span] = set()  # loads that a store of a later round, or of another loop, takes
        self.early: set[Span] = set()  # loads in loops that the compiler may pipeline
        self.pipelined = 0  # such loops around

    def state(self, function: cst.FunctionDef, names: Mapping[str, Sources]) -> _State:
        inside = (cst.FunctionDef, cst.Lambda, cst.ListComp, cst.GeneratorExp, cst.DictComp, cst.SetComp)
        held = {p.name.value for p in walk_kind(function.params, cst.Param)}
        captured: set[str] = set()
        for node in walk(function.body):
            match node:
                case cst.AssignTarget() | cst.AnnAssign() | cst.AugAssign() | cst.For() | cst.NamedExpr():
                    held |= _names(node.target)
                case cst.FunctionDef():
                    held.add(node.name.value)
            if isinstance(node, inside):
                captured |= _names(node)
        return _State(dict(names), frozenset(held), frozenset(captured))

    def escape(self, sources: Iterable[Source]) -> None:
        self.escaped.update(source.span for source in sources)

    # ---- statements ------------------------------------------------------------------------------------

    def block(self, body: Sequence[cst.CSTNode], state: _State) -> None:
        for statement in body:
            match statement:
                case cst.SimpleStatementLine() | cst.SimpleStatementSuite():
                    self.block(statement.body, state)
                case cst.If():
                    self._if(statement, state)
                case cst.For(orelse=None, asynchronous=None):
                    self.escape(self.value(statement.iter, state))
                    pipelined = not self._keeps_order(statement.iter)
                    self.pipelined += pipelined
                    self._loop(statement, state)
                    self.pipelined -= pipelined
                case cst.While(orelse=None):
                    self._loop(statement, state)
                case cst.FunctionDef():
                    pass  # the names that it refers to are captured
                case cst.BaseSmallStatement():
                    self._small(statement, state)
                case _:
                    raise Unread

    def _small(self, statement: cst.BaseSmallStatement, state: _State) -> None:
        match statement:
            case cst.Expr():
                self.value(statement.value, state)
            case cst.Assign():
                sources = self.value(statement.value, state)
                for target in statement.targets:
                    self._assign(target.target, sources, state)
            case cst.AnnAssign():
                if statement.value is not None:
                    self._assign(statement.target, self.value(statement.value, state), state)
            case cst.AugAssign():
                before, more = self.value(statement.target, state), self.value(statement.value, state)
                self._assign(statement.target, before | more, state)
            case cst.Return():
                if statement.value is not None:
                    state.returned |= self.value(statement.value, state)
            case cst.Break() | cst.Continue():
                state.jumps.append(dict(state.names))
            case cst.Assert():
                self.escape(self.value(statement.test, state))
            case cst.Pass() | cst.Raise():
                pass
            case _:
                raise Unread

    def _assign(self, target: cst.BaseExpression, sources: Sources, state: _State) -> None:
        match target:
            case cst.Name():
                state.names[target.value] = sources
                if target.value in state.captured:
                    self.escape(sources)
            case cst.Tuple() | cst.List():
                for element in target.elements:
                    self._assign(element.value, sources, state)
            case _:
                self.escape(sources)

    def _if(self, node: cst.If, state: _State) -> None:
        self.escape(self.value(node.test, state))
        before = dict(state.names)
        self.block(node.body.body, state)
        after, state.names = state.names, before
        if isinstance(node.orelse, cst.If):
            self._if(node.orelse, state)
        elif node.orelse is not None:
            self.block(node.orelse.body.body, state)
        state.names = _joined(after, state.names)

    def _loop(self, node: cst.For | cst.While, state: _State) -> None:
        """Rounds until the names settle. What a round loaded is stale in the next, and after the loop."""
        self.loops = (*self.loops, node)
        outer, state.jumps = state.jumps, []
        for _ in range(MOST_ROUNDS):
            before = dict(state.names)
            if isinstance(node, cst.While):
                self.escape(self.value(node.test, state))
            else:
                self._assign(node.target, NONE, state)
            self.block(node.body.body, state)
            ends = [state.names, *state.jumps]
            state.names = before
            for names in ends:
                state.names = _joined(state.names, {n: self._staled(s) for n, s in names.items()})
            if state.names == before:
                break
        else:
            raise Unread
        self.loops, state.jumps = self.loops[:-1], outer

    def _keeps_order(self, source: cst.BaseExpression) -> bool:
        """Whether a loop goes over a plain range. The compiler makes loads of rounds to come, also of single
        elements, where `tl.range` has options; without them only those that a matrix product needs."""
        if not isinstance(source, cst.Call) or len(source.args) > _MOST_OF_RANGE:
            return False
        if any(arg.keyword is not None or arg.star for arg in source.args):
            return False
        name = dotted(source.func)
        if name == "range":
            return self.table.is_builtin(name)
        return set(_meanings(self.table, name)) <= {"triton.language.range", "triton.language.static_range"}

    def _staled(self, sources: Sources) -> Sources:
        """Sources after a round of the innermost loop."""
        inside = self.loops
        return frozenset(
            Source(s.span, s.loops, stale=True) if s.loops[: len(inside)] == inside else s for s in sources
        )

    # ---- expressions -----------------------------------------------------------------------------------

    def value(self, node: cst.CSTNode, state: _State) -> Sources:
        """What a value may be computed from."""
        match node:
            case cst.Name():
                return state.names.get(node.value, NONE)
            case cst.BinaryOperation() if not isinstance(node.operator, cst.MatrixMultiply):
                return self.value(node.left, state) | self.value(node.right, state)
            case cst.BooleanOperation():
                return self.value(node.left, state) | self.value(node.right, state)
            case cst.UnaryOperation():
                return self.value(node.expression, state)
            case cst.Comparison():
                sides = (node.left, *(c.comparator for c in node.comparisons))
                return NONE.union(*(self.value(side, state) for side in sides))
            case cst.IfExp():
                self.escape(self.value(node.test, state))
                return self.value(node.body, state) | self.value(node.orelse, state)
            case cst.Tuple() | cst.List():
                return NONE.union(*(self.value(element.value, state) for element in node.elements))
            case cst.Attribute():
                sources = self.value(node.value, state)
                if node.attr.value not in _OF_TYPES:
                    self.escape(sources)
                return NONE
            case cst.Call():
                return self._call(node, state)
            case cst.Lambda() | cst.ListComp() | cst.GeneratorExp() | cst.NamedExpr():
                self.escape(NONE.union(*(state.names.get(name, NONE) for name in _names(node))))
                if has_kind(node, cst.Call):
                    raise Unread
                return NONE
            case _:  # moves elements between lanes, or may do so
                for child in children(node):
                    self.escape(self.value(child, state))
                return NONE

    def _call(self, node: cst.Call, state: _State) -> Sources:
        name = dotted(node.func)
        last = name.rpartition(".")[2]
        arguments = [(arg, self.value(arg.value, state)) for arg in node.args]
        every = NONE.union(*(sources for _, sources in arguments))
        if not name or name.partition(".")[0] in state.local:
            if isinstance(node.func, cst.Attribute):
                every |= self.value(node.func.value, state)
                last = node.func.attr.value
            return every if last in LANEWISE and isinstance(node.func, cst.Attribute) else self._lost(every)
        if name in _OF_PYTHON and self.table.is_builtin(name):
            one = name in ("min", "max") and len(node.args) < 2
            return self._lost(every) if one else every
        results = [
            self._helper(found, arguments)
            if isinstance(found, tuple)
            else self._library(found, last, node, arguments)
            for found in _meanings(self.table, name)
        ]
        return NONE.union(*results)

    def _library(
        self, path: str, last: str, node: cst.Call, arguments: list[tuple[cst.Arg, Sources]]
    ) -> Sources:
        """What a function outside of the project gives; a name of which nothing is known is taken for what it
        says."""
        every = NONE.union(*(sources for _, sources in arguments))
        last = path.rpartition(".")[2] or last  # an import may give it another name
        of_triton = path.startswith("triton.") and not path.startswith("triton.experimental.")
        if of_triton and last in (_LOAD, _STORE) and self.table is self.home and not self.calls:
            return self._access(node, last, arguments)
        return every if last in LANEWISE and (of_triton or not path) else self._lost(every)

    def _lost(self, sources: Sources) -> Sources:
        self.escape(sources)
        return NONE

    def _access(self, node: cst.Call, kind: str, arguments: list[tuple[cst.Arg, Sources]]) -> Sources:
        span = self.table.span(node)
        if kind == _LOAD:
            self._lost(NONE.union(*(sources for _, sources in arguments)))
            self.stores.setdefault(span, set())
            if self.pipelined:
                self.early.add(span)
            return frozenset({Source(span, self.loops)})
        for number, (arg, sources) in enumerate(arguments):
            word = (
                arg.keyword.value
                if arg.keyword is not None
                else ("pointer", "value", "mask", "")[min(number, 3)]
            )
            for source in sources:
                if arg.star or word not in ("value", "mask"):
                    self.escaped.add(source.span)
                    continue
                self.stores.setdefault(source.span, set()).add(span)
                if source.stale or source.loops != self.loops:
                    self.late.add(source.span)
        return NONE

    def _helper(
        self,
        found: tuple[cst.FunctionDef, ModuleTable],
        arguments: list[tuple[cst.Arg, Sources]],
    ) -> Sources:
        """What a function of the project returns, of what it is given. Its own loads and stores are not told
        apart by their places, so what gets there is lost."""
        function, table = found
        every = NONE.union(*(sources for _, sources in arguments))
        params = [p.name.value for p in (*function.params.posonly_params, *function.params.params)]
        if not every or self.calls >= MOST_CALLS or any(arg.star for arg, _ in arguments):
            return self._lost(every)
        given: dict[str, Sources] = {}
        for number, (arg, sources) in enumerate(arguments):
            if arg.keyword is None and number >= len(params):
                return self._lost(every)
            given[arg.keyword.value if arg.keyword is not None else params[number]] = sources
        outer, self.table = self.table, table
        self.calls += 1
        try:
            inner = self.state(function, given)
            self.escape(NONE.union(*(given.get(name, NONE) for name in inner.captured)))
            self.block(function.body.body, inner)
            return inner.returned
        finally:
            self.calls -= 1
            self.table = outer


def _names(node: cst.CSTNode) -> set[str]:
    return {inner.value for inner in walk_kind(node, cst.Name)}


def _joined(a: Mapping[str, Sources], b: Mapping[str, Sources]) -> dict[str, Sources]:
    return {name: a.get(name, NONE) | b.get(name, NONE) for name in {**a, **b}}


_MOST_ALIASES = 8


def _meanings(table: ModuleTable, name: str, depth: int = 0) -> list[tuple[cst.FunctionDef, ModuleTable] | str]:
    """What a name of a module may be: functions of the project, or paths outside; "" where nothing is known,
    and "?" where it is something else."""
    head, _, rest = name.partition(".")
    bindings = (table.bindings.get(head),) if head not in table.ambiguous else table.choices(head)
    found: list[tuple[cst.FunctionDef, ModuleTable] | str] = []
    for binding in bindings:
        if binding is None or depth > _MOST_ALIASES:
            found.append("")
        elif isinstance(binding, cst.FunctionDef):
            plain = all(dotted(d.decorator).endswith("jit") for d in binding.decorators)
            found.append((binding, table) if plain and not rest else "?")
        elif isinstance(binding, cst.Name | cst.Attribute):
            found += _meanings(table, f"{dotted(binding)}.{rest}".rstrip("."), depth + 1)
        elif isinstance(binding, Import):
            found += _of_import(table, binding, rest, depth)
        else:
            found.append("?")
    return found or [""]


def _of_import(
    table: ModuleTable, binding: Import, rest: str, depth: int
) -> list[tuple[cst.FunctionDef, ModuleTable] | str]:
    module = table.project.find(Import(binding.module, None, binding.level), table.file)
    if module is None:
        return [".".join(part for part in (binding.module, binding.member or "", rest) if part)]
    if binding.member is None or rest or binding.member not in module.bindings:
        return ["?"]
    return _meanings(module, binding.member, depth + 1)
