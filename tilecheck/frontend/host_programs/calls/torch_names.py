"""The names of PyTorch's functions and methods, by what they do with memory and with the host."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Functions that allocate from sizes or from a tensor of the same shape; those among them that write nothing.
ALLOCATORS = _words(
    "empty zeros ones full rand randn randint randperm arange linspace logspace eye tensor scalar_tensor "
    "empty_strided zeros_like ones_like empty_like full_like rand_like randn_like randint_like as_tensor "
    "asarray from_numpy frombuffer empty_permuted"
)
UNWRITTEN = _words("empty empty_like empty_strided empty_permuted new_empty new_empty_strided")
FROM_HOST = _words("tensor scalar_tensor as_tensor asarray from_numpy frombuffer new_tensor")
SIZED = _words(
    "empty zeros ones rand randn new_empty new_zeros new_ones"
)  # by sizes as arguments, or by one tuple
SIZED_FIRST = _words("full randint new_full")

# Methods that only ask for what the host knows.
ASKING = _words(
    "size dim numel stride element_size is_contiguous is_pinned storage_offset get_device nelement "
    "ndimension is_floating_point is_complex is_shared type_str __len__ has_names untyped_storage storage"
)
# Methods that change the view or the bookkeeping alone.
BOOKKEEPING = _words(
    "requires_grad_ retain_grad squeeze_ unsqueeze_ t_ transpose_ detach_ rename_ share_memory_ zero_grad"
)
# In-place methods whose result does not depend on what was there.
OVERWRITING = _words(
    "zero_ fill_ copy_ normal_ uniform_ random_ bernoulli_ exponential_ log_normal_ cauchy_ geometric_ "
    "fill_diagonal_ "
)
# Methods and functions for which the host waits, with those that take elements to the host.
TAKING = _words("item tolist __bool__ __int__ __float__ __index__ __repr__ __str__ __format__ array_equal")
WAITING = _words("nonzero equal allclose masked_select unique unique_consecutive is_nonzero bincount argwhere")
# Out-of-place operations, each of which reads its tensors and writes new ones.
OPERATIONS = _words(
    "abs absolute add addbmm addcdiv addcmul addmm addmv addr all allclose amax amin aminmax angle any "
    "argmax argmin argsort argwhere baddbmm bernoulli bincount bitwise_and bitwise_or bitwise_xor bmm cat "
    "ceil clamp clamp_max clamp_min clip clone column_stack concat concatenate conj_physical copysign cos "
    "cosh count_nonzero cross cummax cummin cumprod cumsum diag diff dist div divide dot einsum elu eq "
    "equal erf erfc exp exp2 expm1 flip floor floor_divide fmod frac gather ge gelu greater gt hardtanh "
    "histc hstack index_add index_copy index_fill index_put index_select inner isclose isfinite isinf "
    "isnan kron kthvalue layer_norm le lerp less linear log log10 log1p log2 log_softmax logaddexp "
    "logical_and logical_not logical_or logical_xor logsumexp lt masked_fill masked_scatter masked_select "
    "matmul max maximum mean median min minimum mm mode mul multinomial multiply mv nan_to_num nansum ne "
    "neg negative new_tensor nonzero norm normal normalize not_equal one_hot outer pad pow prod quantile "
    "reciprocal relu remainder renorm repeat repeat_interleave roll rot90 round rms_norm rsqrt "
    "scaled_dot_product_attention scatter scatter_add scatter_reduce searchsorted select_scatter sgn "
    "sigmoid sign silu sin sinh slice_scatter softmax softplus sort sqrt square stack std sub subtract "
    "sum take take_along_dim tan tanh tensordot tile topk tril triu true_divide trunc unique "
    "unique_consecutive var vstack where xlogy dropout embedding conv1d conv2d conv3d cross_entropy "
    "mse_loss l1_loss max_pool2d avg_pool2d interpolate group_norm batch_norm hardswish mish leaky_relu "
    "log_sigmoid logsigmoid glu nll_loss"
)
# Those among them that may give their input, or a view of it.
MAY_ALIAS = _words("dropout einsum conj_physical")
# Operations and operators that give truths, those that give truths of truths, and those that give positions.
COMPARING = _words(
    "eq ne lt le gt ge equal greater less not_equal isclose isfinite isinf isnan logical_and logical_not "
    "logical_or logical_xor < <= > >= == !="
)
LOGICAL = _words("& | ^ ~ bitwise_and bitwise_or bitwise_xor bitwise_not clone")
INDEXING = _words("argmax argmin argsort argwhere nonzero searchsorted bincount")
# Contexts and calls of libraries that leave streams, graphs and memory alone.
HARMLESS_CONTEXTS = (
    "torch.no_grad",
    "torch.inference_mode",
    "torch.enable_grad",
    "torch.set_grad_enabled",
    "torch.autocast",
    "torch.amp.",
    "torch.cuda.amp.",
    "torch.autograd.profiler.",
    "torch.profiler.",
    "torch.cuda.nvtx.",
    "torch.cuda.device",
    "torch.device",
    "torch.random.",
    "nvtx.",
    "contextlib.nullcontext",
    "contextlib.suppress",
    "threading.Lock",
    "threading.RLock",
    "threading.Condition",
    "threading.Semaphore",
    "threading.BoundedSemaphore",
    "threading.Event",
    "threading.Barrier",
    "threading.current_thread",
    "threading.get_ident",
    "time.",
    "warnings.",
    "open",
)
# Prefixes of functions that operate on tensors and give new ones.
FUNCTION_PREFIXES = ("torch.nn.functional.", "torch.linalg.", "torch.fft.", "torch.special.", "torch.")
# Parts of torch that neither work on tensors nor give any.
PLAIN_PREFIXES = (
    "torch.cuda.get_device",
    "torch.cuda.is_available",
    "torch.cuda.device_count",
    "torch.cuda.current_device",
    "torch.cuda.set_device",
    "torch.cuda.memory_",
    "torch.cuda.max_memory",
    "torch.cuda.mem_get_info",
    "torch.cuda.reset_",
    "torch.cuda.empty_cache",
    "torch.cuda.manual_seed",
    "torch.cuda.nvtx.",
    "torch.manual_seed",
    "torch.set_",
    "torch.get_",
    "torch.is_",
    "torch.Generator",
    "torch.Size",
    "torch.backends.",
    "torch.version.",
    "torch.finfo",
    "torch.iinfo",
    "torch.compiler.",
    "torch._dynamo.",
    "torch.jit.is_",
    "torch.distributed.get_",
    "torch.distributed.is_",
)
# Libraries whose calls go on behind the call.
CONCURRENT = (
    "threading.Thread",
    "threading.Timer",
    "concurrent.futures.",
    "multiprocessing.",
    "torch.multiprocessing.",
    "asyncio.",
)
HARMLESS_PREFIXES = (
    "time.",
    "math.",
    "os.",
    "sys.",
    "logging.",
    "typing.",
    "warnings.",
    "random.",
    "gc.",
    "functools.wraps",
    "functools.lru_cache",
    "functools.cache",
    "itertools.",
    "collections.",
    "dataclasses.",
    "triton.cdiv",
    "triton.next_power_of_2",
    "triton.Config",
    "re.",
    "json.",
    "argparse.",
    "pathlib.",
    "numpy.random.seed",
)
