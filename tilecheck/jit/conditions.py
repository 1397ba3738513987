"""The conditions of a record as code that the guard evaluates, with nothing in it but launch values."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Collection, Iterator
from types import SimpleNamespace
from typing import Any

from tilecheck.dataclass import dataclass
from tilecheck.jit.layouts import Layout
from tilecheck.jit.records import Argument


@dataclass(frozen=True, slots=True)
class Question:
    """What a condition asks of an argument other than its value as a number.

    `x is None` (`text` is None) and `x == 'text'`. The proof has one truth for each, whose name is `atom`.
    """

    atom: str
    name: str
    text: str | None

    def answer(self, value: Any) -> bool:
        return value is None if self.text is None else type(value) is str and value == self.text


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, compiled."""

    text: str
    atoms: tuple[str, ...]  # the launch values it reads: `grid[0]`, `x.shape[1]`, `x.stride(0)`, `N`
    arrays: tuple[str, ...]  # the names in it whose layout it reads (and names that are no arguments)
    each: tuple[str, ...]  # the lists of whose every member it speaks
    questions: tuple[Question, ...]
    code: Any

    def shown(self, scope: dict[str, Any]) -> str:
        """The launch values that it reads, with their values."""
        return ", ".join(f"{_shown(name)} = {_value(name, scope)}" for name in self.atoms)


class NotCheckable(Exception):
    """A condition holds something that is no expression over launch values."""


def compile_condition(
    text: str, arguments: Collection[Argument], captured: Collection[str], *, questions: bool = False
) -> Condition:
    """The condition that `text` is; `captured` are names beside the arguments that stand for numbers.

    Raises:
        NotCheckable: it holds something else than launch values.
        SyntaxError, RecursionError, MemoryError: it is not readable.
    """
    known = {a.name for a in arguments} | set(captured)
    # `parts[*].shape[0]` speaks of every member of a list: the guard evaluates it once for each.
    each = tuple(dict.fromkeys(_MEMBERS.findall(text)))
    lists = {a.name for a in arguments if a.members}
    tree = _Powers().visit(ast.parse(_MEMBERS.sub(rf"{EACH}.\1", text), mode="eval"))
    asked: dict[str, Question] = {}
    if questions:
        tree = _Asking({a.name for a in arguments}, asked).visit(tree)
    atoms = dict.fromkeys(_atoms(tree.body, known | asked.keys(), lists))
    arrays = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id not in atoms]
    code = compile(ast.fix_missing_locations(tree), "<condition>", "eval")
    return Condition(text, tuple(atoms), (*arrays, *each), each, tuple(asked.values()), code)


class _Asking(ast.NodeTransformer):
    """Replaces each question by its atom, a name with spaces in it, which no argument has."""

    def __init__(self, names: set[str], asked: dict[str, Question]) -> None:
        self.names = names
        self.asked = asked

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        match node:
            case ast.Compare(
                left=ast.Name(id=name),
                ops=[ast.Is() | ast.IsNot() as op],
                comparators=[ast.Constant(value=None)],
            ) if name in self.names:
                question = Question(f"{name} is None", name, None)
            case ast.Compare(
                left=ast.Name(id=name),
                ops=[ast.Eq() | ast.NotEq() as op],
                comparators=[ast.Constant(value=str() as text)],
            ) if name in self.names:
                question = Question(f"{name} == {text!r}", name, text)
            case _:
                self.generic_visit(node)
                return node
        self.asked[question.atom] = question
        asked = ast.copy_location(ast.Name(question.atom, ast.Load()), node)
        if isinstance(op, ast.Is | ast.Eq):
            return asked
        return ast.copy_location(ast.UnaryOp(ast.Not(), asked), node)


