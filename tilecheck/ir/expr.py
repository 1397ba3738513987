"""Hash-consed integer and boolean expressions: what every stage after the front end computes with.

An expression is a node of a DAG over mathematical integers. Equal expressions are the same object, so
identity is equality and dictionaries keyed by expressions are cheap. Division is *floor* division and
`mod` has the divisor's sign (Python's, cuTile's); both are only meaningful where the divisor is not 0,
which is an obligation of its own (TC301).

Operators (`Expr.op`) and their arguments:

    const v                      an integer literal
    sym s                        a `Symbol` (integer valued)
    add e...  mul e...           n-ary, flattened, constants folded and put first
    floordiv a b   mod a b       min a b   max a b
    ite c a b                    c boolean, a and b integer
    read name e...               the value in memory of array `name` at element e..., an uninterpreted
                                 function: made only for arrays that the launch writes nowhere
    bit k a b                    bitwise operator k in {"and", "or", "xor"}, uninterpreted by the solver
    true  false
    bsym s                       a boolean `Symbol`
    lt a b   le a b   eq a b     comparisons of integers
    not c   all c...   any c...  boolean connectives
"""

from __future__ import annotations

import enum
import math
import operator
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import partial
from typing import Any, TypeVar

from tilecheck.dataclass import dataclass
from tilecheck.errors import UnsupportedConstruct


class Kind(enum.IntEnum):
    """What a symbol ranges over. Kinds from BLOCK on vary inside one launch."""

    CONSTANT = 1  # ct.Constant parameter: fixed at compile time, unknown to us
    SCALAR = 2  # run-time scalar parameter
    EXTENT = 3  # array.shape[k], >= 0
    STRIDE = 4  # array.strides[k]
    GRID = 5  # ct.num_blocks(k), >= 1
    HOST = 6  # a free value of a host function
    BLOCK = 7  # ct.bid(k), 0 <= b < grid k
    LOOP = 8  # iteration number of a loop, >= 0
    LANE = 9  # position inside a tile along one axis, 0 <= l < extent
    OPAQUE = 10  # unknown value, different in each block, iteration and lane


# Limits on what is built, so that no later stage needs one: expressions are printed, evaluated and given to
# the solver by recursion, in Python and in C, and Python writes no integer of more than 4,300 digits as text.
MAX_DEPTH = 250
MAX_TERMS = 4000
MAX_BITS = 4096
_set = object.__setattr__


@dataclass(frozen=True, slots=True)
class Symbol:
    """A free variable.

    `name` is what a user would call it (`ct.bid(0)`, `x.shape[1]`, `i`); `uid` tells apart symbols of one
    name. `bound` is the exclusive upper bound of a BLOCK or LANE symbol. `instance` is 0 in the IR, and
    1 or 2 in a query about two blocks. For an OPAQUE symbol, `origin` says where it came from ("memory" for
    a load, "atomic" for an atomic's result, "data" for arithmetic that is not modelled, "data of memory" where
    a load is in it, "converted" for what is made an integer of a number that may be a float or an integer) and
    `per_lane` whether the lanes of one block may see different values.
    """

    name: str
    kind: Kind
    uid: int = 0
    bound: Expr | None = None
    instance: int = 0
    origin: str = ""
    per_lane: bool = True
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Symbols are looked up all the time, and few share these three.
        _set(self, "_hash", hash((self.name, self.uid, self.instance)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Symbol], tuple[object, ...]]:
        """A pickle holds no hash: another process has others."""
        own = (self.name, self.kind, self.uid, self.bound, self.instance, self.origin, self.per_lane)
        return Symbol, own

    @property
    def memory(self) -> tuple[str, ...]:
        """The arrays that its `origin` names: `memory:x,y`, or `memory:x:int` if it was made an integer."""
        return tuple(self.origin.partition(":")[2].partition(":")[0].split(","))

    @property
    def varies(self) -> bool:
        """Whether two blocks (or iterations, lanes) may see different values."""
        return self.kind >= Kind.BLOCK


