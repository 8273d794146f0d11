"""`torch.library`: operators that programs define, which are found under `torch.ops`."""

from __future__ import annotations

import contextlib
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..compat.missing import module_getattr
from ..core.device import KNOWN
from ..core.dtype import DType
from .keys import DispatchKey, Tag, device_key, parse_key
from .namespaces import OpOverload, OpOverloadPacket, forget
from .registry import autograd, fake_impl, operators, utils
from .registry.custom_ops import CustomOpDef, _maybe_get_opdef, custom_op
from .registry.custom_ops import register_autocast as _register_autocast
from .registry.effects import EffectType
from .registry.infer_schema import infer_schema
from .registry.operators import Kernel, Operator, fallthrough_kernel
from .registry.triton import triton_op, wrap_triton
from .schema import parse_schema

__all__ = [
    "Library", "impl", "define", "fallthrough_kernel", "impl_abstract", "register_autocast", "register_fake",
    "register_torch_dispatch", "register_vmap", "get_ctx", "get_kernel", "custom_op", "triton_op",
    "wrap_triton", "infer_schema",
]  # fmt: skip

_RESERVED = ("prim",)
# Dispatch keys for which weft's own operations do not look for kernels that programs register.
_ANSWERED_BY_WEFT = (
    *("CPU", "Meta", "Autograd", "AutogradCPU"),
    *("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"),
)
_defined: dict[str, object] = {}  # namespace -> the mark of the library of kind "DEF"
# Kernels of operators that are not defined yet: "ns::name" -> (dispatch key, kernel).
_waiting: dict[str, list[tuple[str, Kernel]]] = {}


