"""Which tensor a function of a library gives back: its argument, a view of it, or one that it allocates.

Only the memory of the result is said here, for calls whose shapes nothing else reads: `tensors.library` has
those of what is computed. A function that no table names may give back whatever it was given.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilecheck.frontend.host.calls import meaning
from tilecheck.frontend.host.memory.unread_effects import IN_PLACE
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.tensors.library import FUNCTIONS, OPERATIONS
from tilecheck.frontend.host.tensors.methods import FOLLOWED
from tilecheck.frontend.host.values import Tensor, Unknown
from tilecheck.frontend.values.values import Const, Method, Named, Num
from tilecheck.ir import expr as E

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Arguments
    from tilecheck.frontend.host.run import HostExecutor

_TORCH = re.compile(r"torch\.(?:(?:Tensor|nn\.functional|special|linalg|_C|_C\._nn|ops\.aten)\.)?(\w+)")
_NUMPY = re.compile(r"(?:numpy|cupy)\.(\w+)")
_OPERATORS = re.compile(r"_?operator\.i\w+")
# The position of `inplace` among the arguments of functions of `torch.nn.functional`.
_INPLACE = {
    **dict.fromkeys(("relu", "relu6", "selu", "silu", "mish", "hardswish", "hardsigmoid"), 1),
    **dict.fromkeys(("elu", "celu", "leaky_relu"), 2),
    **dict.fromkeys(("hardtanh", "threshold", "feature_alpha_dropout", "alpha_dropout"), 3),
    **dict.fromkeys(("dropout", "dropout1d", "dropout2d", "dropout3d"), 3),
    "rrelu": 4,
}
_MAYBE_KEPT = frozenset(n for n in _INPLACE if "dropout" in n)  # give back their argument where they do nothing
# What has the memory, the shape and the strides of its argument.
_SAME = frozenset("detach alias conj from_numpy from_dlpack Parameter numpy positive".split())
# What may have the memory of its argument, or be a copy.
_PERHAPS = frozenset(
    "resolve_neg resolve_conj real imag asarray as_tensor view_as_real view_as_complex asanyarray "
    "ascontiguousarray asfortranarray atleast_1d atleast_2d atleast_3d dequantize".split()
)
_RESHAPING = frozenset("view_as_real view_as_complex atleast_1d atleast_2d atleast_3d".split())
# What always allocates its result, as a function of torch or NumPy, and as a method of a tensor.
_ALLOCATING = (
    frozenset(OPERATIONS)
    | (frozenset(FUNCTIONS) - {"meshgrid", "broadcast_tensors"})  # those give views
    | frozenset(
        "acos add addbmm addcdiv addcmul addmm addmv addr allclose aminmax arange argwhere asin atan atan2 "
        "baddbmm bernoulli bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or "
        "bitwise_right_shift bitwise_xor bucketize cdist clip clone conv1d conv2d conv3d "
        "conv_transpose1d conv_transpose2d conv_transpose3d copysign cosh "
        "cross cross_entropy cummax cummin cumulative_sum diff digamma div divide dot embedding empty "
        "empty_like equal erfc erfinv fliplr flipud floor_divide fmod frac full full_like glu greater "
        "heaviside histc hstack hypot index_add index_copy index_fill index_select inner isin isclose "
        "kthvalue layer_norm lerp less lgamma linspace logaddexp logcumsumexp logical_and logical_or "
        "logical_xor logit logspace masked_fill masked_scatter masked_select maximum median minimum mode "
        "mse_loss mul multinomial multiply new_empty new_full new_ones new_tensor new_zeros nonzero norm "
        "normal normalize not_equal one_hot ones ones_like outer pow quantile rand rand_like randint "
        "randint_like randn randn_like randperm remainder repeat_interleave rms_norm roll rot90 rsub "
        "scatter scatter_add scatter_reduce searchsorted tensor sinh softmin std std_mean sub subtract take "
        "take_along_dim tensordot trace tril_indices triu_indices true_divide unique unique_consecutive var "
        "var_mean vstack where xlogy zeros zeros_like".split()
    )
)
# Those among them that raise for some sizes, or numbers of axes, of one tensor.
_DEMANDING = frozenset(
    "addbmm addmm addmv addr baddbmm bmm cdist conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d cross cross_entropy dot embedding "
    "empty_strided gather glu index_add index_copy index_fill index_select inner kthvalue layer_norm linear "
    "masked_scatter matmul mm mse_loss multinomial mv one_hot outer pad quantile rms_norm rot90 scatter "
    "scatter_add scatter_reduce take take_along_dim tensordot topk trace".split()
)
# Those among them that few objects but tensors have.
_OF_TENSORS = frozenset(
    "abs amax amin argmax argmin argsort bincount clamp clone cos cummax cumprod cumsum exp index_select "
    "isnan log log_softmax logsumexp masked_fill masked_select mean new_empty new_full new_ones new_tensor "
    "new_zeros nonzero prod reciprocal repeat_interleave rsqrt sigmoid sin softmax sqrt square std sum tanh "
    "topk var".split()
)


def result(x: HostExecutor, function: Any, args: Arguments, text: str) -> Any | None:
    """What a call gives back whose shape is not read; None if that may be anything it was given."""
    name, given = _called(function, args)
    if not name:
        return None
    first = given[0] if given else None
    if isinstance(function, Named) and _OPERATORS.fullmatch(function.name):
        return first if isinstance(first, Tensor) else None
    out = dict(args.keywords).get("out", Const(None))
    if out != Const(None):
        return None
    if name in _INPLACE and isinstance(first, Tensor | Unknown):
        return _perhaps_in_place(x, name, given, args, text)
    if _is_in_place(name) and isinstance(first, Tensor | Unknown):
        return first
    if name in _SAME and isinstance(first, Tensor | Unknown):
        return first
    if name in _PERHAPS and isinstance(first, Tensor | Unknown):
        t = x.tensor(first)
        if name in _RESHAPING:
            own = x.unread(text).name
            x.computed.add(own)
            t = replace(T.piece(t, own), shape_of=own)
        return x.as_one_copy(T.in_any_order(T.converted(t)))
    if name in _ALLOCATING:
        return x.new_object(text)
    return None


def demands(function: Any, args: Arguments) -> bool:
    """Whether a call that allocates its result may raise for the sizes of one tensor. Which sizes go together
    is a relation of inputs."""
    return _called(function, args)[0] in _DEMANDING


def _called(function: Any, args: Arguments) -> tuple[str, tuple[Any, ...]]:
    """The name of what is called, and the tensor first that it is a method of."""
    match function:
        case Named(name):
            found = _TORCH.fullmatch(name) or _NUMPY.fullmatch(name)
            if found is None:
                return ("operator" if _OPERATORS.fullmatch(name) else "", args.positional)
            return found[1], args.positional
        case Method(value=Tensor() as owner, name=name):
            return name, (owner, *args.positional)
        case Method(value=Unknown() as owner, name=name) if _is_of_tensors(name, args):
            return name, (owner, *args.positional)
        case _:
            return "", ()


def _is_of_tensors(name: str, args: Arguments) -> bool:
    """Whether a method of an unknown object is one of tensors by its name, and is given no other object that it
    could return."""
    if name in IN_PLACE or name in _SAME or name in _PERHAPS:
        return True
    values = (*args.positional, *(value for _, value in args.keywords))
    return name in _OF_TENSORS and not any(isinstance(v, Tensor | Unknown) for v in values)


def _is_in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def _perhaps_in_place(x: HostExecutor, name: str, given: tuple[Any, ...], args: Arguments, text: str) -> Any:
    """An activation: in place where its flag says so, else a new tensor."""
    at = _INPLACE[name]
    flag = dict(args.keywords).get("inplace", given[at] if len(given) > at else Const(value=False))
    truth = x.truth(flag) if isinstance(flag, Const | Num) else None
    if truth is E.TRUE:
        return given[0]
    if truth is E.FALSE and name not in _MAYBE_KEPT:
        return x.new_object(text)
    return x.as_one_copy(T.in_any_order(T.converted(x.tensor(given[0]))))


def method_of(function: Named, args: Arguments) -> tuple[Method, Arguments] | None:
    """`torch.Tensor.add_(t, 1)` and `torch.narrow(t, 0, 0, n)` as methods of their first argument."""
    found = _TORCH.fullmatch(function.name)
    if found is None or not args.positional or not isinstance(args.at(0), Tensor | Unknown):
        return None
    if not function.name.startswith("torch.Tensor.") and (found[1] not in FOLLOWED or meaning(function.name)):
        return None
    if "out" in dict(args.keywords):
        return None
    rest = type(args)(args.positional[1:], args.keywords, args.node, args.table)
    return Method(args.at(0), found[1]), rest