@dataclass(frozen=True, eq=False, init=False)
class Expr:
    """One node. Build nodes with the functions below, never directly: they intern and fold."""

    __slots__ = ("__weakref__", "args", "depth", "free", "memory", "op", "operands", "size")
    op: str
    args: tuple[Any, ...]

    def __init__(self, op: str, args: tuple[Any, ...]) -> None:
        _set(self, "op", op)
        _set(self, "args", args)
        # Derived once, because everything walks expressions: the arguments that are expressions, and how many
        # nodes the text of it has, where parts that occur several times count as often.
        operands = tuple([x for x in args if type(x) is Expr])
        _set(self, "operands", operands)
        _set(self, "size", 1 + sum([x.size for x in operands]))  # type: ignore[attr-defined]
        depth = 1 + max([x.depth for x in operands], default=0)  # type: ignore[attr-defined]
        if depth > MAX_DEPTH:
            raise UnsupportedConstruct(f"expression of more than {MAX_DEPTH} levels")
        if len(operands) > MAX_TERMS:
            raise UnsupportedConstruct(f"expression of more than {MAX_TERMS} terms")
        _set(self, "depth", depth)

    def __repr__(self) -> str:
        return render(self)

    @property
    def is_bool(self) -> bool:
        return self.op in _BOOLEAN

    @property
    def value(self) -> int | None:
        """The literal of a `const` node, else None."""
        return self.args[0] if self.op == "const" else None


_BOOLEAN = frozenset({"true", "false", "bsym", "lt", "le", "eq", "not", "all", "any"})
# Interning makes identity equality. Nodes die with their last user, so a long-lived server does not grow.
_Key = tuple[str, tuple[Any, ...]]
_interned: dict[_Key, weakref.ref[Expr]] = {}
_forget = _interned.pop


def _node(op: str, *args: Any) -> Expr:
    key = (op, args)
    entry = _interned.get(key)
    found = None if entry is None else entry()
    if found is None:
        found = Expr(op, args)
        # What runs when a node dies is C alone (`pop(key, entry)`): a KeyboardInterrupt that Python raised in a
        # callback of its own would be dropped there.
        _interned[key] = weakref.ref(found, partial(_forget, key))
    return found


def _known(op: str, *args: Any) -> Expr | None:
    """The node, if there is one already."""
    entry = _interned.get((op, args))
    return None if entry is None else entry()


def const(value: int) -> Expr:
    if value.bit_length() > MAX_BITS:
        raise UnsupportedConstruct(f"integer of more than {MAX_BITS} bits")
    return _node("const", int(value))


TRUE = _node("true")
FALSE = _node("false")
ZERO = const(0)
ONE = const(1)
_MINUS_ONE = const(-1)


def sym(symbol: Symbol) -> Expr:
    return _node("sym", symbol)


def bool_sym(symbol: Symbol) -> Expr:
    return _node("bsym", symbol)


def lift(value: Expr | int) -> Expr:
    return value if isinstance(value, Expr) else const(value)


def add(*terms: Expr | int) -> Expr:
    """Sum; nested sums are flattened, literals folded, and a term and its opposite cancel."""
    total, rest, opposite = 0, [], False
    stack = [lift(t) for t in reversed(terms)]
    while stack:
        term = stack.pop()
        if term.op == "add":
            stack.extend(reversed(term.args))
        elif term.op == "const":
            total += term.args[0]
        else:
            opposite |= term.op == "mul" and term.args[0] is _MINUS_ONE
            rest.append(term)
    if opposite:
        rest = _cancelled(rest)
    if total or not rest:
        rest.insert(0, const(total))
    return rest[0] if len(rest) == 1 else _node("add", *rest)


def _cancelled(terms: list[Expr]) -> list[Expr]:
    """The terms without pairs t, -1*t. That t divides by something changes nothing: such an operation has an
    obligation of its own where it stands in the text."""
    left: list[Expr] = []
    for term in terms:
        if term.op == "mul" and term.args[0] is _MINUS_ONE:
            other = term.args[1] if len(term.args) == 2 else _known("mul", *term.args[1:])
        else:
            own = term.args if term.op == "mul" else (term,)
            other = _known("mul", _MINUS_ONE, *own)
        if other is not None and other in left:
            left.remove(other)
        else:
            left.append(term)
    return left


def mul(*factors: Expr | int) -> Expr:
    """Product; nested products are flattened and literals folded; a literal factor enters a sum."""
    scale, rest = 1, []
    stack = [lift(f) for f in reversed(factors)]
    while stack:
        factor = stack.pop()
        if factor.op == "mul":
            stack.extend(reversed(factor.args))
        elif factor.op == "const":
            scale *= factor.args[0]
        else:
            rest.append(factor)
    if scale == 0 or not rest:
        return const(scale)
    if len(rest) == 1 and rest[0].op == "add" and scale != 1:
        return add(*(mul(scale, term) for term in rest[0].args))
    if scale != 1:
        rest.insert(0, const(scale))
    return rest[0] if len(rest) == 1 else _node("mul", *rest)