class Library:
    """Operators and kernels that are registered together, and go with the library: when nothing refers to it, or
    `_destroy` is called.

    kind: "DEF" to define the operators of a namespace, once in a program; "FRAGMENT" to define more of them; "IMPL" to
    give existing operators kernels. dispatch_key: what `impl` registers for by default.
    Raises: ValueError for another kind; RuntimeError if there is a "DEF" of the namespace already.

    >>> import weft as torch
    >>> lib = torch.library.Library("tour_library", "DEF")
    >>> lib.define("triple(Tensor x) -> Tensor")
    'triple'
    >>> lib.impl("triple", lambda x: x * 3, "CompositeExplicitAutograd")
    >>> torch.ops.tour_library.triple(torch.ones(2))
    tensor([3., 3.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        self._mark = object()  # in the place of this object, which registered operators must not keep alive
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        if kind == "DEF":
            if ns in _defined or ns in operators.SOURCES:
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your "
                    "definitions in a single TORCH_LIBRARY block.  If you were trying to specify implementations, consider "
                    "using kind 'IMPL'; to define the operators of a namespace in several places, use kind 'FRAGMENT'."
                )
            _defined[ns] = self._mark
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._op_defs: list[Operator] = []
        self._destroy = weakref.finalize(self, _take_back, ns, self._mark, self._op_defs)
        self._destroy.atexit = False
        self._op_impls: set[tuple[str, str]] = set()

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator by its schema without the namespace; returns its name.

        Raises: RuntimeError if it is defined already or the schema cannot be read.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            name = schema.partition("(")[0]
            raise RuntimeError(
                f'def("{name}"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block.  All def()s should be placed '
                "in the (unique) TORCH_LIBRARY block for their namespace: use kind 'DEF' or 'FRAGMENT'."
            )
        parsed = parse_schema(schema)
        namespace, _, name = parsed.name.rpartition("::")
        if namespace and namespace != self.ns:
            raise RuntimeError(
                f"Explicitly provided namespace ({namespace}) in schema string does not match namespace of enclosing "
                f"TORCH_LIBRARY block ({self.ns})."
            )
        parsed.name = f"{self.ns}::{name}"
        given = (tags,) if isinstance(tags, Tag) else tuple(tags)
        operator = operators.define(parsed, given)
        self._op_defs.append(operator)
        for key, kernel in _waiting.pop(parsed.qualified, ()):
            operator.register(key, kernel)
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Register `fn` as the kernel of an operator for a dispatch key.

        op_name: a name with or without the namespace, or an overload. with_keyset: `fn` gets the set of dispatch keys first.
        Raises: TypeError if `fn` cannot be called; RuntimeError for dispatch keys that do not exist, and for a second kernel
        of the same key unless `allow_override`; NotImplementedError for the operations that weft itself has.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = parse_key(dispatch_key or self.dispatch_key)
        name = self._resolve_op_name(op_name, "impl")
        if (name, key) in self._op_impls and not allow_override:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding {name}'s behavior for "
                f"{key} dispatch key and {self.ns} namespace."
            )
        operator = self._operator(name)
        if operator is None:
            _waiting.setdefault(f"{self.ns}::{name}", []).append((key, Kernel(fn, with_keyset, self._mark)))
            return
        if self.ns in operators.SOURCES and key in _ANSWERED_BY_WEFT:
            raise NotImplementedError(
                f"Library.impl({self.ns}::{name}, dispatch_key={key!r}): weft's own operations do not look for kernels that "
                "programs register; subclass Tensor with __torch_function__ or use a TorchFunctionMode"
            )
        self._op_impls.add((name, key))
        operator.register(key, Kernel(fn, with_keyset, self._mark))

    def fallback(self, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Register a kernel for every operator that has none for a dispatch key.

        Raises: RuntimeError unless the namespace is "_"; NotImplementedError for the keys of the CPU, which every operation
        of weft answers itself.
        """
        key = parse_key(dispatch_key or self.dispatch_key)
        if self.ns != "_":
            raise RuntimeError(
                f'Fallback can only be registered using library fragment on the global namespace "_" but it is {self.ns}'
            )
        if fn is not fallthrough_kernel and key in _ANSWERED_BY_WEFT:
            raise NotImplementedError(
                f"Library.fallback(dispatch_key={key!r}): weft's own operations do not look for kernels that programs register"
            )

    def register_symm_mem_args(self, op_name: Any, arg_names: Sequence[str]) -> None:
        """Say which arguments live in memory that several GPUs share; nothing is to be done on the CPU."""
        self._resolve_op_name(op_name, "register_symm_mem_args")

    def _register_fake(
        self, op_name: Any, fn: Callable, _stacklevel: int = 1, *, allow_override: bool = True
    ) -> None:
        name = self._resolve_op_name(op_name, "register_fake")
        operator = self._operator(name)
        if operator is None:
            _waiting.setdefault(f"{self.ns}::{name}", []).append(("Meta", Kernel(fn, library=self._mark)))
            return
        if operator.has("Meta") and not allow_override:
            raise RuntimeError(
                f"register_fake(...): the operator {self.ns}::{name} already has a fake impl registered."
            )

        def fake(*args: Any, **kwargs: Any) -> Any:
            with fake_impl.set_ctx_getter(fake_impl.FakeImplCtx(None, operator.schema.qualified)):
                return fn(*args, **kwargs)

        operator.register("Meta", Kernel(fake, library=self._mark))

    def _register_torch_dispatch_rule(self, op_name: Any, torch_dispatch_class: Any, fn: Callable) -> None:
        self._wanted(self._resolve_op_name(op_name, "register_torch_dispatch")).torch_dispatch[
            torch_dispatch_class
        ] = fn

    def _register_effectful_op(self, op_name: str, effect: Any) -> None:
        self._wanted(self._resolve_op_name(op_name, "register_effectful_op"))

    def _resolve_op_name(self, op_name: Any, api_name: str) -> str:
        if isinstance(op_name, OpOverload):
            name = op_name._name
        elif isinstance(op_name, OpOverloadPacket):
            name = op_name._qualified_op_name
        elif isinstance(op_name, str):
            name = op_name
        else:
            raise RuntimeError(
                f"{api_name} should be passed either a name or an OpOverload object as the first argument"
            )
        namespace, mark, rest = name.partition("::")
        if mark and namespace != self.ns:
            raise RuntimeError(
                f"{api_name}: the operator {name} is not in the namespace {self.ns} of this library"
            )
        return rest if mark else name

    def _operator(self, name: str) -> Operator | None:
        name, _, overload = name.partition(".")
        return operators.find(f"{self.ns}::{name}", "" if overload == "default" else overload)

    def _wanted(self, name: str) -> Operator:
        operator = self._operator(name)
        if operator is None:
            raise RuntimeError(f"operator {self.ns}::{name} does not exist")
        return operator


def _take_back(namespace: str, mark: object, defined: list[Operator]) -> None:
    """Take back all that the library with this mark defined and registered."""
    for operator in defined:
        operators.undefine(operator)
        forget(operator)
    for overloads in operators.OPERATORS.values():
        for operator in overloads.values():
            operator.remove(mark)
    for kernels in _waiting.values():
        kernels[:] = [each for each in kernels if each[1].library is not mark]
    if _defined.get(namespace) is mark:
        del _defined[namespace]


# ---- Functions that keep a library for each namespace ---------------------------------------------------------------------

_fragments: dict[str, Library] = {}


