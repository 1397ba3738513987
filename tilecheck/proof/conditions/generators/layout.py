"""The row-major layout of flat memory that keeps all elements of an access apart.

    x + b * s_b + h * s_h + n * s_n,  h < H, n < N       s_n >= 1, s_h >= N * s_n, s_b >= H * s_h
    x + (b * H + h) * N + n                               the blocks are no more than give h < H
    x + (t * B + c * C + l) * N + n,  l < C               c < B // C: the rows of one block of rows

Each stride spans what the digits inside it can reach, in a row and within what a mask bounds as a whole. Where
strides are products of launch values, this says how many blocks there are. Which digit lies inside which is a
guess: strides that come later in the parameters are smaller. Nothing here is trusted: the search asks for a
proof under all of the conditions, and then leaves out those that it does without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from math import gcd

from tilecheck.analysis.limits import promised_ranges, ranges_of
from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import ONE, Expr, Kind, add, const, eq, floordiv, le, mul, sub, symbols, walk
from tilecheck.ir.kernel import Access, Kernel
from tilecheck.proof.algebra.polynomial import (
    UNIT,
    Key,
    Monomial,
    Polynomial,
    combine,
    constant,
    divides,
    key,
    scaled,
    times,
    without,
)
from tilecheck.proof.conditions.generators.flat import factor_of, factored
from tilecheck.proof.conditions.ranges import Ranges
from tilecheck.proof.conditions.terms import Terms

_STRIDES = (Kind.SCALAR, Kind.STRIDE, Kind.CONSTANT)
_NUMBERS = (Kind.SCALAR, Kind.CONSTANT)


@dataclass(frozen=True, slots=True)
class _Digit:
    """`stride * digit` with digit < count; `factors` are those of the stride that are no literals. `parts` are
    the terms of the digit where a condition bounds their sum, `falls` says that it counts down."""

    stride: Expr
    count: Expr
    factors: Monomial
    parts: Polynomial = field(default_factory=dict)
    falls: bool = False


def layouts(
    access: Access, kernel: Kernel, terms: Terms, *, one_block: bool = False
) -> Iterator[tuple[Expr, ...]]:
    """Sets of conditions, innermost digits first: for the digits of the index, and for those of their sums too;
    the place of `one_block` itself is no digit. None where the index is not a sum of bounded digits, or what
    is asked is no condition on a layout."""
    if not access.flat:
        return
    ranges = Ranges(terms, (access.guard, access.mask, access.lane_facts))
    index = terms.poly(access.axes[0].index)
    if one_block:
        index = {m: c for m, c in index.items() if not terms.varies(m) or _moves(m, terms)}
    looked_up = {m: c for m, c in index.items() if terms.varies(m) and _reads(m, terms)}
    if looked_up:
        separate = tuple(_of_separate_tables(index, looked_up, ranges, kernel, terms))
        yield from separate or _of_tables(index, looked_up, ranges, kernel, terms)
        contracts = {c.array for c in kernel.contracts}
        if any(n.args[0] in contracts for m in looked_up for n in _reads_in(m, terms)):
            return  # what a mask says of a value makes it a digit like any other
    outer = _outer(index, ranges, terms)
    signs = (*_signs(index, terms), *_signs_of_parts(outer, terms))
    digits = [outer, [*outer, *places]] if outer and (places := _places(index, outer, terms)) else [outer]
    spans = [_spans(d, kernel, terms, beside=beside) for d in digits if d for beside in (False, True)]
    spans = [*_last_of_rows(index, outer, terms), *spans]
    for own in dict.fromkeys(spans):
        if not all(is_layout(c, terms) for c in own):
            continue
        inner: dict[Expr, None] = {}
        for digit in outer:
            moving = {m: c for m, c in digit.parts.items() if terms.varies(m)}
            found = (
                _digits(moving, combine(digit.parts, moving, -1), ranges, terms, within=True)
                if moving
                else None
            )
            inner.update(dict.fromkeys(c for c in _spans(found or [], kernel, terms) if is_layout(c, terms)))
        for conditions in dict.fromkeys((own, tuple(dict.fromkeys((*own, *inner))))):
            yield conditions
            if signs:
                yield (*conditions, *signs)


def in_place(first: Access, second: Access, terms: Terms) -> tuple[Expr, ...]:
    """What two accesses of one array call by two names is one stride: `y_stride == x_stride` where a kernel is
    told to store where it loads from. Which belong together is guessed from how far their digits reach."""
    if first is second or first.array != second.array or not (first.flat and second.flat):
        return ()
    both = []
    for access in (first, second):
        ranges = Ranges(terms, (access.guard, access.mask, access.lane_facts))
        both.append(_outer(terms.poly(access.axes[0].index), ranges, terms))
    others = {digit.count: digit.stride for digit in both[1] if _is_stride(digit.stride, terms)}
    pairs = [(d.stride, others.get(d.count)) for d in both[0] if _is_stride(d.stride, terms)]
    return tuple(eq(a, b) for a, b in pairs if b is not None and a is not b)


def _of_separate_tables(
    index: Polynomial,
    looked_up: Polynomial,
    ranges: Ranges,
    kernel: Kernel,
    terms: Terms,
) -> Iterator[tuple[Expr, ...]]:
    """`t[i] * s_b + u[i] * s_c + h * s_h`: each looked-up number is a digit of its own, below what a contract
    says of it. What they have in common would be the stride of one digit, to which both belong."""
    if terms.common(looked_up) != UNIT:
        return
    promised = promised_ranges(kernel)
    tables: list[_Digit] = []
    for m, c in looked_up.items():
        stride = tuple(number for number in m if terms.uniform(terms.atom(number)))
        element = mul(*(terms.atom(number) for number in m if number not in stride))
        highs = [high for _, high in ranges_of(element, promised)] if element.op == "read" else []
        if not stride or not highs or c < 0:
            return
        tables.append(_Digit(terms.expr({stride: c}), highs[0], stride))
    rest = combine(index, looked_up, -1)
    moving = {m: c for m, c in rest.items() if terms.varies(m)}
    digits = _digits(moving, combine(rest, moving, -1), ranges, terms)
    if digits is not None and len({digit.factors for digit in tables}) > 1:
        yield tuple(c for c in _spans([*digits, *tables], kernel, terms) if is_layout(c, terms))


def _of_tables(
    index: Polynomial,
    looked_up: Polynomial,
    ranges: Ranges,
    kernel: Kernel,
    terms: Terms,
) -> Iterator[tuple[Expr, ...]]:
    """`(t[n] + u[i] * B + l) * s + c`: what is added to a row of the tables is part of that row, and spans no
    more than a step of `u`. How many rows there are is what a contract says of `t`."""
    shared, scale = terms.common(looked_up), gcd(*looked_up.values())
    rows = {m: c for m, c in index.items() if divides(shared, m) and c % scale == 0}
    row = {without(m, *shared): c // scale for m, c in rows.items()}
    count = _rows(row, kernel, terms)
    most = next(iter(terms.poly(count))) if len(terms.poly(count)) == 1 else UNIT
    outer = {m for m in row if most and divides(most, m) and not _reads(m, terms)}  # whole tables of rows
    row = {m: c for m, c in row.items() if m not in outer}
    rest = {m: c for m, c in index.items() if m not in rows or without(m, *shared) in outer}
    moving = {m: c for m, c in rest.items() if terms.varies(m)}
    digits = _digits(moving, combine(rest, moving, -1), ranges, terms)
    if digits is None:
        return
    own = (
        *_spans([*digits, _Digit(terms.expr({shared: scale}), count, shared)], kernel, terms),
        *_last_digits(index, ranges, terms),
    )
    inner: dict[Expr, None] = {}
    added = {m: c for m, c in row.items() if not _reads(m, terms)}
    still = {m: c for m, c in added.items() if not terms.varies(m)}
    parts = _digits(combine(added, still, -1), still, ranges, terms, within=True)
    for m in row:
        step = tuple(number for number in m if terms.uniform(terms.atom(number)))
        if parts and step and _reads(m, terms):
            whole = _Digit(terms.expr({step: 1}), ONE, step)
            inner.update(dict.fromkeys(_spans([*parts, whole], kernel, terms)))
    own = tuple(c for c in own if is_layout(c, terms))
    inner = {c: None for c in inner if is_layout(c, terms) or _is_of_compile_time(c) or _counts_parts(c)}
    yield from dict.fromkeys(found for found in (own, (*own, *inner)) if found)


def _is_of_compile_time(condition: Expr) -> bool:
    """Whether it is about constants alone: how tiles lie in a step of a table is no limit on a launch."""
    return all(s.kind is Kind.CONSTANT for s in symbols(condition))


def _counts_parts(condition: Expr) -> bool:
    """`grid[0] <= B // C`: a step of a table has so many parts, whatever else its size is that of."""
    low, high = condition.args if condition.op == "le" else (condition, ONE)
    return low.op == "sym" and low.args[0].kind is Kind.GRID and high.op == "floordiv"


def _last_digits(index: Polynomial, ranges: Ranges, terms: Terms) -> Iterator[Expr]:
    """`x % n` without `x // n` tells blocks apart where x stays below n."""
    nodes = tuple(walk(*(terms.atom(number) for m in index for number in m)))
    for node in nodes:
        if node.op == "mod" and not terms.uniform(node) and floordiv(*node.args) not in nodes:
            for top in ranges.highest(node.args[0])[:1]:
                yield from terms.at_most(terms.poly(add(top, 1)), terms.poly(node.args[1]))


def _rows(row: Polynomial, kernel: Kernel, terms: Terms) -> Expr:
    """What the rows that tables tell stay below, as far as a contract says so."""
    promised = promised_ranges(kernel)
    for m, c in row.items():
        element = terms.atom(m[0]) if len(m) == 1 and c == 1 else ONE
        for _, high in ranges_of(element, promised) if element.op == "read" else ():
            return sub(high, 1)
    return ONE


def _moves(m: Monomial, terms: Terms) -> bool:
    """Whether it may change inside a block."""
    kinds = {s.kind for number in m for s in symbols(terms.atom(number))}
    return _reads(m, terms) or any(kind > Kind.BLOCK for kind in kinds)


def _reads(m: Monomial, terms: Terms) -> bool:
    return any(True for _ in _reads_in(m, terms))


def _reads_in(m: Monomial, terms: Terms) -> Iterator[Expr]:
    return (node for node in walk(*(terms.atom(number) for number in m)) if node.op == "read")


def lengths(access: Access, kernel: Kernel, terms: Terms) -> Iterator[Expr]:
    """How long memory is that holds all values of the outermost digit, and what the digits within it must span
    for that: `m * T * N` where a row `(t * N + c * B + l)` has no more than N elements."""
    ranges = Ranges(terms, (access.guard, access.mask, access.lane_facts))
    digits = sorted(_outer(terms.poly(access.axes[0].index), ranges, terms), key=_place(kernel))
    if len(digits) < 2 or digits[-1].falls:
        return
    whole = terms.poly(mul(digits[-1].count, digits[-1].stride))
    yield le(factored(terms, whole), access.axes[0].extent)
    yield from (c for c in _spans(digits, kernel, terms) if is_layout(c, terms))


def _outer(index: Polynomial, ranges: Ranges, terms: Terms) -> list[_Digit]:
    """The digits of an index; none where it is no sum of bounded digits."""
    rest: Polynomial = {m: c for m, c in index.items() if terms.varies(m)}
    return _digits(rest, combine(index, rest, -1), ranges, terms) or []


def _places(index: Polynomial, digits: Sequence[_Digit], terms: Terms) -> list[_Digit]:
    """Digits that are literals: the third part of a row, `2 * s_part`, where nothing else has that stride."""
    strides = {number for digit in digits for number in digit.factors}
    return [
        _Digit(terms.expr({m: 1}), const(c + 1), m)
        for m, c in index.items()
        if c > 0 and len(m) == 1 and m[0] not in strides and _is_stride(terms.atom(m[0]), terms)
    ]


def _last_of_rows(index: Polynomial, digits: Sequence[_Digit], terms: Terms) -> Iterator[tuple[Expr, ...]]:
    """`row * s_row + n * s_n` of one lane, a count after the n columns of each row: it is inside its row."""
    added = factored(terms, {m: c for m, c in index.items() if not terms.varies(m)})
    if len(digits) == 1 and digits[0].stride is not ONE and symbols(added):
        yield (le(add(added, 1), digits[0].stride),)


def _is_stride(e: Expr, terms: Terms) -> bool:
    return e.op == "sym" and e.args[0].kind in _STRIDES and e.args[0] not in terms.tiles


def _signs(index: Polynomial, terms: Terms) -> tuple[Expr, ...]:
    """Numbers by which what varies is moved are not negative: `(k + first) * B`."""
    varying = {number for m in index if terms.varies(m) for number in m}
    added = {number for m in index if not terms.varies(m) for number in m} - varying
    numbers = (terms.atom(number) for number in sorted(added))
    return tuple(
        le(0, e)
        for e in numbers
        if e.op == "sym" and e.args[0].kind in _NUMBERS and e.args[0] not in terms.tiles
    )


def _signs_of_parts(digits: Sequence[_Digit], terms: Terms) -> Iterator[Expr]:
    """Numbers by which a block index is moved in a digit that a condition bounds: `bid * chunk + row < n`."""
    numbers = {number: None for d in digits for m in d.parts if terms.varies(m) and len(m) > 1 for number in m}
    own = (terms.atom(number) for number in numbers)
    yield from (
        le(0, e) for e in own if e.op == "sym" and e.args[0].kind in _NUMBERS and e.args[0] not in terms.tiles
    )


def _place(kernel: Kernel) -> Callable[[_Digit], tuple[int, int, int, int]]:
    """Inner digits first: strides of fewer factors, and of those the ones named later, of one array those of
    later axes; small literals."""
    names = {param.name: position for position, param in enumerate(kernel.params)}

    def place(digit: _Digit) -> tuple[int, int, int, int]:
        own = [names.get(s.name.partition(".")[0], 0) for s in symbols(digit.stride)]
        return len(digit.factors), -max(own, default=0), _axis(digit), digit.stride.value or 0

    return place


def _spans(digits: Sequence[_Digit], kernel: Kernel, terms: Terms, *, beside: bool = False) -> tuple[Expr, ...]:
    """What each stride must span. With `beside`, a stride that is a multiple of another one comes next to it:
    `(group * C + c) * s_c` is inside `n * s_n`, though its groups are `C * s_c` apart."""
    place = _place(kernel)

    def place_beside(digit: _Digit) -> tuple[tuple[int, int, int, int], int]:
        roots = [d for d in digits if d.factors and set(d.factors) <= set(digit.factors)]
        return min(map(place, roots), default=place(digit)), len(digit.factors)

    inner: _Digit | None = None
    conditions: list[Expr] = []
    for digit in sorted(digits, key=place_beside) if beside else sorted(digits, key=place):
        low = ONE if inner is None else mul(inner.count, inner.stride)
        conditions += _at_least(digit.stride, low, terms, counted=not beside)
        inner = digit
    return tuple(conditions)


def _axis(digit: _Digit) -> int:
    """Minus the last axis of which the stride is one: `x.stride(1)` lies inside `x.stride(0)`."""
    named = (s.name.rpartition(".stride(")[2] for s in symbols(digit.stride) if s.kind is Kind.STRIDE)
    return -max((int(axis.removesuffix(")")) for axis in named), default=0)


def _at_least(stride: Expr, low: Expr, terms: Terms, *, counted: bool) -> tuple[Expr, ...]:
    """`low <= stride`: of one stride as it is, of a product without what both sides share. With `counted`, what
    limits a grid says how many blocks there are."""
    p, q = terms.poly(low), terms.poly(stride)
    if key(p) == key(q) or not symbols(stride, low):
        return ()
    scale = gcd(*q.values(), *(c for m, c in p.items() if m != UNIT))
    if scale > 1:  # 2 * low <= 2 * stride, and 1 <= 2 * stride
        p = {m: -(-c // scale) for m, c in p.items()}
        q = {m: c // scale for m, c in q.items()}
        low, stride = terms.expr(p), terms.expr(q)
    grid = any(terms.has_grid(m) for m in p)
    if stride.op == "sym" and not (grid and (counted or low.op != "mul")):
        return (le(low, stride),)
    excess = combine(p, q, -1)
    shared = terms.common(excess)
    excess = {without(m, *shared): c for m, c in excess.items()}
    if all(m == UNIT for m in excess):
        return ()
    return terms.at_most(excess, constant(0))


def is_layout(condition: Expr, terms: Terms) -> bool:
    """Whether it says of one stride how far it reaches at least, or how many blocks there are at most."""
    low, high = condition.args if condition.op == "le" else (ONE, ONE)
    if low.op == "sym" and low.args[0].kind is Kind.GRID:
        return terms.uniform(high) and not all(s in terms.tiles for s in symbols(high))
    if high.op == "floordiv" and low.op in ("floordiv", "sym"):  # so many steps inside those of another count
        own = [[s for s in symbols(e) if s not in terms.tiles] for e in (low, high)]
        return all(own) and all(s.kind in _NUMBERS for one in own for s in one)
    if high.op != "sym" or high.args[0].kind not in _STRIDES or high.args[0] in terms.tiles:
        return False
    steps = low.op == "mul" and any(s.kind in _STRIDES and s not in terms.tiles for s in symbols(low))
    return high.args[0] not in symbols(low) and (steps or all(s.kind is not Kind.GRID for s in symbols(low)))


def _digits(
    rest: Polynomial, still: Polynomial, ranges: Ranges, terms: Terms, *, within: bool = False
) -> list[_Digit] | None:
    """The digits of a sum. `within` one that a condition bounds, that condition says nothing of its parts."""
    found: list[_Digit] = []
    stated = [] if within else sorted(ranges.known(parts=False), key=lambda known: -len(known[0]))
    for inner, bound in stated:
        factor = factor_of(terms, rest, inner)
        if factor is not None:
            rest = combine(rest, times(factor, inner), -1)
            falls = any(c < 0 for c in inner.values())
            parts = inner if len(inner) > 1 else {}
            found.append(_Digit(terms.expr(factor), add(bound, 1), next(iter(factor)), parts, falls))
    by_stride: dict[Key, list[Expr]] = {}
    for value, stride in terms.strides(rest).items():
        sign = -1 if all(c < 0 for c in stride.values()) else 1
        by_stride.setdefault(key(scaled(stride, sign)), []).append(mul(sign, terms.expr({value: 1})))
    for step, several in by_stride.items():
        tops = ranges.highest(add(*several), own=within or _is_own(add(*several)))
        if not tops:
            return None
        falls = any(e.op == "mul" and e.args[0].value == -1 for e in several)
        factors = step[0][0] if len(step) == 1 else tuple(sorted({a for m, _ in step for a in m}))
        found.append(_Digit(terms.expr(dict(step)), add(tops[0], 1), factors, falls=falls))
    return _shifted(found, still, terms)


def _is_own(e: Expr) -> bool:
    """Whether it is a remainder or a block index, which are bounded by what they are."""
    return e.op == "mod" or (e.op == "sym" and e.args[0].kind is Kind.BLOCK)


def _shifted(digits: list[_Digit], still: Polynomial, terms: Terms) -> list[_Digit]:
    """The digits, each reaching further by the part of what is added that its stride divides; a part that
    several divide goes to one that counts down from it, or to the one with most factors."""
    found = sorted(digits, key=lambda digit: (not digit.falls, -len(digit.factors)))
    for m, c in still.items():
        for number, digit in enumerate(found):
            divides = all(m.count(a) >= digit.factors.count(a) for a in digit.factors)
            if divides and (c > 0 or digit.falls) and digit.stride.value in (None, 1):
                more = {without(m, *digit.factors): c}
                count = terms.expr(combine(terms.poly(digit.count), more)) if digit.falls else None
                parts = combine(digit.parts, more) if digit.parts else digit.parts
                plain = add(digit.count, terms.expr(more)) if count is None else count
                found[number] = replace(digit, count=plain, parts=parts)
                break
    return found