def neg(a: Expr | int) -> Expr:
    return mul(-1, a)


def sub(a: Expr | int, b: Expr | int) -> Expr:
    a, b = lift(a), lift(b)
    return ZERO if a is b else add(a, neg(b))


def floordiv(a: Expr | int, b: Expr | int) -> Expr:
    """Floor division. Division by the literal 0 is kept as a node: definedness is proved elsewhere."""
    a, b = lift(a), lift(b)
    if b is ONE:
        return a
    if a.value is not None and b.value:
        return const(a.value // b.value)
    return _node("floordiv", a, b)


def mod(a: Expr | int, b: Expr | int) -> Expr:
    """Remainder with the sign of the divisor."""
    a, b = lift(a), lift(b)
    if b is ONE:
        return ZERO
    if a.value is not None and b.value:
        return const(a.value % b.value)
    return _node("mod", a, b)


def cdiv(a: Expr | int, b: Expr | int) -> Expr:
    """Ceiling division, in the one form that every stage uses: (a + b - 1) // b."""
    return floordiv(add(a, b, -1), b)


def minimum(a: Expr | int, b: Expr | int) -> Expr:
    a, b = lift(a), lift(b)
    if a is b:
        return a
    if a.value is not None and b.value is not None:
        return const(min(a.value, b.value))
    return _node("min", a, b)


def maximum(a: Expr | int, b: Expr | int) -> Expr:
    a, b = lift(a), lift(b)
    if a is b:
        return a
    if a.value is not None and b.value is not None:
        return const(max(a.value, b.value))
    for larger, other in ((a, b), (b, a)):
        if larger.op == "max" and any(other is part for part in larger.args):
            return larger
    return _node("max", a, b)


def ite(cond: Expr, a: Expr | int, b: Expr | int) -> Expr:
    """One of two values. What asks the same once more inside is answered."""
    first, second = lift(a), lift(b)
    if first.op == "ite" and first.args[0] is cond:
        first = first.args[1]
    if second.op == "ite" and second.args[0] is cond:
        second = second.args[2]
    if cond is TRUE or first is second:
        return first
    return second if cond is FALSE else _node("ite", cond, first, second)


def read(array: str, *indices: Expr | int) -> Expr:
    return _node("read", array, *map(lift, indices))


_BIT_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "and": int.__and__,
    "or": int.__or__,
    "xor": int.__xor__,
}


def bit(kind: str, a: Expr | int, b: Expr | int) -> Expr:
    """Bitwise `and`, `or`, `xor`. `x & (2^k - 1)` becomes `x % 2^k`, exact in two's complement."""
    a, b = lift(a), lift(b)
    if a.value is not None and b.value is not None:
        return const(_BIT_OPERATIONS[kind](a.value, b.value))
    if kind == "and":
        for x, m in ((a, b), (b, a)):
            if m.value is not None and m.value >= 0 and (m.value & (m.value + 1)) == 0:
                return mod(x, m.value + 1)
    return _node("bit", kind, a, b)


def lt(a: Expr | int, b: Expr | int) -> Expr:
    a, b = lift(a), lift(b)
    if a is b:
        return FALSE
    if a.value is not None and b.value is not None:
        return TRUE if a.value < b.value else FALSE
    return _node("lt", a, b)


def le(a: Expr | int, b: Expr | int) -> Expr:
    a, b = lift(a), lift(b)
    if a is b:
        return TRUE
    if a.value is not None and b.value is not None:
        return TRUE if a.value <= b.value else FALSE
    return _node("le", a, b)


def gt(a: Expr | int, b: Expr | int) -> Expr:
    return lt(b, a)


def ge(a: Expr | int, b: Expr | int) -> Expr:
    return le(b, a)


def eq(a: Expr | int, b: Expr | int) -> Expr:
    a, b = lift(a), lift(b)
    if a is b:
        return TRUE
    if a.value is not None and b.value is not None:
        return TRUE if a.value == b.value else FALSE
    return _node("eq", a, b)


def ne(a: Expr | int, b: Expr | int) -> Expr:
    return negate(eq(a, b))