def _library_for(namespace: str, lib: Library | None) -> Library:
    if lib is not None:
        return lib
    if namespace not in _fragments:
        _fragments[namespace] = Library(namespace, "FRAGMENT")
    return _fragments[namespace]


def _name_of(op: Any, function: str) -> str:
    if isinstance(op, OpOverload):
        return op._name
    if isinstance(op, CustomOpDef):
        return op._qualname
    if isinstance(op, str):
        return op
    raise ValueError(f"{function}({op}): got unexpected type for op: {type(op)}")


def define(
    qualname: str, schema: Any, *, lib: Library | None = None, tags: Any = (), alias_analysis: str = ""
) -> Any:
    """Define the operator `namespace::name` with the schema `(arguments) -> results`.

    >>> import weft as torch
    >>> torch.library.define("tour_define::sine", "(Tensor x) -> Tensor")
    >>> @torch.library.impl("tour_define::sine", "cpu")
    ... def sine(x):
    ...     return torch.sin(x)
    >>> torch.ops.tour_define.sine(torch.zeros(1))
    tensor([0.])
    """
    if isinstance(qualname, Library):  # define(lib, schema, alias_analysis="") as a decorator
        library, text = qualname, schema

        def wrap(f: Callable) -> Callable:
            library.impl(library.define(text, alias_analysis, tags=tags), f)
            return f

        return wrap
    if not isinstance(qualname, str):
        raise ValueError(
            f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}"
        )
    namespace, name = utils.parse_namespace(qualname)
    if not _NAMELESS_SCHEMA.fullmatch(schema):
        raise ValueError(
            f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got "{schema}"'
        )
    _library_for(namespace, lib).define(name + schema, alias_analysis, tags=tags)
    return None


_NAMELESS_SCHEMA = re.compile(r"\(.*\) -> .*", re.DOTALL)


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Register a function for types of devices ("default": for all of them), or decorate one.

    `impl(library, name, dispatch_key="")` decorates a kernel for a `Library`, too.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""

        def wrap(f: Callable) -> Callable:
            library.impl(name, f, key)
            return f

        return wrap
    named = (types,) if isinstance(types, str) else tuple(types)
    keys = set()
    for each in named:
        if each == "default":
            keys.add("CompositeExplicitAutograd")
        elif each in KNOWN:
            keys.add(device_key(each))
        else:
            raise RuntimeError(
                f"Expected one of {', '.join(KNOWN)} device type at start of device string: {each}"
            )

    def register(func: Callable) -> None:
        namespace, _ = utils.parse_namespace(qualname)
        library = _library_for(namespace, lib)
        for key in keys:
            library.impl(qualname, func, key)

    return register if func is None else register(func)


