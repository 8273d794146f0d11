"""Checkpoints that keep the results of some functions, which then do not run again.

PyTorch decides for each operator below its public functions. Here a public function is the unit: `linear` is one, and counts as
the operator that does its work.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..autograd.tensor import require_grad
from ..core.modes import TorchFunctionMode
from ..core.pytree import tree_flatten, tree_unflatten
from ..core.tensor import Tensor
from ._recomputation import Recomputation, state


class CheckpointPolicy(enum.Enum):
    """Whether the result of a function is kept for backward or computed again.

    MUST and PREFER are the same. OFFLOAD is SAVE, because results are in the CPU's memory.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_RECOMPUTE = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


class SelectiveCheckpointContext:
    """What a policy is told beside the operator: its result. Policies are asked in the first run only."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable | Sequence[Any], allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """Contexts for the two runs of a checkpointed function, under which the results of some operators are kept.

    policy_fn_or_list: `policy(ctx, op, *args, **kwargs)`, which returns a CheckpointPolicy in the first run, or a list of operators to
    keep. An operator is one of `torch.ops.aten`, or the public function for one that is not there. allow_cache_entry_mutation: do not
    raise an error if a result that was kept has been written to.

    >>> import functools
    >>> import weft as torch
    >>> from weft.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
    >>> calls = []
    >>> def policy(ctx, op, *args, **kwargs):
    ...     calls.append(ctx.is_recompute)
    ...     return CheckpointPolicy.MUST_SAVE
    >>> x = torch.ones(2, requires_grad=True)
    >>> contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    >>> checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False, context_fn=contexts).sum().backward()
    >>> calls
    [False, False]
    """
    if isinstance(policy_fn_or_list, (list, tuple)):
        for each in policy_fn_or_list:
            if not callable(each) or hasattr(each, "overloads"):
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {each} of type {type(each)}. Please update the "
                    "OpOverloadPacket to a specific OpOverload, such as torch.ops.aten.mm.default for torch.ops.aten.mm."
                )
        listed = tuple(policy_fn_or_list)

        def policy(ctx: SelectiveCheckpointContext, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            is_listed = any(op is each or op == each for each in listed)
            return CheckpointPolicy.MUST_SAVE if is_listed else CheckpointPolicy.PREFER_RECOMPUTE
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[Any, list[_Kept | None]] = {}
    return _First(policy, kept), _Again(kept, allow_cache_entry_mutation)


# ---- Operators -------------------------------------------------------------------------------------------------------

# Functions that compute nothing: policies are not asked about them.
_IGNORED_NAMES = frozenset(
    "__get__ __set__ __delete__ size dim numel stride is_contiguous storage_offset detach __len__ __repr__ requires_grad_ "
    "is_floating_point is_complex data_ptr".split()
)
# Public function -> the operator of PyTorch that does its work.
_WORKERS = {
    "conv1d": "convolution",
    "conv2d": "convolution",
    "conv3d": "convolution",
    "conv_transpose1d": "convolution",
    "conv_transpose2d": "convolution",
    "conv_transpose3d": "convolution",
    "scaled_dot_product_attention": "_scaled_dot_product_flash_attention_for_cpu",
    "softmax": "_softmax",
    "log_softmax": "_log_softmax",
    "layer_norm": "native_layer_norm",
    "group_norm": "native_group_norm",
    "batch_norm": "native_batch_norm",
    "dropout": "native_dropout",
}
# Of these, the overload that PyTorch calls is not the first that fits.
_WITH_CORRECTION = ("var", "std", "var_mean", "std_mean")
_OVERLOADS = ("default", "Tensor", "dim_IntList", "int", "ScalarMode", "self")


def _operator(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The operator that a call stands for: of `torch.ops.aten`, or the function itself; None for what computes nothing."""
    from ..library.namespaces import OpOverload, OpOverloadPacket, ops
    from ..library.registry.dispatching import resolve

    if isinstance(func, OpOverloadPacket):
        found = resolve(func, args, kwargs)
        return func if found is None else found[0]
    name = func.__name__
    if name in _IGNORED_NAMES:
        return None
    if isinstance(func, OpOverload):
        return func
    if name in ("matmul", "__matmul__"):
        ranks = {each.dim() for each in args[:2] if isinstance(each, Tensor)}
        name = "bmm" if max(ranks, default=2) > 2 else {1: "dot"}.get(max(ranks, default=2), "mm")
        name = "mv" if ranks == {1, 2} else name
    elif name == "linear":
        bias = args[2] if len(args) > 2 else kwargs.get("bias")
        name = "mm" if bias is None else "addmm"
    packet = getattr(ops.aten, _WORKERS.get(name, name), None)
    for overload in ("correction",) if name in _WITH_CORRECTION else _OVERLOADS:
        found = getattr(packet, overload, None)
        if found is not None:
            return found
    return func