def negate(a: Expr) -> Expr:
    """Logical not; comparisons are turned round so that `not` is left only before eq, bsym, all, any."""
    if a is TRUE:
        return FALSE
    if a is FALSE:
        return TRUE
    if a.op == "not":
        inner: Expr = a.args[0]
        return inner
    if a.op == "lt":
        return le(a.args[1], a.args[0])
    if a.op == "le":
        return lt(a.args[1], a.args[0])
    return _node("not", a)


def _known_negation(a: Expr) -> Expr | None:
    """`negate(a)`, if there is such a node: no other can be among the terms of anything."""
    match a.op:
        case "true":
            return FALSE
        case "false":
            return TRUE
        case "not":
            inner: Expr = a.args[0]
            return inner
        case "lt":
            return _known("le", a.args[1], a.args[0])
        case "le":
            return _known("lt", a.args[1], a.args[0])
        case _:
            return _known("not", a)


def all_of(*terms: Expr) -> Expr:
    """Conjunction, flattened, without duplicates; false if it holds a term and its negation."""
    first, rest = (terms[0].args, terms[1:]) if terms and terms[0].op == "all" else ((), terms)
    kept: dict[Expr, None] = dict.fromkeys(first)  # nothing among these denies another
    stack = list(reversed(rest))
    while stack:
        term = stack.pop()
        if term.op == "all":
            stack.extend(reversed(term.args))
        elif term is FALSE or _known_negation(term) in kept:
            return FALSE
        elif term is not TRUE:
            kept[term] = None
    if not kept:
        return TRUE
    return next(iter(kept)) if len(kept) == 1 else _node("all", *kept)


def any_of(*terms: Expr) -> Expr:
    """Disjunction, flattened, without duplicates; true if it holds a term and its negation."""
    first, rest = (terms[0].args, terms[1:]) if terms and terms[0].op == "any" else ((), terms)
    kept: dict[Expr, None] = dict.fromkeys(first)  # nothing among these denies another
    stack = list(reversed(rest))
    while stack:
        term = stack.pop()
        if term.op == "any":
            stack.extend(reversed(term.args))
        elif term is TRUE or _known_negation(term) in kept:
            return TRUE
        elif term is not FALSE:
            kept[term] = None
    if not kept:
        return FALSE
    return next(iter(kept)) if len(kept) == 1 else _node("any", *kept)


def conjuncts(a: Expr) -> tuple[Expr, ...]:
    """The terms of a conjunction; one term for any other expression; none for `true`."""
    if a is TRUE:
        return ()
    return a.args if a.op == "all" else (a,)


def negated_terms(a: Expr) -> tuple[Expr, ...]:
    """The terms of its negation as a conjunction: of a disjunction, those of each of its terms."""
    return tuple(map(negate, a.args)) if a.op == "any" else conjuncts(negate(a))


def either(cond: Expr, a: Expr, b: Expr) -> Expr:
    """The truth that is `a` where `cond` holds and `b` elsewhere. What both say holds in any case, and stands
    by itself: `row < n and (not MASKED or col < m)`."""
    kept = set(conjuncts(b))
    common = tuple(term for term in conjuncts(a) if term in kept)
    first, second = (all_of(*(t for t in conjuncts(e) if t not in common)) for e in (a, b))
    if first is TRUE:
        rest = any_of(cond, second)
    elif second is TRUE:
        rest = any_of(negate(cond), first)
    else:
        rest = any_of(all_of(cond, first), all_of(negate(cond), second))
    return all_of(*common, rest)


def children(a: Expr) -> tuple[Expr, ...]:
    found: tuple[Expr, ...] = a.operands  # type: ignore[attr-defined]
    return found


def size_of(a: Expr) -> int:
    """How many nodes it has when it is written out."""
    size: int = a.size  # type: ignore[attr-defined]
    return size


def walk(*roots: Expr) -> Iterator[Expr]:
    """Every node reachable from `roots`, once, parents before children, in a fixed order."""
    seen: set[Expr] = set()
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        stack.extend(node.operands[::-1])  # type: ignore[attr-defined]


def symbols(*roots: Expr) -> tuple[Symbol, ...]:
    """The free symbols of `roots`, in order of first appearance."""
    if len(roots) == 1:
        return _symbols_of(roots[0])
    return tuple(dict.fromkeys(s for root in roots for s in _symbols_of(root)))