def register_kernel(
    op: Any,
    device_types: str | Sequence[str] | None,
    func: Callable | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Register a function as the kernel of an operator for types of devices (None: for all), or decorate one."""
    name = _name_of(op, "register_kernel")
    definition = _maybe_get_opdef(op if isinstance(op, (str, CustomOpDef)) else name)
    if definition is not None:
        return (
            definition.register_kernel(device_types, func)
            if func
            else definition.register_kernel(device_types)
        )
    return impl(name, "default" if device_types is None else device_types, func, lib=lib)


def register_fake(
    op: Any,
    func: Callable | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Register a fake kernel, which gives a result of the right shape and dtype without data, or decorate one.

    It serves tensors on the device meta.
    """
    name = _name_of(op, "register_fake")
    definition = _maybe_get_opdef(name)

    def register(func: Callable) -> Callable:
        if definition is not None:
            return definition.register_fake(func)
        namespace, op_name = utils.parse_namespace(name)
        _library_for(namespace, lib)._register_fake(op_name, func, allow_override=allow_override)
        return func

    return register if func is None else register(func)


def impl_abstract(
    qualname: str, func: Callable | None = None, *, lib: Library | None = None, _stacklevel: int = 1
) -> Any:
    """`register_fake` under its former name."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Library | None = None
) -> None:
    """Register `backward(ctx, *grads)` for an operator; `setup_context(ctx, inputs, output)` keeps what it needs.

    Raises: RuntimeError for operators that write to an argument or return a view.

    >>> import weft as torch
    >>> torch.library.define("tour_autograd::half", "(Tensor x) -> Tensor")
    >>> torch.library.impl("tour_autograd::half", "cpu", lambda x: x.detach() / 2)
    >>> torch.library.register_autograd("tour_autograd::half", lambda ctx, grad: grad / 2)
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.ops.tour_autograd.half(x).sum().backward()
    >>> x.grad
    tensor([0.5000, 0.5000])
    """
    name = _name_of(op, "register_autograd")
    definition = _maybe_get_opdef(name)
    if definition is not None:
        definition.register_autograd(backward, setup_context=setup_context)
        return
    schema = utils.lookup_op(name)._schema
    utils.check_functional(name, schema)
    if utils.has_kwarg_only_tensors(schema):
        raise NotImplementedError(
            f"register_autograd with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {schema}"
        )
    namespace, op_name = utils.parse_namespace(name)
    library = _library_for(namespace, lib)
    operator = library._wanted(op_name)
    kernel = autograd.kernel(operator, autograd.Info(backward, setup_context))
    library.impl(op_name, kernel, "Autograd", with_keyset=True)


def register_autocast(op: Any, device_type: str, cast_inputs: DType, /, *, lib: Library | None = None) -> Any:
    """Convert the floating-point arguments of an operator to `cast_inputs` within `torch.autocast`."""
    name = _name_of(op, "register_autocast")
    definition = _maybe_get_opdef(name)
    if definition is not None:
        return definition.register_autocast(device_type, cast_inputs)
    namespace, op_name = utils.parse_namespace(name)
    library = _library_for(namespace, lib)
    _register_autocast(library._wanted(op_name), device_type, cast_inputs, library)
    return None


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Callable | None = None, /, *, lib: Library | None = None
) -> Any:
    """Register `func(cls, op, types, args, kwargs)` for arguments of a class of tensors, or decorate one."""
    name = _name_of(op, "register_torch_dispatch")

    def register(func: Callable) -> Callable:
        definition = _maybe_get_opdef(name)
        if definition is not None:
            return definition.register_torch_dispatch(torch_dispatch_class, func)
        namespace, op_name = utils.parse_namespace(name)
        _library_for(namespace, lib)._register_torch_dispatch_rule(op_name, torch_dispatch_class, func)
        return func

    return register if func is None else register(func)


def register_vmap(op: Any, func: Callable | None = None, /, *, lib: Library | None = None) -> Any:
    """Register `func(info, in_dims, *args)` for `torch.vmap`, or decorate one.

    weft's `vmap` calls the operator for each sample, so the rule is not needed and not called.
    """
    name = _name_of(op, "register_vmap")
    definition = _maybe_get_opdef(name)
    if definition is not None:
        return definition.register_vmap(func) if func else definition.register_vmap()
    utils.lookup_op(name)

    return (lambda func: None) if func is None else None


def get_ctx() -> Any:
    """Within a fake kernel: what it may ask for sizes that depend on data. None elsewhere."""
    return fake_impl.get_ctx()


def get_kernel(op: Any, dispatch_key: Any) -> Any:
    """The kernel of an operator for a dispatch key, which `call_boxed(keyset, *args)` calls.

    Raises: RuntimeError if there is none.
    """
    if not isinstance(op, (str, OpOverload, CustomOpDef)):
        raise ValueError(f"get_kernel({op}): got unexpected type for op: {type(op)}")
    name = _name_of(op, "get_kernel")
    key = parse_key(dispatch_key.name if isinstance(dispatch_key, DispatchKey) else dispatch_key)
    operator = operators.find(*name.partition(".")[::2])
    found = None if operator is None else operator._registered(key)
    if operator is None or found is None:
        raise RuntimeError(f"{name} has no kernel for the dispatch key {key}")
    return _FoundKernel(found)


class _FoundKernel:
    """A kernel of an operator, without the way through the dispatch keys."""

    def __init__(self, kernel: Kernel):
        self._kernel = kernel

    def call_boxed(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        first = (keyset,) if self._kernel.with_keyset else ()
        return self._kernel.function(*first, *args, **kwargs)


def opcheck(
    op: Any,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = (
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
    ),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Check that an operator does for these arguments what it says of itself: schema, derivative, fake kernel.

    Returns the answer to each check, "SUCCESS" or the error.
    Raises: OpCheckError for the first that fails, unless `raise_exception` is False.
    """
    from .registry.checks import opcheck as check

    return check(
        op, args, kwargs, test_utils=test_utils, raise_exception=raise_exception, atol=atol, rtol=rtol
    )


def _register_effectful_op(op: Any, effect: EffectType | None, *, lib: Library | None = None) -> None:
    name = _name_of(op, "register_effectful_op")
    namespace, op_name = utils.parse_namespace(name)
    _library_for(namespace, lib)._register_effectful_op(op_name, effect)


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


__getattr__ = module_getattr(__name__)
