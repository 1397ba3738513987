"""Index patterns of real kernels, safe and broken, in a notation that reads like their source.

`CATALOGUE` holds two-block questions ("do two blocks meet?"), `SINGLE` one-block questions (bounds, divisors,
overflow). Not a test module: the tests of this folder load it by path.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from tilecheck.ir import expr as ex
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.kernel import Access, Axis, Effect, Kernel, Space, block_symbol
from tilecheck.model import Site, Span
from tilecheck.proof.goals.context import Context
from tilecheck.proof.goals.instances import in_instance
from tilecheck.proof.obligation import Between, Disjoint, Goal, Holds, Obligation

_OPERATORS: dict[type, Callable[[Expr, Expr], Expr]] = {
    ast.Add: ex.add,
    ast.Sub: ex.sub,
    ast.Mult: ex.mul,
    ast.FloorDiv: ex.floordiv,
    ast.Mod: ex.mod,
    ast.Lt: ex.lt,
    ast.LtE: ex.le,
    ast.Gt: ex.gt,
    ast.GtE: ex.ge,
    ast.Eq: ex.eq,
    ast.NotEq: ex.ne,
    ast.BitAnd: lambda a, b: ex.bit("and", a, b),
    ast.BitOr: lambda a, b: ex.bit("or", a, b),
    ast.BitXor: lambda a, b: ex.bit("xor", a, b),
}
_FUNCTIONS: dict[str, Callable[..., Expr]] = {"min": ex.minimum, "max": ex.maximum, "cdiv": ex.cdiv}


class Notation:
    """Turns Python text into expressions. Names in `kinds` are symbols of that kind, others launch values;
    `name = ...` lines define names."""

    def __init__(self, kinds: dict[str, Kind], lets: str = "") -> None:
        self.kinds = kinds
        self.defined: dict[str, Expr] = {}
        for statement in ast.parse(lets).body:
            assert isinstance(statement, ast.Assign)
            target = statement.targets[0]
            assert isinstance(target, ast.Name)
            self.defined[target.id] = self.of(statement.value)

    def all(self, text: str) -> list[Expr]:
        """A comma-separated list of expressions."""
        if not text.strip():
            return []
        body = ast.parse(f"({text},)", mode="eval").body
        assert isinstance(body, ast.Tuple)
        return [self.of(e) for e in body.elts]

    def name(self, name: str) -> Expr:
        return ex.sym(Symbol(name, self.kinds.get(name, Kind.SCALAR)))

    def of(self, node: ast.expr) -> Expr:
        match node:
            case ast.Constant(value=int() as value):
                return ex.const(value)
            case ast.Name(id=name):
                return self.defined.get(name) or self.name(name)
            case ast.BinOp(left, op, right):
                return _OPERATORS[type(op)](self.of(left), self.of(right))
            case ast.UnaryOp(ast.USub(), operand):
                return ex.neg(self.of(operand))
            case ast.UnaryOp(ast.Not(), operand):
                return ex.negate(self.of(operand))
            case ast.Compare(left, ops, rest):
                terms = [self.of(e) for e in (left, *rest)]
                pairs = zip(ops, terms, terms[1:], strict=False)
                return ex.all_of(*(_OPERATORS[type(op)](a, b) for op, a, b in pairs))
            case ast.BoolOp(op, values):
                joined = ex.all_of if isinstance(op, ast.And) else ex.any_of
                return joined(*(self.of(v) for v in values))
            case ast.Call(ast.Name(id=name), args):
                return _FUNCTIONS[name](*(self.of(a) for a in args))
            case ast.IfExp(test, body, orelse):
                return ex.ite(self.of(test), self.of(body), self.of(orelse))
            case ast.Subscript(ast.Name(id=name), index):
                cells = index.elts if isinstance(index, ast.Tuple) else [index]
                return ex.read(name, *(self.of(i) for i in cells))
        raise ValueError(ast.dump(node))


def _increasing(table: str, cells: list[Expr]) -> list[Expr]:
    """`table` increases, at the given points."""
    pairs = [(x, y) for x in cells for y in cells if x is not y]
    return [ex.any_of(ex.lt(y, x), ex.le(ex.read(table, x), ex.read(table, y))) for x, y in pairs]


Question = tuple[Obligation, Context]
_SITE = Site("pattern.py", Span(0, 1))


def _question(goal: Goal, facts: list[Expr], axes: int) -> Question:
    """A goal as the ladder takes it, in a kernel of which nothing but `facts` is known."""
    kernel = Kernel("pattern", "cutile", _SITE, (), tuple(range(axes)), (), (), (), tuple(facts))
    return Obligation("TC201", goal, (_SITE,), "cause", 2, "overlap"), Context(kernel)


def _access(index: list[Expr], guard: Expr) -> Access:
    """A write of the element `index`, where `guard` holds; its extents are unknown."""
    axes = [
        Axis(i, ex.ONE, ex.ONE, ex.sym(Symbol(f"out.shape[{k}]", Kind.EXTENT)), ex.ZERO)
        for k, i in enumerate(index)
    ]
    return Access("out", Effect.WRITE, Space.ELEMENT, tuple(axes), guard, ex.TRUE, (), _SITE, 0)


@dataclass(frozen=True)
class Pattern:
    """Two instances, each with `inside` true, touch `index` (and `other`, if given, in the second).

    `blocks` tell the instances apart (none: nothing does); `lanes` and `loops` vary too. `increasing` and
    `distinct` are contracts over a table, instantiated at the points given.
    """

    name: str
    expect: str
    index: str
    inside: str
    facts: str = ""
    lets: str = ""
    other: str = ""
    other_inside: str = ""
    blocks: tuple[str, ...] = ("b",)
    lanes: tuple[str, ...] = ("l", "i", "j", "d", "col", "t", "row")
    loops: tuple[str, ...] = ("k",)
    always: tuple[str, ...] = ()  # vary between instances without telling them apart
    increasing: tuple[str, str] | None = None
    distinct: tuple[str, str] | None = None

    def notation(self) -> Notation:
        kinds = dict.fromkeys((*self.blocks, *self.always), Kind.BLOCK)
        kinds |= dict.fromkeys([n for n in self.lanes if n not in kinds], Kind.LANE)
        kinds |= dict.fromkeys([n for n in self.loops if n not in kinds], Kind.LOOP)
        return Notation(kinds, self.lets)

    def assertions(self) -> list[Expr]:
        """The two instances meet."""
        read = self.notation()
        one, two = (lambda e: in_instance(e, 1)), (lambda e: in_instance(e, 2))
        found = read.all(self.facts)
        found += [one(e) for e in read.all(self.inside)]
        found += [two(e) for e in read.all(self.other_inside or self.inside)]
        found += self._contracts(read)
        first, second = read.all(self.index), read.all(self.other or self.index)
        found += [ex.eq(one(a), two(b)) for a, b in zip(first, second, strict=True)]
        if self.blocks:
            found.append(ex.any_of(*(ex.ne(one(b), two(b)) for b in map(read.name, self.blocks))))
        return found

    def question(self) -> Question | None:
        """The pattern as an obligation: its blocks become those of the grid. None for what an obligation does
        not state this way: contracts over a table, two stores of one block, and more than three axes."""
        if self.increasing or self.distinct or not 1 <= len(self.blocks) <= 3:
            return None
        read = self.notation()
        axes = {read.name(b): ex.sym(block_symbol(k)) for k, b in enumerate(self.blocks)}

        def access(index: str, inside: str) -> Access:
            places = [ex.substitute(e, axes) for e in read.all(index)]
            return _access(places, ex.substitute(ex.all_of(*read.all(inside)), axes))

        first = access(self.index, self.inside)
        second = access(self.other or self.index, self.other_inside or self.inside)
        return _question(Disjoint(first, second, Between.BLOCKS), read.all(self.facts), len(self.blocks))

    def _contracts(self, read: Notation) -> list[Expr]:
        found = []
        if self.increasing:
            table, points = self.increasing
            cells = [in_instance(e, k) for k in (1, 2) for e in read.all(points)]
            found += _increasing(table, cells)
        if self.distinct:
            table, point = self.distinct
            x, y = (in_instance(read.all(point)[0], k) for k in (1, 2))
            found.append(ex.any_of(ex.ne(ex.read(table, x), ex.read(table, y)), ex.eq(x, y)))
        return found


@dataclass(frozen=True)
class Single:
    """`goal` holds in every block where `given` does."""

    name: str
    expect: str  # of the negated goal
    goal: str
    given: str
    lets: str = ""
    increasing: tuple[str, str] | None = None

    def assertions(self) -> list[Expr]:
        read = self.notation()
        return [*self._given(read), ex.negate(ex.all_of(*read.all(self.goal)))]

    def question(self) -> Question:
        """The pattern as an obligation."""
        read = self.notation()
        goal = Holds(ex.all_of(*read.all(self.goal)), ex.all_of(*self._given(read)))
        return _question(goal, [], 0)

    def notation(self) -> Notation:
        kinds = {"b": Kind.BLOCK, "pm": Kind.BLOCK, "l": Kind.LANE, "i": Kind.LANE, "k": Kind.LOOP}
        kinds |= {"h": Kind.LANE, "m": Kind.LANE, "d": Kind.LANE, "row": Kind.LANE, "col": Kind.LANE}
        return Notation(kinds, self.lets)

    def _given(self, read: Notation) -> list[Expr]:
        found = read.all(self.given)
        if self.increasing:
            table, points = self.increasing
            found += _increasing(table, read.all(points))
        return found


def _swizzle(variant: str, group: str, rows: str = "num_m", columns: str = "num_n", pid: str = "b") -> str:
    """The grouped order of matmul tiles; variant b takes the remainder of the whole pid."""
    offset = "within % size" if variant == "a" else "pid % size"
    return f"""