def number_symbols(root: Expr) -> tuple[Symbol, ...]:
    """The free symbols of `root` that stand for numbers, in order of first appearance."""
    return tuple(dict.fromkeys(n.args[0] for n in walk(root) if n.op == "sym"))


def _symbols_of(root: Expr) -> tuple[Symbol, ...]:
    try:
        found: tuple[Symbol, ...] = root.free  # type: ignore[attr-defined]
    except AttributeError:
        return _derived(root, "free", _own_symbols)
    return found


def _own_symbols(node: Expr, below: Iterator[tuple[Symbol, ...]]) -> tuple[Symbol, ...]:
    if node.op in ("sym", "bsym"):
        return (node.args[0],)
    parts = [part for part in below if part]
    if len(parts) < 2:
        return parts[0] if parts else ()
    found = dict.fromkeys(s for part in parts for s in part)
    # The order is that of the operands. Most nodes have the symbols of the first: they share them.
    return parts[0] if len(found) == len(parts[0]) else tuple(found)


def memory_names(value: Expr) -> frozenset[str]:
    """The arrays and untyped scalars whose values occur in `value`, other than converted to an integer."""
    try:
        found: frozenset[str] = value.memory  # type: ignore[attr-defined]
    except AttributeError:
        return _derived(value, "memory", _own_memory)
    return found


def _own_memory(node: Expr, below: Iterator[frozenset[str]]) -> frozenset[str]:
    names = frozenset[str]().union(*below)
    if node.op == "read" and not node.args[0].endswith(":int"):
        return names | {node.args[0]}
    if node.op in ("sym", "bsym"):
        symbol: Symbol = node.args[0]
        if symbol.origin.startswith(("memory:", "atomic:")) and not symbol.origin.endswith(":int"):
            return frozenset(symbol.memory)
        if symbol.origin == "untyped":
            return frozenset((symbol.name,))
    return names


_T = TypeVar("_T")


def _derived(root: Expr, name: str, own: Callable[[Expr, Iterator[_T]], _T]) -> _T:
    """What is derived of a node from what is derived of its operands, kept with each. Iterative: deep
    expressions are fine."""
    stack = [root]
    while stack:
        node = stack[-1]
        if hasattr(node, name):
            stack.pop()
            continue
        operands = node.operands  # type: ignore[attr-defined]
        todo = [c for c in operands if not hasattr(c, name)]
        if todo:
            stack += todo
            continue
        stack.pop()
        _set(node, name, own(node, (getattr(c, name) for c in operands)))
    found: _T = getattr(root, name)
    return found


_REBUILD: Mapping[str, Callable[..., Expr]] = {
    "add": add,
    "mul": mul,
    "floordiv": floordiv,
    "mod": mod,
    "min": minimum,
    "max": maximum,
    "ite": ite,
    "read": read,
    "bit": bit,
    "lt": lt,
    "le": le,
    "eq": eq,
    "not": negate,
    "all": all_of,
    "any": any_of,
}


def rebuild(a: Expr, change: Callable[[Expr], Expr | None], memo: dict[Expr, Expr] | None = None) -> Expr:
    """Rewrite bottom-up: `change(node)` replaces a node (before its children are looked at) or returns None.

    `memo` may be shared between calls with the same `change`. Iterative: deep expressions are fine.
    """
    memo = {} if memo is None else memo
    stack = [a]
    while stack:
        node = stack[-1]
        if node in memo:
            stack.pop()
            continue
        changed = change(node)
        if changed is not None:
            memo[node] = changed
            stack.pop()
            continue
        operands = node.operands  # type: ignore[attr-defined]
        todo = [c for c in operands if c not in memo]
        if todo:
            stack += todo
            continue
        stack.pop()
        if all(memo[c] is c for c in operands):
            memo[node] = node  # a node is what building it again gives
        else:
            memo[node] = _REBUILD[node.op](*(memo[x] if type(x) is Expr else x for x in node.args))
    return memo[a]


def substitute(a: Expr, mapping: Mapping[Expr, Expr]) -> Expr:
    """Replace whole sub-expressions (usually `sym` nodes); replacements are not looked into again."""
    return substitution(mapping)(a)


