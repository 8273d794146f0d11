"""`torch.library.custom_op`: a Python function as an operator."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ...core import autocast
from ...core.dtype import DType
from ..keys import DispatchKeySet, Tag, _ExcludeDispatchKeyGuard, device_key
from . import autograd, utils
from .fake_impl import FakeImplCtx, set_ctx_getter
from .infer_schema import infer_schema
from .operators import Kernel, tensors_in

# "ns::name" -> what `custom_op` defined.
OPDEFS: dict[str, CustomOpDef] = {}


def custom_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Define the operator `namespace::name` by a function with type annotations, or decorate one.

    mutates_args: the names of the arguments that the function writes to, or "unknown". device_types: the devices that the
    function is for; None means all. schema: the schema, if it is not to be inferred from the annotations.
    Raises: ValueError if no schema can be inferred.

    >>> import weft as torch
    >>> @torch.library.custom_op("tour::double", mutates_args=())
    ... def double(x: torch.Tensor) -> torch.Tensor:
    ...     return x * 2
    >>> double.register_autograd(lambda ctx, grad: grad * 2)
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.ops.tour.double(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def inner(fn: Callable) -> CustomOpDef:
        text = infer_schema(fn, mutates_args=mutates_args) if schema is None else schema
        namespace, opname = utils.parse_namespace(name)
        if "." in opname:
            raise ValueError(
                f"Attempted to pass in {name}, which has an overload name: operators that custom_op defines have one overload"
            )
        if schema is not None and mutates_args != "unknown":
            _check_mutated(namespace, opname, text, set(mutates_args))
        result = CustomOpDef(namespace, opname, text, fn, tags)
        if device_types is not None:
            result._only_for(device_types)
        return result

    return inner if fn is None else inner(fn)


def _check_mutated(namespace: str, name: str, schema: str, wanted: set[str]) -> None:
    from ..schema import parse_schema

    parsed = parse_schema(f"{namespace}::{name}{schema}" if schema.lstrip().startswith("(") else schema)
    found = {each.name for each in parsed.arguments if each.is_write}
    if found != wanted:
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={wanted}` and `schema={schema}. The schema suggests that the "
            f"op mutates {found} which is different from what was provided to us in `mutates_args`. Please make these "
            "consistent."
        )


class CustomOpDef:
    """An operator that a Python function defines: `custom_op` makes it, and a call runs it.

    Kernels for other devices, a fake kernel and a derivative are registered with its methods.
    """

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable, tags: Any = None) -> None:
        self._namespace, self._name, self._schema = namespace, name, schema
        self._init_fn = fn
        # Type of device -> kernel; None is for all others.
        self._backend_fns: dict[str | None, Callable] = {None: fn}
        self._disabled_kernel: set[str] = set()
        self._abstract_fn: Callable | None = None
        self._autograd = autograd.Info()
        given = () if tags is None else (tags,) if isinstance(tags, Tag) else tuple(tags)
        self._define([*given, *([] if Tag.pt2_compliant_tag in given else [Tag.pt2_compliant_tag])])
        OPDEFS[self._qualname] = self

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def _define(self, tags: Sequence[Any]) -> None:
        self._lib = get_library_allowing_overwrite(self._namespace, self._name)
        self._lib.define(f"{self._name}{self._schema}", tags=tags)
        self._operator = self._lib._wanted(self._name)
        self._operator.definition = self
        if utils.has_kwarg_only_tensors(self._operator.schema):
            raise NotImplementedError(
                f"custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {self._operator.schema}"
            )
        self._opoverload = utils.lookup_op(self._qualname)
        register = self._operator.register
        register("CompositeExplicitAutograd", Kernel(self._run, library=self._lib._mark))
        register("Meta", Kernel(self._run_fake, library=self._lib._mark))
        register("Autograd", Kernel(autograd.kernel(self._operator, self._autograd), True, self._lib))
        if self._operator.schema.is_mutable:
            register("ADInplaceOrView", Kernel(self._count_writes, True, self._lib))

    def _only_for(self, device_types: str | Sequence[str]) -> None:
        schema = self._operator.schema
        if not utils.has_tensor_arg(schema) and utils.get_device_arg_index(schema) is None:
            raise ValueError(
                "Functions without tensor inputs are required to have a `device: torch.device` argument"
            )
        fn = self._backend_fns.pop(None)
        for each in _listed(device_types):
            self._backend_fns[each] = fn

    # -- Kernels ---------------------------------------------------------------------------------------------------

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        values = self._operator.schema.bind(args, kwargs)
        tensors = tensors_in(values)
        place = utils.get_device_arg_index(self._operator.schema)
        if tensors:
            device_type = tensors[0].device.type
        elif place is not None and values[place] is not None:
            device_type = str(values[place]).partition(":")[0]
        else:
            device_type = "cpu"
        fn = self._kernel_for(device_type, bool(tensors))
        result = fn(*args, **kwargs)
        module = inspect.getmodule(fn)
        utils.check_aliasing_constraint(self._name, values, result, str(module))
        return result

    def _kernel_for(self, device_type: str, has_tensors: bool) -> Callable:
        if device_type in self._disabled_kernel:
            return self._init_fn
        fn = self._backend_fns.get(device_type) or self._backend_fns.get(None)
        if fn is not None:
            return fn
        if not has_tensors:
            raise RuntimeError(
                f"{self._name} does not have a kernel registered for {device_type}. Please use register_kernel to do so."
            )
        available = ", ".join(device_key(each) for each in self._backend_fns if each)
        raise NotImplementedError(
            f"Could not run '{self._qualname}' with arguments from the '{device_key(device_type)}' backend. "
            f"'{self._qualname}' is only available for these backends: [{available}]."
        )

    def _run_fake(self, *args: Any, **kwargs: Any) -> Any:
        if self._abstract_fn is None:
            if utils.is_functional_schema(self._operator.schema) or self._operator.schema.returns:
                raise RuntimeError(
                    f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx tracing to "
                    f"work. Please use `{self._init_fn.__name__}.register_fake` to add an fake impl."
                )
            return None
        with set_ctx_getter(FakeImplCtx(None, self._opoverload)):
            return self._abstract_fn(*args, **kwargs)

    def _count_writes(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        schema = self._operator.schema
        values = schema.bind(args, kwargs)
        for each, value in zip(schema.arguments, values, strict=True):
            if each.is_write:
                for tensor in tensors_in((value,)):
                    tensor._storage.version += 1
        with _ExcludeDispatchKeyGuard(
            DispatchKeySet("ADInplaceOrView", "Autograd", "AutogradCPU", "AutogradMeta")
        ):
            return self._operator.call(values)

    # -- What can be registered ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A context in which the kernel registered for a type of device is called or, if not `enabled`, the first function."""
        outer = set(self._disabled_kernel)
        (self._disabled_kernel.discard if enabled else self._disabled_kernel.add)(device_type)
        try:
            yield
        finally:
            self._disabled_kernel = outer

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Callable | None = None, /
    ) -> Callable:
        """Register a function for types of devices (None: for all that have none of their own), or decorate one."""

        def inner(fn: Callable) -> Callable:
            for each in (None,) if device_types is None else _listed(device_types):
                self._backend_fns[each] = fn
            return fn

        return inner if fn is None else inner(fn)

    def register_fake(self, fn: Callable, /) -> Callable:
        """Register what computes the result's shapes and dtypes: it is called for tensors on the device meta."""
        self._abstract_fn = fn
        return fn

    def register_effect(self, effect: Any) -> None:
        """Say that calls have an effect beyond their result. Calls keep their order in any case."""

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Register `backward(ctx, *grads)`; `setup_context(ctx, inputs, output)` keeps what it needs.

        Raises: RuntimeError for operators that write to an argument or return a view.
        """
        utils.check_functional(self, self._operator.schema)
        self._autograd.backward, self._autograd.setup_context = backward, setup_context

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable | None = None, /) -> Callable:
        """Register `fn(cls, func, types, args, kwargs)` for arguments of a class of tensors, or decorate one."""

        def inner(fn: Callable) -> Callable:
            self._operator.torch_dispatch[torch_dispatch_class] = fn
            return fn

        return inner if fn is None else inner(fn)

    def register_vmap(self, func: Callable | None = None) -> Any:
        """Register `func(info, in_dims, *args)` for `torch.vmap`, or decorate one.

        weft's `vmap` calls the operator for each sample, so the rule is not needed and not called.
        """

        return (lambda func: None) if func is None else None

    def register_autocast(self, device_type: str, cast_inputs: DType) -> Callable:
        """Convert floating-point arguments to a dtype within `torch.autocast`.

        Raises: ValueError for types of devices without autocast.
        """
        register_autocast(self._operator, device_type, cast_inputs, self._lib)
        return lambda *args, **kwargs: self(*args, **kwargs)


def _listed(device_types: str | Sequence[str]) -> tuple[str, ...]:
    return (device_types,) if isinstance(device_types, str) else tuple(device_types)


def register_autocast(operator: Any, device_type: str, cast_inputs: DType, library: Any) -> None:
    """Give an operator a kernel for Autocast, which converts its arguments.

    Raises: ValueError for types of devices without autocast.
    """
    if not isinstance(device_type, str):
        raise TypeError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in ("cpu", "cuda", "xpu"):
        raise ValueError(f"Unknown device type: {device_type}")

    def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = autocast.converted((list(args), kwargs), cast_inputs)
        outer = autocast.state.enabled
        autocast.state.enabled = frozenset()
        try:
            return operator.call(operator.schema.bind(args, kwargs))
        finally:
            autocast.state.enabled = outer

    operator.register(f"Autocast{device_key(device_type)}", Kernel(kernel, True, library))


def get_library_allowing_overwrite(namespace: str, name: str) -> Any:
    """A library for the operator `namespace::name`; if `custom_op` has defined that operator, it is removed.

    Notebooks define an operator again when a cell runs again, so the new definition replaces the old one.
    """
    from .. import Library

    earlier = OPDEFS.pop(f"{namespace}::{name}", None)
    if earlier is not None:
        earlier._lib._destroy()
    return Library(namespace, "FRAGMENT")


def _maybe_get_opdef(op: Any) -> CustomOpDef | None:
    if isinstance(op, CustomOpDef):
        return op
    name = op if isinstance(op, str) else op._schema.name
    return OPDEFS.get(name)