pid = {pid}
rows = {rows}
columns = {columns}
per_group = {group} * columns
first = pid // per_group * {group}
size = min(rows - first, {group})
within = pid % per_group
pm = first + {offset}
pn = within // size
"""


_BY_SUBTRACTION = """
pid = {pid}
rows = cdiv(M, TM)
columns = cdiv(N, TN)
first = pid // columns // 8 * 8
size = min(rows - first, 8)
within = pid - first * columns
pm = first + within % size
pn = within // size
"""
_LINE = "b >= 0, 0 <= l < B, b*B + l < N"
_TILE = "pm >= 0, pn >= 0, 0 <= i < BM, 0 <= j < BN, pm*BM + i < M, pn*BN + j < N"
_TILE128 = "pm >= 0, pn >= 0, 0 <= i < 128, 0 <= j < 128, pm*128 + i < M, pn*128 + j < N"
_PERSISTENT = "0 <= b < G, k >= 0, b + k*G < total"
_RAGGED = "b >= 0, pm >= 0, 0 <= i < BM, pm*BM + i < cu[b + 1] - cu[b]"
_CU = ("cu", "b, b + 1")

CATALOGUE: list[Pattern] = [
    Pattern("01a line, symbolic block", "unsat", "b*B + l", _LINE, "B >= 1, N >= 0"),
    Pattern("01b line, block 1024", "unsat", "b*1024 + l", "b >= 0, 0 <= l < 1024, b*1024 + l < N", "N >= 0"),
    Pattern(
        "01x blocks overlap by one",
        "sat",
        "b*(B-1) + l",
        "b >= 0, 0 <= l < B, b*(B-1) + l < N",
        "B >= 2, N >= 0",
    ),
    Pattern("01y block index missing", "sat", "l", "b >= 0, 0 <= l < B, l < N", "B >= 1, N >= 1"),
    Pattern("01z one lane too many", "sat", "b*1024 + l", "b >= 0, 0 <= l < 1025, b*1024 + l < N", "N >= 1"),
    Pattern("02a two axes", "unsat", "b0, b1", "b0 >= 0, b1 >= 0", blocks=("b0", "b1")),
    Pattern("02x one axis used twice", "sat", "b0, b0", "b0 >= 0, b1 >= 0", blocks=("b0", "b1")),
    Pattern("03a divmod", "unsat", "b // n, b % n", "b >= 0", "n >= 1"),
    Pattern("03b divmod by cdiv(N, 128)", "unsat", "b // cdiv(N, 128), b % cdiv(N, 128)", "b >= 0", "N >= 1"),
    Pattern(
        "03c divmod by cdiv(N, t)",
        "unsat",
        "b // cdiv(N, t), b % cdiv(N, t)",
        "b >= 0",
        "N >= 1, t >= 1",
        lanes=(),
    ),
    Pattern("03d three digits", "unsat", "b // (h*n), (b // n) % h, b % n", "b >= 0", "n >= 1, h >= 1"),
    Pattern("03e three digits, nested", "unsat", "b // n // h, b // n % h, b % n", "b >= 0", "n >= 1, h >= 1"),
    Pattern("03x divide by columns, mod rows", "sat", "b // n, b % m", "0 <= b < n*m", "n >= 1, m >= 1"),
]

for _variant in "ab":
    for _group in ("8", "GROUP"):
        _base = f"04{_variant} swizzle, group {_group}"
        _known = "GROUP >= 1" if _group == "GROUP" else "8 >= 1"
        _inside = "b >= 0, b < rows*columns"
        CATALOGUE += [
            Pattern(
                _base,
                "unsat",
                "pm, pn",
                _inside,
                f"num_n >= 1, num_m >= 1, {_known}",
                _swizzle(_variant, _group),
            ),
            Pattern(
                f"{_base}, tiles of 128",
                "unsat",
                "pm, pn",
                _inside,
                f"M >= 1, N >= 1, {_known}",
                _swizzle(_variant, _group, "cdiv(M, 128)", "cdiv(N, 128)"),
            ),
            Pattern(
                f"{_base}, symbolic tiles",
                "unsat",
                "pm, pn",
                _inside,
                f"M >= 1, N >= 1, {_known}, tm >= 1, tn >= 1",
                _swizzle(_variant, _group, "cdiv(M, tm)", "cdiv(N, tn)"),
            ),
        ]

CATALOGUE += [
    Pattern(
        "04w swizzle without min: out of range, never twice",
        "unsat",
        "b // (8*n) * 8 + b % (8*n) % 8, b % (8*n) // 8",
        "0 <= b < m*n",
        "n >= 1, m >= 1",
    ),
    Pattern(
        "04x swizzle mixes group and size",
        "sat",
        "first + within % size, within // 8",
        "b >= 0, b < rows*columns",
        "num_n >= 1, num_m >= 1",
        _swizzle("a", "8"),
    ),
    Pattern(
        "04z swizzle, group not empty, pid unbounded",
        "unsat",
        "pm, pn",
        "b >= 0, size >= 1",
        "num_n >= 1, num_m >= 1",
        _swizzle("a", "8"),
    ),
    Pattern("05a persistent", "unsat", "b + k*G", _PERSISTENT, "G >= 1"),
    Pattern("05b persistent divmod", "unsat", "(b + k*G) // n, (b + k*G) % n", _PERSISTENT, "G >= 1, n >= 1"),
]
for _variant in "ab":
    for _group, _known in (("8", ""), ("GROUP", ", GROUP >= 1")):
        CATALOGUE.append(
            Pattern(
                f"05{'c' if _group == '8' else 'd'} persistent swizzle {_variant}, group {_group}",
                "unsat",
                "pm, pn",
                _PERSISTENT,
                f"G >= 1, num_n >= 1, num_m >= 1, total == num_m*num_n{_known}",
                _swizzle(_variant, _group, pid="b + k*G"),
            )
        )

_NESTED = "H >= 1, M >= 1, D >= 1, sd >= 1, sm >= D*sd, sh >= M*sm"
_HEADS = "0 <= h < H, 0 <= m < M, 0 <= d < D"
_ATTENTION = "hz >= 0, pm >= 0, 0 <= i < BM, 0 <= d < D, pm*BM + i < M"


def _gemm(
    tile_m: str, tile_n: str, pid: str = "b", rows: str = "cdiv(M, {})", columns: str = "cdiv(N, {})"
) -> str:
    lets = _swizzle("a", "8", rows.format(tile_m), columns.format(tile_n), pid)
    return f"{lets}r = pm*{tile_m} + i\nc = pn*{tile_n} + j\n"


def _gemm_inside(tile_m: str, tile_n: str, block: str = "b >= 0, b < rows*columns") -> str:
    return f"{block}, 0 <= i < {tile_m}, 0 <= j < {tile_n}, r < M, c < N"


CATALOGUE += [
    Pattern(
        "04y swizzle by subtraction",
        "unsat",
        "pm, pn",
        "0 <= b < grid, 0 <= pm*TM < M, 0 <= pn*TN < N",
        "M >= 0, N >= 0, TM >= 1, TN >= 1, grid <= rows*columns",
        _BY_SUBTRACTION.format(pid="b"),
    ),
    Pattern(
        "05e persistent swizzle by subtraction",
        "unsat",
        "pm, pn",
        f"{_PERSISTENT}, 0 <= pm*TM < M, 0 <= pn*TN < N",
        "M >= 0, N >= 0, TM >= 1, TN >= 1, G >= 1, total == rows*columns",
        _BY_SUBTRACTION.format(pid="b + k*G"),
    ),
    Pattern(
        "05x persistent, step one short",
        "sat",
        "b + k*(G-1)",
        "0 <= b < G, k >= 0, b + k*(G-1) < total",
        "G >= 2",
    ),
    Pattern("06a row and column", "unsat", "b*s + col", "b >= 0, 0 <= col < N", "N >= 1, s >= N"),
    Pattern(
        "06b strided tile, symbolic",
        "unsat",
        "(pm*BM + i)*s + pn*BN + j",
        _TILE,
        "N >= 1, M >= 1, s >= N, BM >= 1, BN >= 1",
        blocks=("pm", "pn"),
    ),
    Pattern(
        "06b strided tile, 128",
        "unsat",
        "(pm*128 + i)*s + pn*128 + j",
        _TILE128,
        "N >= 1, M >= 1, s >= N",
        blocks=("pm", "pn"),
    ),
    Pattern(
        "06b two strides",
        "unsat",
        "(pm*BM + i)*sm + (pn*BN + j)*sn",
        _TILE,
        "N >= 1, M >= 1, sn >= 1, sm >= N*sn, BM >= 1, BN >= 1",
        blocks=("pm", "pn"),
    ),
    Pattern("06c three nested strides", "unsat", "h*sh + m*sm + d*sd", _HEADS, _NESTED, blocks=("h", "m")),
    Pattern(
        "06d four nested strides",
        "unsat",
        "b*sb + h*sh + m*sm + d*sd",
        f"b >= 0, {_HEADS}",
        f"{_NESTED}, sb >= H*sh",
        blocks=("b", "h", "m"),
    ),
    Pattern(
        "06e four axes, contiguous",
        "unsat",
        "((b*H + h)*M + m)*D + d",
        f"b >= 0, {_HEADS}",
        "H >= 1, M >= 1, D >= 1",
        blocks=("b", "h", "m"),
    ),
    Pattern(
        "06f four axes, index tuple",
        "unsat",
        "b, h, m, d",
        f"b >= 0, {_HEADS}",
        "H >= 1, M >= 1, D >= 1",
        blocks=("b", "h", "m"),
    ),
    Pattern(
        "06g attention output, strided",
        "unsat",
        "(hz // H)*sz + (hz % H)*sh + (pm*BM + i)*sm + d",
        _ATTENTION,
        "H >= 1, M >= 1, D >= 1, BM >= 1, sm >= D, sh >= M*sm, sz >= H*sh",
        blocks=("hz", "pm"),
    ),
    Pattern(
        "06h attention output, index tuple",
        "unsat",
        "hz // H, hz % H, pm*BM + i, d",
        _ATTENTION,
        "H >= 1, M >= 1, D >= 1, BM >= 1",
        blocks=("hz", "pm"),
    ),
    Pattern(
        "06i gemm swizzle, strided, symbolic",
        "unsat",
        "r*s + c",
        _gemm_inside("BM", "BN"),
        "M >= 1, N >= 1, BM >= 1, BN >= 1, s >= N",
        _gemm("BM", "BN"),
    ),
    Pattern(
        "06i gemm swizzle, strided, 128",
        "unsat",
        "r*s + c",
        _gemm_inside("128", "128"),
        "M >= 1, N >= 1, s >= N",
        _gemm("128", "128"),
    ),
    Pattern(
        "06j gemm swizzle, index tuple",
        "unsat",
        "r, c",
        _gemm_inside("BM", "BN"),
        "M >= 1, N >= 1, BM >= 1, BN >= 1",
        _gemm("BM", "BN"),
    ),
    Pattern("06x wrong stride", "sat", "b*M + col", "0 <= b < M, 0 <= col < N", "N >= 1, M >= 1, s >= N"),
    Pattern("06y column mask off by one", "sat", "b*s + col", "b >= 0, 0 <= col <= N", "N >= 1, s == N"),
    Pattern("06z no layout contract", "sat", "b*s + col", "b >= 0, 0 <= col < N", "N >= 1, s >= 1"),
    Pattern(
        "07a halves of a row",
        "unsat",
        "b*s + i",
        "b >= 0, 0 <= i < H",
        "H >= 1, s >= 2*H",
        other="b*s + H + i",
    ),
    Pattern(
        "07b halves, two stores",
        "unsat",
        "b, i",
        "b >= 0, 0 <= i < H",
        "H >= 1",
        other="b, H + i",
        blocks=(),
        always=("b",),
    ),
    Pattern(
        "07c split-k buffers",
        "unsat",
        "(ks*M + b)*N + i",
        "ks >= 0, 0 <= b < M, 0 <= i < N",
        "M >= 1, N >= 1",
        blocks=("ks", "b"),
    ),
    Pattern(
        "07d tiles of two shapes",
        "unsat",
        "b*16 + i",
        "b >= 0, 0 <= i < 16, b < 2*n",
        "n >= 0",
        other="(b - 2*n + n)*32 + i",
        other_inside="b >= 2*n, 0 <= i < 32",
    ),
    Pattern(
        "07x second half starts early",
        "sat",
        "b, i",
        "b >= 0, 0 <= i < H",
        "H >= 1",
        other="b, H - 1 + i",
        blocks=(),
        always=("b",),
    ),
    Pattern(
        "07y split-k without its term", "sat", "b", "0 <= ks < S, 0 <= b < M", "M >= 1", blocks=("ks", "b")
    ),
    Pattern("08a in place", "unsat", "b", "b >= 0", other="b"),
    Pattern("08x in place, reads the neighbour", "sat", "b", "0 <= b < grid", other="b + 1"),
    Pattern(
        "08y halo read",
        "sat",
        "b*B + l",
        "0 <= b < grid, 0 <= l < B, b*B + l < N",
        "B >= 1",
        other="b*B + l + 1",
        other_inside="0 <= b < grid, 0 <= l < B, b*B + l + 1 < N",
    ),
    Pattern("09a ragged rows", "unsat", "cu[b] + i", "b >= 0, i >= 0, i < cu[b + 1] - cu[b]", increasing=_CU),
    Pattern(
        "09b ragged tiles", "unsat", "cu[b] + pm*BM + i", _RAGGED, "BM >= 1", blocks=("b", "pm"), increasing=_CU
    ),
    Pattern(
        "09c ragged tiles, strided",
        "unsat",
        "(cu[b] + pm*BM + i)*s + col",
        f"{_RAGGED}, 0 <= col < N",
        "BM >= 1, N >= 1, s >= N",
        blocks=("b", "pm"),
        increasing=_CU,
    ),
    Pattern(
        "09x ragged, inclusive end",
        "sat",
        "cu[b] + i",
        "b >= 0, i >= 0, i <= cu[b + 1] - cu[b]",
        increasing=_CU,
    ),
    Pattern("09y ragged, no contract", "sat", "cu[b] + i", "b >= 0, i >= 0, i < cu[b + 1] - cu[b]"),
    Pattern(
        "09z ragged, tile ignores the end",
        "sat",
        "cu[b] + pm*BM + i",
        "b >= 0, pm >= 0, 0 <= i < BM, pm*BM < cu[b + 1] - cu[b]",
        "BM >= 1",
        blocks=("b", "pm"),
        increasing=_CU,
    ),
    Pattern(
        "10a scatter through a table",
        "unsat",
        "tbl[b]*s + col",
        "b >= 0, 0 <= col < N",
        "N >= 1, s >= N",
        distinct=("tbl", "b"),
    ),
    Pattern(
        "10b page table",
        "unsat",
        "tbl[b*P + t // ps]*ps + t % ps",
        "b >= 0, t >= 0, t < P*ps",
        "P >= 1, ps >= 1",
        blocks=("b", "t"),
        distinct=("tbl", "b*P + t // ps"),
    ),
    Pattern(
        "10c routed rows",
        "unsat",
        "tbl[b*BM + i]*s + pn*BN + j",
        "b >= 0, pn >= 0, 0 <= i < BM, 0 <= j < BN, pn*BN + j < N",
        "BM >= 1, BN >= 1, N >= 1, s >= N",
        blocks=("b", "pn"),
        distinct=("tbl", "b*BM + i"),
    ),
    Pattern("10x table without contract", "sat", "tbl[b]*s + col", "b >= 0, 0 <= col < N", "N >= 1, s >= N"),
    Pattern(
        "20a four axes, expanded",
        "unsat",
        "b*H*M*D + h*M*D + m*D + d",
        f"b >= 0, {_HEADS}",
        "H >= 1, M >= 1, D >= 1",
        blocks=("b", "h", "m"),
    ),
    Pattern(
        "20b three axes, expanded",
        "unsat",
        "b*M*D + m*D + d",
        "b >= 0, 0 <= m < M, 0 <= d < D",
        "M >= 1, D >= 1",
        blocks=("b", "m"),
    ),
    Pattern(
        "20c flat offset to strided rows",
        "unsat",
        "o // (H*W) * s + o % (H*W)",
        "b >= 0, 0 <= l < B, o < N",
        "H >= 1, W >= 1, B >= 1, s >= H*W",
        "o = b*B + l",
    ),
    Pattern(
        "20d flat offset, three digits",
        "unsat",
        "o // W // C, o % W, o // W % C",
        "b >= 0, 0 <= l < B, o < N",
        "W >= 1, B >= 1, C >= 1",
        "o = b*B + l",
    ),
    Pattern(
        "20e flat offset, four digits",
        "unsat",
        "o // (C*H*W), o // (H*W) % C, o // W % H, o % W",
        "b >= 0, 0 <= l < B, o < N",
        "W >= 1, B >= 1, C >= 1, H >= 1",
        "o = b*B + l",
    ),
    Pattern(
        "20f flat offset, literal digits",
        "unsat",
        "o // (C*1024), o // 1024 % C, o // 32 % 32, o % 32",
        "b >= 0, 0 <= l < 1024, o < N",
        "C >= 1",
        "o = b*1024 + l",
    ),
    Pattern("20g reversed", "unsat", "total - 1 - b", "0 <= b < total", "total >= 1"),
    Pattern("20h chiplet remap", "unsat", "b % X * P + b // X", "0 <= b < X*P", "X >= 1, P >= 1"),
    Pattern(
        "20i chiplet remap by 8, divisible",
        "unsat",
        "b % 8 * (G // 8) + b // 8",
        "0 <= b < G",
        "G >= 8, G % 8 == 0",
    ),
    Pattern("20j chiplet remap by 8, any grid", "sat", "b % 8 * (G // 8) + b // 8", "0 <= b < G", "G >= 8"),
    Pattern(
        "20k batched swizzle",
        "unsat",
        "b // (num_m*num_n), pm, pn",
        "b >= 0",
        "num_m >= 1, num_n >= 1",
        _swizzle("a", "8", pid="b % (num_m*num_n)"),
    ),
    Pattern(
        "20l persistent batched swizzle b",
        "unsat",
        "(b + k*G) // (num_m*num_n), pm, pn",
        "0 <= b < G, k >= 0",
        "num_m >= 1, num_n >= 1, GROUP >= 1, G >= 1",
        _swizzle("b", "GROUP", pid="(b + k*G) % (num_m*num_n)"),
    ),
    Pattern(
        "20m persistent gemm, strided",
        "unsat",
        "r*s + c",
        _gemm_inside("BM", "BN", "0 <= b < G, k >= 0, pid < rows*columns"),
        "M >= 1, N >= 1, BM >= 1, BN >= 1, s >= N, G >= 1",
        _gemm("BM", "BN", "b + k*G"),
    ),
    Pattern(
        "20n batched gemm, three strides",
        "unsat",
        "z*sb + r*sm + c*sn",
        _gemm_inside("128", "128", "b >= 0, b < rows*columns, z >= 0"),
        "M >= 1, N >= 1, sn >= 1, sm >= N*sn, sb >= M*sm",
        _gemm("128", "128"),
        blocks=("b", "z"),
    ),
    Pattern(
        "20o row- or column-major",
        "unsat",
        "row*sm + col*sn",
        "0 <= row < M, 0 <= col < N",
        "N >= 1, M >= 1, (sn >= 1 and sm >= N*sn) or (sm >= 1 and sn >= M*sm)",
        blocks=("row", "col"),
    ),
    Pattern(
        "20p shared head written per query head",
        "sat",
        "b // q, i",
        "0 <= b < H, 0 <= i < D",
        "q >= 1, H >= 1, H % q == 0",
    ),
    Pattern("20r chunk loop", "unsat", "(b*c + k)*B + l", "b >= 0, 0 <= k < c, 0 <= l < B", "c >= 1, B >= 1"),
    Pattern(
        "20s grid-stride loop", "unsat", "(b + k*G)*B + l", "0 <= b < G, k >= 0, 0 <= l < B", "G >= 1, B >= 1"
    ),
    Pattern(
        "20t chunk loop, one too many",
        "sat",
        "(b*c + k)*B + l",
        "b >= 0, 0 <= k <= c, 0 <= l < B",
        "c >= 1, B >= 1",
    ),
    Pattern("20u range split", "unsat", "i", "0 <= b < G, b*n // G <= i < (b + 1)*n // G", "G >= 1, n >= 0"),
    Pattern(
        "20v rows per block",
        "unsat",
        "row",
        "0 <= b < G, b*cdiv(M, G) <= row < min((b + 1)*cdiv(M, G), M)",
        "G >= 1, M >= 1",
    ),
    Pattern("20w triangular", "unsat", "i*(i + 1) // 2 + j", "i >= 0, 0 <= j <= i", blocks=("i", "j")),
    Pattern(
        "20y rope halves",
        "unsat",
        "b*s + h*(2*half) + i",
        "b >= 0, 0 <= h < H, 0 <= i < half",
        "half >= 1, H >= 1, s >= H*half*2",
        other="b*s + h*(2*half) + half + i",
        blocks=(),
        always=("b", "h"),
    ),
]

CATALOGUE += [
    Pattern(
        "21a persistent batched gemm, index tuple",
        "unsat",
        "z, r, c",
        _gemm_inside("BM", "BN", "0 <= b < G, k >= 0, b + k*G < batches*rows*columns"),
        "M >= 1, N >= 1, BM >= 1, BN >= 1, G >= 1, batches >= 1",
        f"{_gemm('BM', 'BN', '(b + k*G) % (cdiv(M, BM)*cdiv(N, BN))')}z = (b + k*G) // (rows*columns)\n",
    ),
    Pattern(
        "21b flash decode, partial results",
        "unsat",
        "((hz // H*H + hz % H)*S + s)*D + d",
        "0 <= hz < Z*H, 0 <= s < S, 0 <= d < D",
        "Z >= 1, H >= 1, S >= 1, D >= 1",
        blocks=("hz", "s"),
        lanes=("d",),
    ),
    Pattern(
        "21c snake order",
        "unsat",
        "b // n, b % n if b // n % 2 == 0 else n - 1 - b % n",
        "b >= 0",
        "n >= 1",
    ),
    Pattern(
        "21d stream-k, tiles of a block",
        "unsat",
        "t // n, t % n",
        "0 <= b < G, b*total // G <= t < (b + 1)*total // G",
        "G >= 1, n >= 1, total >= 0",
    ),
    Pattern(
        "21e rows of groups, partial sums",
        "unsat",
        "b*N + col",
        "0 <= b < G, 0 <= col < N",
        "G >= 1, N >= 1",
    ),
    Pattern(
        "21x partial sums of a shared group",
        "sat",
        "b % groups*N + col",
        "0 <= b < M, 0 <= col < N",
        "M >= 1, N >= 1, groups >= 1",
    ),
    Pattern(
        "21y split without its term",
        "sat",
        "hz*D + d",
        "0 <= hz < Z*H, 0 <= s < S, 0 <= d < D",
        "Z >= 1, H >= 1, S >= 1, D >= 1",
        blocks=("hz", "s"),
        lanes=("d",),
    ),
]

_GROUPS = "num_n >= 1, num_m >= 1, GROUP >= 1, 0 <= b < rows*columns"
SINGLE: list[Single] = [
    Single("13a masked line", "unsat", "0 <= b*B + l < N", "b >= 0, 0 <= l < B, b*B + l < N"),
    Single("13b tile index", "unsat", "0 <= b < cdiv(N, T)", "T >= 1, 0 <= b < grid, grid == cdiv(N, T)"),
    Single("13b2 tile index, 128", "unsat", "0 <= b < cdiv(N, 128)", "0 <= b < grid, grid == cdiv(N, 128)"),
    Single(
        "13c divisible", "unsat", "b*B + l < N", "B >= 1, N % B == 0, grid == N // B, 0 <= b < grid, 0 <= l < B"
    ),
    Single(
        "13c2 divisible, 1024",
        "unsat",
        "b*1024 + l < N",
        "N % 1024 == 0, grid == N // 1024, 0 <= b < grid, 0 <= l < 1024",
    ),
    Single(
        "13x ragged, unmasked",
        "sat",
        "b*B + l < N",
        "B >= 1, N >= 1, grid == cdiv(N, B), 0 <= b < grid, 0 <= l < B",
    ),
    Single("13d divmod", "unsat", "0 <= b // n < m, 0 <= b % n < n", "n >= 1, m >= 1, 0 <= b < m*n"),
]
for _variant in "ab":
    for _group in ("8", "GROUP"):
        _lets = _swizzle(_variant, _group)
        _what = f"swizzle {_variant}, group {_group}"
        SINGLE += [
            Single(f"13e {_what}: size", "unsat", "size > 0", _GROUPS, _lets),
            Single(f"13f {_what}: row", "unsat", "0 <= pm < rows", _GROUPS, _lets),
            Single(f"13g {_what}: column", "unsat", "0 <= pn < columns", _GROUPS, _lets),
            Single(
                f"13l {_what}: last row and column",
                "unsat",
                "0 <= pm*TM < M, 0 <= pn*TN < N",
                "M >= 0, N >= 0, GROUP >= 1, TM >= 1, TN >= 1, 0 <= b < grid, grid <= rows*columns",
                _swizzle(_variant, _group, "cdiv(M, TM)", "cdiv(N, TN)"),
            ),
            Single(
                f"13m {_what}: another array",
                "unsat",
                "0 <= pm*TM < Y, 0 <= pn*TN < Z",
                "M >= 0, N >= 0, GROUP >= 1, TM >= 1, TN >= 1, 0 <= b < grid, grid <= rows*columns, "
                "rows <= cdiv(Y, TM), columns <= cdiv(Z, TN)",
                _swizzle(_variant, _group, "cdiv(M, TM)", "cdiv(N, TN)"),
            ),
        ]
for _name, _pid, _range in (
    ("13n", "b", "0 <= b < grid, grid <= rows*columns"),
    ("13o persistent", "b + k*grid", "0 <= b < grid, k >= 0, b + k*grid < rows*columns"),
):
    for _goal, _extra in (
        ("columns >= 1, size >= 1", ""),
        ("0 <= pm*TM < M", ""),
        ("0 <= pn*TN < N", ""),
        ("0 <= pm*TM < Y", ", rows <= cdiv(Y, TM)"),
        ("0 <= pn*TN < Z", ", columns <= cdiv(Z, TN)"),
    ):
        SINGLE.append(
            Single(
                f"{_name} swizzle by subtraction: {_goal}",
                "unsat",
                _goal,
                f"M >= 0, N >= 0, TM >= 1, TN >= 1, {_range}{_extra}",
                _BY_SUBTRACTION.format(pid=_pid),
            )
        )
SINGLE += [
    Single("13h persistent", "unsat", "0 <= b + k*G < total", "G >= 1, 0 <= b < G, k >= 0, b + k*G < total"),
    Single(
        "13i last element of a matrix",
        "unsat",
        "row*s + col <= (M - 1)*s + N - 1",
        "M >= 1, N >= 1, s >= N, 0 <= row < M, 0 <= col < N",
    ),
    Single(
        "13j last element of four axes",
        "unsat",
        "b*sb + h*sh + m*sm + d <= (Z - 1)*sb + (H - 1)*sh + (M - 1)*sm + D - 1",
        "Z >= 1, H >= 1, M >= 1, D >= 1, sm >= D, sh >= M*sm, sb >= H*sh, "
        "0 <= b < Z, 0 <= h < H, 0 <= m < M, 0 <= d < D",
    ),
    Single(
        "13k ragged row",
        "unsat",
        "cu[b] + i < cu[n] + 1",
        "0 <= b < n, i >= 0, i < cu[b + 1] - cu[b]",
        increasing=("cu", "b, b + 1, n"),
    ),
    Single(
        "12a offset fits 32 bits",
        "unsat",
        "b*B + l <= 2147483647",
        "B >= 1, N >= 0, N + B <= 2147483648, 0 <= b < grid, grid == cdiv(N, B), 0 <= l < B",
    ),
    Single(
        "12b no contract on N + B",
        "sat",
        "b*B + l <= 2147483647",
        "B >= 1, N >= 1, N <= 2147483647, 0 <= b < grid, grid == cdiv(N, B), 0 <= l < B",
    ),
    Single(
        "12c block 1024",
        "unsat",
        "b*1024 + l <= 2147483647",
        "N >= 1, N <= 2147483647, 0 <= b < grid, grid == cdiv(N, 1024), 0 <= l < 1024",
    ),
    Single(
        "12d strided offset, contract",
        "unsat",
        "row*s + col <= 2147483647",
        "M >= 1, N >= 1, s >= N, (M - 1)*s + N - 1 <= 2147483647, 0 <= row < M, 0 <= col < N",
    ),
    Single(
        "12e strided offset, no contract",
        "sat",
        "row*s + col <= 2147483647",
        "M >= 1, N >= 1, s >= N, 0 <= row < M, 0 <= col < N",
    ),
    Single(
        "12f masked rows too",
        "sat",
        "(pm*128 + i)*s <= 2147483647",
        "M >= 1, s >= 1, (M - 1)*s <= 2147483647, 0 <= pm < cdiv(M, 128), 0 <= i < 128",
    ),
]