def substitution(mapping: Mapping[Expr, Expr]) -> Callable[[Expr], Expr]:
    """`substitute` by one mapping, for many expressions: it remembers what it rewrote."""
    if not mapping:
        return lambda a: a
    replaced = {key.args[0] for key in mapping if key.op in ("sym", "bsym")}
    memo: dict[Expr, Expr] = {}
    if any(key.op not in ("sym", "bsym") for key in mapping):
        return lambda a: rebuild(a, mapping.get, memo)

    def change(node: Expr) -> Expr | None:
        found = mapping.get(node)
        # Nothing is replaced below a node without these symbols.
        return node if found is None and replaced.isdisjoint(_symbols_of(node)) else found

    return lambda a: rebuild(a, change, memo)


_Valued = Callable[[Symbol], int | bool]
_Memory = Callable[[str, tuple[int, ...]], int]
_SHALLOW = 200  # nodes: what has more may be too deep for Python's stack


def evaluate(
    a: Expr,
    value: _Valued,
    memory: _Memory | None = None,
    memo: dict[Expr, int | bool] | None = None,
) -> int | bool:
    """The value of `a` under an assignment of its symbols. `memo` may be shared between calls with the same
    assignment.

    Raises:
        ZeroDivisionError: a divisor is 0.
        KeyError: `read` without `memory`; whatever `value` raises for an unknown symbol.
    """
    memo = {} if memo is None else memo
    if a.size > _SHALLOW:  # type: ignore[attr-defined]
        for node in _evaluation_order(a, value, memory, memo):
            _evaluated(node, value, memory, memo)
    return _evaluated(a, value, memory, memo)


def _evaluation_order(
    a: Expr, value: _Valued, memory: _Memory | None, memo: dict[Expr, int | bool]
) -> Iterator[Expr]:
    """Parts of an expression that are deep no more once those before them are evaluated. Of a conditional only
    the branch that is taken: the other may divide by zero."""
    stack = [a]
    while stack:
        node = stack[-1]
        if node in memo or node.size <= _SHALLOW:  # type: ignore[attr-defined]
            stack.pop()
            yield node
            continue
        parts = children(node)
        if node.op == "ite":
            condition = node.args[0]
            known = memo.get(condition)
            parts = (condition,) if known is None else (node.args[1] if known else node.args[2],)
        waiting = [c for c in parts if c not in memo and c.op != "const"]
        if waiting:
            stack += waiting
        else:
            stack.pop()
            yield node


def _evaluated(node: Expr, value: _Valued, memory: _Memory | None, memo: dict[Expr, int | bool]) -> int | bool:
    """`evaluate`, by recursion: written out, as searches for models and counterexamples do little else."""
    known = memo.get(node)
    if known is not None:
        return known
    op = node.op
    if op == "const":
        number: int = node.args[0]
        return number
    found: int | bool
    if op in ("sym", "bsym"):
        found = value(node.args[0])
    elif op == "ite":  # only the branch that is taken is evaluated: the other may divide by zero
        condition, a, b = node.args
        found = _evaluated(a if _evaluated(condition, value, memory, memo) else b, value, memory, memo)
    else:
        values = []
        for part in node.operands:  # type: ignore[attr-defined]
            own = memo.get(part)  # looked up here, as most parts are known or literals: a call costs more
            if own is None:
                own = part.args[0] if part.op == "const" else _evaluated(part, value, memory, memo)
            values.append(own)
        if op in _PAIRS:
            found = _PAIRS[op](*values)
        elif op in _FOLDS:
            found = _FOLDS[op](values)
        elif op != "read":
            found = _VALUES[op](node, values)
        elif memory is None:
            raise KeyError(node.args[0])
        else:
            found = memory(node.args[0], tuple(map(int, values)))
    memo[node] = found
    return found


_PAIRS: Mapping[str, Callable[[int, int], int | bool]] = {
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "min": min,
    "max": max,
}
_FOLDS: Mapping[str, Callable[[list[Any]], int | bool]] = {"add": sum, "mul": math.prod, "all": all, "any": any}
_VALUES: Mapping[str, Callable[[Expr, list[Any]], int | bool]] = {
    "bit": lambda node, v: _BIT_OPERATIONS[node.args[0]](v[0], v[1]),
    "true": lambda _, v: True,
    "false": lambda _, v: False,
    "not": lambda _, v: not v[0],
}


# ---------------------------------------------------------------------------------------------------------
# Text. Written so that it can be pasted: Python syntax, `cdiv` recognised, no internal names.

_LEVEL = {"any": 1, "all": 2, "not": 3, "lt": 4, "le": 4, "eq": 4, "add": 6, "mul": 7, "floordiv": 7, "mod": 7}