# Operators that policies are not asked about, beside those that compute nothing.
SAC_IGNORED_OPS: set[Any] = set()


# ---- The two runs ----------------------------------------------------------------------------------------------------


class _Kept(NamedTuple):
    """The result of one call."""

    leaves: list[Any]  # of the result: tensors without history, and other things
    structure: Any
    needed_grad: list[bool]
    versions: list[int]
    # What the call's steps saved for backward: arguments and results by their number, or tensors of their own.
    saved: list[tuple[str, Any]]


# In the place of a result that the second run has used.
_USED: Any = ("used",)


class _First(TorchFunctionMode):
    """The first run: keeps results, or None for those that are computed again, by function in the order of the calls."""

    def __init__(self, policy: Callable, kept: dict[Any, list[_Kept | None]]):
        self._policy, self._kept = policy, kept

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        op = _operator(func, args, kwargs)
        run = state.run
        if op is None or run is None:
            return func(*args, **kwargs)
        outer, run.watched = run.watched, []
        try:
            result = func(*args, **kwargs)
            saved = run.watched
        finally:
            run.watched = outer
        if outer is not None:
            outer.extend(saved)
        keeps = self._keeps(op, args, kwargs, result)
        self._kept.setdefault(func, []).append(_kept(args, kwargs, result, saved) if keeps else None)
        return result

    def _keeps(self, op: Any, args: tuple, kwargs: dict[str, Any], result: Any) -> bool:
        """Whether the policy wants the result to be kept."""
        tensors = _tensors(result)
        if not tensors:
            return False
        policy = self._policy(
            SelectiveCheckpointContext(is_recompute=False, op_output=result), op, *args, **kwargs
        )
        wanted = policy if isinstance(policy, bool) else policy not in _RECOMPUTE
        in_place = any(each is other for each in tensors for other in _tensors((args, kwargs)))
        return wanted and not in_place


def _kept(args: tuple, kwargs: dict[str, Any], result: Any, saved: Sequence[Tensor]) -> _Kept:
    """What the second run needs instead of the call."""
    leaves, structure = tree_flatten(result)
    tensors, given = _tensors(result), _tensors((args, kwargs))
    return _Kept(
        [each.detach() if isinstance(each, Tensor) else each for each in leaves],
        structure,
        [isinstance(each, Tensor) and each.requires_grad for each in leaves],
        [each._version for each in tensors],
        [_place(each, given, tensors) for each in saved],
    )


class _Again(TorchFunctionMode):
    """The second run: gives the results that were kept."""

    def __init__(self, kept: dict[Any, list[_Kept | None]], may_change: bool):
        self._kept, self._may_change = kept, may_change

    def __enter__(self) -> Any:
        self._calls: dict[Any, int] = {}  # by function, in this run
        return super().__enter__()

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        run = state.run
        if _operator(func, args, kwargs) is None or run is None or run.keep is None:
            return func(*args, **kwargs)
        number = self._calls.get(func, 0)
        self._calls[func] = number + 1
        calls = self._kept.get(func, [])
        if number >= len(calls):
            raise RuntimeError(
                f"{func.__name__}: call {number + 1} of it in the recomputation was not made in the forward pass. A function "
                "that is checkpointed must call the same functions both times"
            )
        kept = calls[number]
        if kept is _USED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        if kept is None:
            return func(*args, **kwargs)
        calls[number] = _USED
        return self._restored(run, kept, args, kwargs)

    def _restored(self, run: Recomputation, kept: _Kept, args: tuple, kwargs: dict[str, Any]) -> Any:
        tensors = [each for each in kept.leaves if isinstance(each, Tensor)]
        if not self._may_change and [each._version for each in tensors] != kept.versions:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated. Clone it before it is written to, or "
                "pass allow_cache_entry_mutation=True"
            )
        given = _tensors((args, kwargs))
        assert run.keep is not None
        for kind, value in kept.saved:
            run.keep(given[value] if kind == "argument" else tensors[value] if kind == "result" else value)
        leaves = [
            require_grad(each.detach()) if needs else each
            for each, needs in zip(kept.leaves, kept.needed_grad, strict=True)
        ]
        return tree_unflatten(leaves, kept.structure)


def _tensors(tree: Any) -> list[Tensor]:
    return [each for each in tree_flatten(tree)[0] if isinstance(each, Tensor)]


def _place(saved: Tensor, given: Sequence[Tensor], results: Sequence[Tensor]) -> tuple[str, Any]:
    """Return which argument or result a saved tensor is; if none, a tensor of its own."""
    for kind, tensors in (("argument", given), ("result", results)):
        for number, each in enumerate(tensors):
            if (
                each._storage is saved._storage
                and each._byte_offset == saved._byte_offset
                and each.spec is saved.spec
            ):
                return kind, number
    return "own", saved.detach()