class _Powers(ast.NodeTransformer):
    """Puts a call in the place of each `2 ** n`: where n is negative Python makes a fraction of it, of which a
    proof knows nothing."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.BinOp(left=ast.Constant(value=2), op=ast.Pow(), right=exponent):
                return ast.copy_location(ast.Call(ast.Name(_POWER, ast.Load()), [exponent], []), node)
        return node


# ---- what stands in them -------------------------------------------------------------------------------------


def _cdiv(a: int, b: int) -> int:
    return (a + b - 1) // b  # what the proof means by it, also where b is negative


def _next_power_of_2(n: int) -> int:
    return 1 << (n - 1).bit_length() if n > 0 else 0  # as `triton.next_power_of_2`


def _power_of_2(n: int) -> int:
    if n < 0:
        raise ValueError("a power of 2 with a negative exponent is a fraction")
    return 1 << n


_POWER = "_power_of_2"  # stands for `2 **`
_ON_INTEGERS: dict[str, Any] = {
    "cdiv": _cdiv,
    _POWER: _power_of_2,
    "next_power_of_2": _next_power_of_2,
    "min": min,
    "max": max,
    "abs": abs,
}
FUNCTIONS: dict[str, Any] = {**_ON_INTEGERS, "len": len, "numel": operator.attrgetter("numel")}
EACH = "each"  # stands for the list in `parts[*]`: `each.parts` is the member looked at
_MEMBERS = re.compile(r"\b(\w+)\[\*\]")


def view(layout: Layout) -> SimpleNamespace:
    """An array as conditions see it."""
    return SimpleNamespace(shape=layout.shape, stride=layout.strides.__getitem__, numel=layout.reach)


def _atoms(node: ast.expr, known: set[str], lists: set[str]) -> Iterator[str]:
    """The launch values in a condition. Nothing else may stand in it: it is evaluated, and comes from a file.

    Raises:
        NotCheckable: something else does.
    """
    match node:
        case ast.Constant(value=bool() | int()):
            return
        case ast.Name(id=name) if name in known:
            yield name
        case ast.Subscript(value=ast.Name(id="grid"), slice=ast.Constant(value=int())):
            yield ast.unparse(node)
        case (
            ast.Subscript(value=ast.Attribute(value=array, attr="shape"), slice=ast.Constant(value=int()))
            | ast.Call(
                func=ast.Attribute(value=array, attr="stride"), args=[ast.Constant(value=int())], keywords=[]
            )
        ) if _is_array(array, known, lists):
            yield ast.unparse(node)
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]) if name in lists:
            yield ast.unparse(node)
        case ast.Call(func=ast.Name(id="numel"), args=[ast.Name(id=name)], keywords=[]) if (
            name in known - lists
        ):
            yield ast.unparse(node)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _ON_INTEGERS:
            for argument in args:
                yield from _atoms(argument, known, lists)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _atoms(value, known, lists)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield from _atoms(operand, known, lists)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            yield from _atoms(left, known, lists)
            yield from _atoms(right, known, lists)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(
            isinstance(op, _COMPARISONS) for op in ops
        ):
            for part in (left, *others):
                yield from _atoms(part, known, lists)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            for part in (test, body, orelse):
                yield from _atoms(part, known, lists)
        case _:
            raise NotCheckable(ast.unparse(node))


def _is_array(node: ast.expr, known: set[str], lists: set[str]) -> bool:
    """Whether an expression is an array argument or a member of a list of arrays."""
    match node:
        case ast.Name(id=name):
            return name in known
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int())):
            return name in lists
        case ast.Attribute(value=ast.Name(id=head), attr=name):
            return head == EACH and name in lists
    return False


_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def _shown(atom: str) -> str:
    return re.sub(rf"\b{EACH}\.(\w+)", r"\1[*]", atom)


def _value(atom: str, scope: dict[str, Any]) -> Any:
    if atom in scope:
        return scope[atom]
    try:
        return eval(atom, scope)  # noqa: S307 - a part of a condition that was just evaluated
    except Exception:  # noqa: BLE001 - in a branch of the condition that was not taken
        return "?"