def render(a: Expr, name: Callable[[Symbol], str] = lambda s: s.name) -> str:
    """Python text of an expression, with as few parentheses as Python needs."""
    return _render(a, name, 0)


def _render(a: Expr, name: Callable[[Symbol], str], outer: int) -> str:
    level = 9 if a.op == "floordiv" and _as_cdiv(a) is not None else _LEVEL.get(a.op, 9)
    text = _text(a, name, level)
    return f"({text})" if level < outer else text


def _text(a: Expr, name: Callable[[Symbol], str], level: int) -> str:
    def sub_text(x: Expr, at: int = level) -> str:
        return _render(x, name, at)

    match a.op:
        case "const":
            return str(a.args[0])
        case "sym" | "bsym":
            return name(a.args[0])
        case "true":
            return "True"
        case "false":
            return "False"
        case "add":
            return _sum_text(a, name)
        case "mul":
            if a.args[0].value == -1:
                return "-" + " * ".join(sub_text(x, 8) for x in a.args[1:])
            return " * ".join(sub_text(x, 7 if i == 0 else 8) for i, x in enumerate(a.args))
        case "floordiv":
            top = _as_cdiv(a)
            if top is not None:
                return f"cdiv({sub_text(top, 0)}, {sub_text(a.args[1], 0)})"
            return f"{sub_text(a.args[0], 7)} // {sub_text(a.args[1], 8)}"
        case "mod":
            return f"{sub_text(a.args[0], 7)} % {sub_text(a.args[1], 8)}"
        case "min" | "max":
            return f"{a.op}({sub_text(a.args[0], 0)}, {sub_text(a.args[1], 0)})"
        case "ite":
            return f"({sub_text(a.args[1], 1)} if {sub_text(a.args[0], 1)} else {sub_text(a.args[2], 1)})"
        case "read":
            return f"{a.args[0]}[{', '.join(sub_text(x, 0) for x in a.args[1:])}]"
        case "bit":
            sign = {"and": "&", "or": "|", "xor": "^"}[a.args[0]]
            return f"({sub_text(a.args[1], 8)} {sign} {sub_text(a.args[2], 8)})"
        case "lt" | "le" | "eq":
            sign = {"lt": "<", "le": "<=", "eq": "=="}[a.op]
            return f"{sub_text(a.args[0], 5)} {sign} {sub_text(a.args[1], 5)}"
        case "not":
            inner = a.args[0]
            if inner.op == "eq":
                return f"{sub_text(inner.args[0], 5)} != {sub_text(inner.args[1], 5)}"
            return f"not {sub_text(inner, 4)}"
        case "all":
            return " and ".join(sub_text(x, 3) for x in a.args)
        case "any":
            return " or ".join(sub_text(x, 2) for x in a.args)
        case _:
            raise AssertionError(a.op)


def _sum_text(a: Expr, name: Callable[[Symbol], str]) -> str:
    # The literal is stored first but reads better last: `i + 1`, `n - 1`.
    terms = [*a.args[1:], a.args[0]] if a.args[0].op == "const" else list(a.args)
    terms.sort(key=_is_negative)
    text = _render(terms[0], name, 6)
    for term in terms[1:]:
        if _is_negative(term):
            text += f" - {_render(neg(term), name, 7)}"
        else:
            text += f" + {_render(term, name, 7)}"
    return text


def _is_negative(a: Expr) -> bool:
    first = a.args[0] if a.op == "mul" else a
    return isinstance(first, Expr) and first.value is not None and first.value < 0


def _as_cdiv(a: Expr) -> Expr | None:
    """The dividend x of `(x + d - 1) // d`, or None when `a` is not of that form."""
    top, divisor = a.args
    rest = sub_terms(top, add(divisor, -1))
    return rest if rest is not None and rest.value is None else None


def sub_terms(whole: Expr, part: Expr) -> Expr | None:
    """`whole - part` when every term of `part` occurs in `whole`, else None."""
    left = list(whole.args) if whole.op == "add" else [whole]
    literal = sum(t.args[0] for t in left if t.op == "const")
    left = [t for t in left if t.op != "const"]
    for term in part.args if part.op == "add" else (part,):
        if term.op == "const":
            literal -= term.args[0]
        elif term in left:
            left.remove(term)
        else:
            return None
    if literal < 0 or (part.op == "const" and literal != 0):
        return None
    return add(*left, literal)
