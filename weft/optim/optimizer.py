"""The base of all optimizers has groups of parameters, saves and loads their state, and runs hooks."""

from __future__ import annotations

import copy
import functools
import itertools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ..autograd.handles import RemovableHandle
from ..autograd.ranges import as_range
from ..core.dtype import float32, float64, get_default_dtype
from ..core.grad_mode import enable_grad, no_grad
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..ops.creation.from_data import tensor as new_tensor
from ..ops.views.complex_views import view_as_real

# One union of items, so that type checkers accept lists of groups with different options.
ParamsT = Iterable[Tensor | dict[str, Any] | tuple[str, Tensor]]


class _Required:
    """The type of `required`, the default of an option that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()

_global_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_post_hooks: OrderedDict[int, Callable] = OrderedDict()

# The attributes that hold the hooks of one optimizer. Each is an OrderedDict for one moment at which hooks run.
_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class Optimizer:
    """Serves as the base of all optimizers, `torch.optim.Optimizer`.

    `params` is an iterable of tensors, of pairs (name, tensor), or of groups: dictionaries with these under "params"
    and options of their own. `defaults` are the options of groups that do not give them. Subclasses define `step`.
    Raises: TypeError or ValueError for parameters that cannot be optimized, as `add_param_group`.

    >>> import weft as torch
    >>> weight = torch.ones(2)
    >>> torch.optim.Optimizer([weight], {"lr": 0.1}).param_groups
    [{'params': [tensor([1., 1.])], 'lr': 0.1}]
    """

    # Options that state dictionaries of older versions lack, with their values.
    _legacy_options: dict[str, Any] = {}
    # Names of the state that older versions saved as numbers, and that is now 0-dim tensors.
    _scalar_state: tuple[str, ...] = ("step",)

    def __init__(self, params: ParamsT, defaults: dict[str, Any]):
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {_type_name(params)}"
            )
        self.defaults = defaults
        self._prepare()
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        try:
            groups: list[Any] = list(params)
        except TypeError as error:
            error.add_note("The optimizer wants parameters: model.parameters()")
            raise
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _prepare(self) -> None:
        """Set up the parts that are not saved: empty dictionaries of hooks, and a `step` that runs hooks."""
        for kind in _HOOKS:
            setattr(self, kind, OrderedDict())
        self._warned_capturable_if_run_uncaptured = (
            True  # PyTorch warns about graphs of CUDA with it; there are none here
        )
        self._patch_step_function()

    def _patch_step_function(self) -> None:
        """Let `step` run hooks. Optimizers that wrap others call this method instead of `__init__`."""
        cls = type(self)
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{cls.__name__}.zero_grad"
        if not hasattr(cls.step, "hooked"):
            cls.step = self.profile_hook_step(cls.step)  # type: ignore[method-assign]

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist: Any, with_indices: bool = False) -> dict:
        """Call `torch.utils._foreach_utils._group_tensors_by_device_and_dtype`; optimizers of libraries use it."""
        from .foreach_utils import _group_tensors_by_device_and_dtype as group

        return group(tensorlistlist, with_indices)

    @staticmethod
    def profile_hook_step(func: Callable) -> Callable:
        """Return `step` as a method that also runs the hooks of the optimizer."""
        return _with_hooks(func)

    def _cuda_graph_capture_health_check(self) -> None:
        """Raise RuntimeError if a step is captured that the host has to count, unless `capturable` is set."""
        for group in self.param_groups:
            is_captured = any(each.spec.device.backend.capture is not None for each in group["params"])
            if is_captured and not group.get("capturable", True):
                raise RuntimeError(
                    f"Attempting CUDA graph capture of step() for an instance of {type(self).__name__} "
                    "but param_groups' capturable is False."
                )

    # -- groups ------------------------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters to optimize, with their options.

        Raises: TypeError for other objects than tensors and for sets, ValueError for a tensor that is not a leaf, or is in a
        group already, or has a name where the others have none.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                "sets will change between runs. Please use a list instead."
            )
        params = list(params)
        param_group["params"], names = _without_names(params)
        if names is not None:
            param_group["param_names"] = names
        for param in param_group["params"]:
            self._check_param(param)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
            param_group.setdefault(name, default)
        self._check_group(param_group)
        self.param_groups.append(param_group)

    def _check_param(self, param: Any) -> None:
        if not isinstance(param, Tensor):
            raise TypeError(
                f"optimizer can only optimize Tensors, but one of the params is {_type_name(param)}"
            )
        if not self.defaults.get("differentiable", None) and not (param.is_leaf or param.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")

    def _check_group(self, group: dict[str, Any]) -> None:
        params = set(group["params"])
        if len(params) != len(group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=user_level(),
            )
        if any(not params.isdisjoint(other["params"]) for other in self.param_groups):
            raise ValueError("some parameters appear in more than one parameter group")
        named = "param_names" in group
        if self.param_groups and named != ("param_names" in self.param_groups[0]):
            which = "with" if named else "without"
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {which} names to the optimizer"
            )

    def __repr__(self) -> str:
        groups = []
        for number, group in enumerate(self.param_groups):
            lines = [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
            groups.append("\n".join([f"Parameter Group {number}", *lines]))
        return f"{type(self).__name__} (\n" + "\n\n".join(groups) + "\n)"

    # -- steps -------------------------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters; `closure` computes the loss and its gradients again. Returns the loss."""
        raise NotImplementedError

    def _step_sparse(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Update a parameter by its sparse gradient."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    @as_range(lambda self: self._zero_grad_profile_name)
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros if `set_to_none` is False."""
        for group in self.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if set_to_none:
                    param.grad = None
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # -- saving and loading ------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._prepare()
        for group in self.param_groups:
            for name, value in self._legacy_options.items():
                group.setdefault(name, value)
        for each in self.state.values():
            if isinstance(each, dict):
                for name in self._scalar_state:
                    if name in each and not isinstance(each[name], Tensor):
                        each[name] = scalar_tensor(float(each[name]))

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the groups, with a number for each parameter, for `load_state_dict`."""
        for hook in self._optimizer_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            hook(self)
        params = itertools.chain.from_iterable(group["params"] for group in self.param_groups)
        numbers: dict[int, int] = {}
        for param in params:
            numbers.setdefault(id(param), len(numbers))
        groups = []
        for group in self.param_groups:
            packed = {name: value for name, value in group.items() if name != "params"}
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        result: dict[str, Any] = {
            "state": {
                numbers[id(key)] if isinstance(key, Tensor) else key: value
                for key, value in self.state.items()
            },
            "param_groups": groups,
        }
        for hook in self._optimizer_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from the result of `state_dict`. State is converted to the dtypes and devices of the parameters.

        Raises: ValueError if the groups have other sizes.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        groups = self.param_groups
        saved = copy.deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(mine["params"]) != len(theirs["params"]) for mine, theirs in zip(groups, saved)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        owners: dict[Any, tuple[Tensor, dict[str, Any]]] = {}
        for mine, theirs in zip(groups, saved):
            owners.update((key, (param, theirs)) for key, param in zip(theirs["params"], mine["params"]))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in owners:
                param, group = owners[key]
                state[param] = _cast(value, param, group)
            else:
                state[key] = value
        for mine, theirs in zip(groups, saved):
            theirs["params"] = mine["params"]
            if "param_names" in mine and "param_names" not in theirs:
                theirs["param_names"] = mine["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            hook(self)

    # -- hooks -------------------------------------------------------------------------------------------------------

    def _register(self, kind: str, hook: Callable, prepend: bool = False) -> RemovableHandle:
        hooks = getattr(self, kind)
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` runs before each step; it may return new (args, kwargs)."""
        return self._register("_optimizer_step_pre_hooks", hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` runs after each step."""
        return self._register("_optimizer_step_post_hooks", hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer)` runs before `state_dict`."""
        return self._register("_optimizer_state_dict_pre_hooks", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer, state_dict)` runs after `state_dict`; it may return another one."""
        return self._register("_optimizer_state_dict_post_hooks", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer, state_dict)` runs before `load_state_dict`; it may return another dictionary."""
        return self._register("_optimizer_load_state_dict_pre_hooks", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer)` runs after `load_state_dict`."""
        return self._register("_optimizer_load_state_dict_post_hooks", hook, prepend)


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` runs before each step of every optimizer."""
    handle = RemovableHandle(_global_pre_hooks)
    _global_pre_hooks[handle.id] = hook
    return handle


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` runs after each step of every optimizer."""
    handle = RemovableHandle(_global_post_hooks)
    _global_post_hooks[handle.id] = hook
    return handle


def _with_hooks(step: Callable) -> Callable:
    """Return `step` with the hooks of its optimizer and the hooks of all optimizers around it."""

    @as_range(lambda self: f"Optimizer.step#{type(self).__name__}.step")
    @functools.wraps(step)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        self = args[0]
        own = self._optimizer_step_pre_hooks
        if own or _global_pre_hooks:
            for hook in [*_global_pre_hooks.values(), *own.values()]:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise RuntimeError(
                            f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                        )
                    args, kwargs = changed
        result = step(*args, **kwargs)
        own = self._optimizer_step_post_hooks
        if own or _global_post_hooks:
            for hook in [*own.values(), *_global_post_hooks.values()]:
                hook(self, args, kwargs)
        return result

    hooked.hooked = True  # type: ignore[attr-defined]
    return hooked


def _without_names(params: list[Any]) -> tuple[list[Any], list[str] | None]:
    """Return the parameters, and their names if the caller gave pairs (name, parameter)."""
    pairs = [isinstance(param, tuple) for param in params]
    if not any(pairs):
        return params, None
    if not all(pairs):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [param[1] for param in params], [param[0] for param in params]


def _type_name(value: Any) -> str:
    """Return the name of the type as `torch.typename` writes it."""
    if isinstance(value, Tensor):
        return value.type()
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _cast(value: Any, param: Tensor, group: dict[str, Any], name: Any = None) -> Any:
    """Convert state to the dtype and device of `param`; `step` keeps its dtype and device."""
    if isinstance(value, Tensor):
        if name == "step":
            on_device = group.get("capturable") or group.get("fused")
            return value.to(dtype=float32, device=param.device) if on_device else value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {key: _cast(each, param, group, key) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(_cast(each, param, group) for each in value)  # type: ignore[call-arg]
    return value


def scalar_tensor(value: float) -> Tensor:
    """Return a number as a 0-dim tensor for the state; it is float64 only if that is the default dtype."""
    dtype = float64 if get_default_dtype() is float64 else float32
    return new_tensor(value, dtype=dtype, device="cpu")


def evaluate(closure: Callable[[], Any] | None) -> Any:
    """Return the loss that a closure computes with gradients enabled, or None without a closure."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


# ---- Checks of options -------------------------------------------------------------------------------------------


def check_lr(lr: Any, message: str = "Invalid learning rate: {}") -> None:
    """Raise ValueError for a negative learning rate, or a tensor with several."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check(lr, message)


def check(value: Any, message: str) -> None:
    """Raise ValueError with `message` unless 0 <= value."""
    if not 0.0 <= value:
        raise ValueError(message.format(value))


def check_betas(betas: Any) -> None:
    """Raise ValueError for a beta outside [0, 1)."""
    for index in range(2):
        if not 0.0 <= betas[index] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")


def check_adam_options(lr: Any, betas: Any, eps: float, weight_decay: float) -> None:
    """Raise ValueError for options of Adam and its relatives outside their range."""
    check_lr(lr)
    check(eps, "Invalid epsilon value: {}")
    check_betas(betas)
    check(weight_decay, "Invalid weight_decay value: {}")


def check_fused(defaults: dict[str, Any]) -> None:
    """Raise RuntimeError for options that exclude each other."""
    if defaults["fused"]:
        if defaults["differentiable"]:
            raise RuntimeError("`fused` does not support `differentiable`")
        if defaults["foreach"]:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


# ---- What optimizers outside of PyTorch import ---------------------------------------------------------------------


def _use_grad_for_differentiable(func: Callable) -> Callable:
    """Decorate `step` so that autograd records it only if the option "differentiable" of the optimizer is on."""

    @functools.wraps(func)
    def step(*args: Any, **kwargs: Any) -> Any:
        with enable_grad() if args[0].defaults.get("differentiable") else no_grad():
            return func(*args, **kwargs)

    return step


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Return (fused, foreach), the kernels that PyTorch chooses; on the CPU it takes fused ones only if asked."""
    on_cpu = all(
        p is None or (type(p) is Tensor or isinstance(p, Tensor)) and p.is_floating_point() for p in params
    )
    return (use_fused and not differentiable and on_cpu, False)


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the types of devices for which PyTorch prefers its kernels of lists."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the types of devices for which PyTorch has fused kernels."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Return the types of devices on which steps can be captured."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _get_value(x: Any) -> Any:
    """Return the number of a 0-dim tensor, or the number that is given."""
    return x.item() if isinstance(x, Tensor) else x


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """Return the dtype in which optimizers count their steps."""
    return float32 if is_fused else float64 if get_default_dtype() is float64 else float32


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replace the complex tensors of all these lists by their real views."""
    for index, param in enumerate(params):
        if param.is_complex():
            params[index] = view_as_real(param)
            for each in state_and_grads:
                each[index] = view_as_real(each[index])


def _disable_dynamo_if_unsupported(single_tensor_fn: Callable | None = None) -> Callable:
    """Return the function unchanged."""
    return lambda function: function
