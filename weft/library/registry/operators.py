"""The operators that programs define: for each a schema and kernels by dispatch key, and how a call finds its kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import autocast
from ...core.above import above
from ...core.tensor import Tensor
from ..keys import DispatchKeySet, device_key, excluded, keys_of
from ..schema import FunctionSchema, parse_schema

_BACKENDS_BELOW = (
    "CompositeExplicitAutogradNonFunctional",
    "CompositeExplicitAutograd",
    "CompositeImplicitAutograd",
)


def fallthrough_kernel() -> None:
    """Registered for a dispatch key, this makes calls go on to the next key.

    Raises: NotImplementedError when it is called.
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Kernel:
    """A function for one dispatch key. `library` is the mark of the library that registered it."""

    __slots__ = ("function", "with_keyset", "library")

    def __init__(self, function: Callable, with_keyset: bool = False, library: Any = None):
        self.function, self.with_keyset, self.library = function, with_keyset, library


class Operator:
    """One overload of an operator: `my::op.overload`."""

    def __init__(self, schema: FunctionSchema, tags: Sequence[Any] = ()):
        self.schema, self.tags = schema, list(tags)
        # Dispatch key -> kernels; the last registered is called, and those before it are back when its library goes.
        self.kernels: dict[str, list[Kernel]] = {}
        self.torch_dispatch: dict[type, Callable] = {}
        # What `_find` found outside of autocast and of blocks that exclude keys; empty after a change of the kernels.
        self._usual: dict[tuple[bool, DispatchKeySet], Kernel] = {}
        self.definition: Any = None  # the CustomOpDef, if it was defined by one

    # -- Registering -----------------------------------------------------------------------------------------------

    def register(self, key: str, kernel: Kernel) -> None:
        """Register `kernel` for `key`; it replaces an earlier kernel until its library is destroyed."""
        self.kernels.setdefault(key, []).append(kernel)
        self._usual.clear()

    def remove(self, library: object) -> None:
        """Forget the kernels that the library with the mark `library` registered."""
        for key, registered in list(self.kernels.items()):
            registered[:] = [each for each in registered if each.library is not library]
            if not registered:
                del self.kernels[key]
        self._usual.clear()

    def has(self, key: str) -> bool:
        """Whether a kernel was registered for `key` itself."""
        return bool(self.kernels.get(key))

    # -- Calling ---------------------------------------------------------------------------------------------------

    def call(self, values: Sequence[Any], keyset: DispatchKeySet | None = None) -> Any:
        """Call the kernel for arguments of these values, one for each argument of the schema.

        Raises: NotImplementedError if there is none for their device.
        """
        tensors = tensors_in(values)
        if self.torch_dispatch:
            for each in tensors:
                found = self._torch_dispatch_rule(type(each))
                if found is not None:
                    return self._call_rule(found, type(each), values, tensors)
        if keyset is None:
            keyset = keys_of(tensors)
        kernel = self._kernel(tensors, keyset)
        args, kwargs = self.arguments(values)
        if kernel.with_keyset:
            args = (keyset, *args)
        return self._returned(kernel.function(*args, **kwargs))

    def arguments(self, values: Sequence[Any]) -> tuple[tuple, dict[str, Any]]:
        """The (args, kwargs) of a kernel. Trailing positional values and named values that equal the schema's defaults are left out."""
        declared = self.schema.arguments
        first = count = len(self.schema.positional)
        while count and _is_default(values[count - 1], declared[count - 1]):
            count -= 1
        if first == len(declared):
            return tuple(values[:count]), {}
        named = {
            each.name: value
            for value, each in zip(values[first:], declared[first:], strict=True)
            if not _is_default(value, each)
        }
        return tuple(values[:count]), named

    def _kernel(self, tensors: Sequence[Tensor], keyset: DispatchKeySet) -> Kernel:
        if autocast.open_contexts or excluded.names:
            return self._find(tensors, keyset)
        key = bool(tensors), keyset
        kernel = self._usual.get(key)
        if kernel is None:
            kernel = self._usual[key] = self._find(tensors, keyset)
        return kernel

    def _find(self, tensors: Sequence[Tensor], keyset: DispatchKeySet) -> Kernel:
        names = keyset._names
        hidden = excluded.names
        backend = next((each for each in names if each in _DENSE and each != "CPU"), "CPU")
        for key in self._wrapping(backend, names):
            if key not in hidden:
                kernel = self._registered(key)
                if kernel is not None:
                    return kernel
        if tensors or backend in names:
            for key in (backend, *_BACKENDS_BELOW):
                kernel = self._registered(key)
                if kernel is not None:
                    return kernel
            raise self._without_kernel(backend)
        for key in ("BackendSelect", *_BACKENDS_BELOW):
            kernel = self._registered(key)
            if kernel is not None:
                return kernel
        raise NotImplementedError(
            "There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), but no fallback "
            f"function is registered for schema {self.schema.qualified}.  This usually means that this function requires a "
            "non-empty list of Tensors, or that you (the operator writer) forgot to register a fallback function.  Available "
            f"functions are [{', '.join(self.kernels)}]."
        )

    def _wrapping(self, backend: str, names: frozenset[str]) -> list[str]:
        """The keys that are looked at before those of the backend, first to last."""
        found = []
        if f"Autocast{backend}" in names and autocast.open_contexts and autocast.state.enabled:
            found.append(f"Autocast{backend}")
        if f"Autograd{backend}" in names:
            found += [f"Autograd{backend}", "Autograd"]
        if "ADInplaceOrView" in names:
            found.append("ADInplaceOrView")
        return found

    def _registered(self, key: str) -> Kernel | None:
        registered = self.kernels.get(key)
        if not registered or registered[-1].function is fallthrough_kernel:
            return None
        return registered[-1]

    def _without_kernel(self, backend: str) -> NotImplementedError:
        name = self.schema.qualified
        if backend == "Meta":
            return NotImplementedError(
                f"{name}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel "
                "registered. Register one with torch.library.register_fake"
            )
        return NotImplementedError(
            f"Could not run '{name}' with arguments from the '{backend}' backend. This could be because the operator doesn't "
            f"exist for this backend. '{name}' is only available for these backends: [{', '.join(self.kernels)}]."
        )

    def _torch_dispatch_rule(self, kind: type) -> Callable | None:
        return next((self.torch_dispatch[each] for each in kind.__mro__ if each in self.torch_dispatch), None)

    def _call_rule(self, rule: Callable, kind: type, values: Sequence[Any], tensors: Sequence[Tensor]) -> Any:
        from ..namespaces import overload_of

        args, kwargs = self.arguments(values)
        kinds = tuple(dict.fromkeys(type(each) for each in tensors if type(each) is not Tensor))
        return rule(kind, overload_of(self), kinds, args, kwargs)

    def _returned(self, result: Any) -> Any:
        """The result as the schema declares it: a list for a list type, a tuple for several results."""
        returns = self.schema.returns
        if not returns:
            return None
        if len(returns) > 1:
            return tuple(result)
        if isinstance(result, tuple) and returns[0].real_type.kind() == "ListType":
            return list(result)
        return result


def _is_default(value: Any, argument: Any) -> bool:
    default = argument.default_value
    if value is default:
        return argument.has_default_value()
    if isinstance(value, Tensor) or not argument.has_default_value():
        return False
    return type(value) is type(default) and value == default


_DENSE = frozenset(
    device_key(each) for each in ("cpu", "cuda", "xpu", "mps", "meta", "hpu", "mtia", "xla", "privateuseone")
)


def tensors_in(values: Sequence[Any]) -> list[Tensor]:
    """The tensors among `values` and in lists among them."""
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [each for each in value if isinstance(each, Tensor)]
    return found


# ---- All of them --------------------------------------------------------------------------------------------------------

# "ns::name" -> overload name -> Operator, in the order of definition.
OPERATORS: dict[str, dict[str, Operator]] = {}


def _aten(name: str) -> dict[str, Operator]:
    from . import aten  # loaded when first used

    return aten.operators(name)


def _quantized(name: str) -> dict[str, Operator]:
    from ...layouts.quantized import operators  # loaded when first used

    return _composed(operators.overloads(name))


def _profiler(name: str) -> dict[str, Operator]:
    from . import profiler_operators  # loaded when first used

    return _composed(profiler_operators.overloads(name))


def _collective(namespace: str) -> Callable[[str], dict[str, Operator]]:
    """What finds the operators of a namespace of collectives."""
    return lambda name: _composed(above("distributed._operators").overloads(f"{namespace}::{name}"))


def _composed(overloads: Sequence[tuple[str, Callable | None]]) -> dict[str, Operator]:
    """Operators for pairs of a schema and a function, by the name of the overload. Those without a function cannot be called."""
    found = {}
    for text, function in overloads:
        each = Operator(parse_schema(text))
        if function is not None:
            each.register("CompositeExplicitAutograd", Kernel(function))
        found[each.schema.overload_name] = each
    return found


# Namespace -> what finds the operators that weft itself has there, by name.
SOURCES: dict[str, Callable[[str], dict[str, Operator]]] = {
    "aten": _aten,
    "quantized": _quantized,
    "profiler": _profiler,
    **{
        name: _collective(name)
        for name in ("_c10d_functional", "_c10d_functional_autograd", "_dtensor", "c10d", "c10d_functional")
    },
}


def overloads(qualname: str) -> dict[str, Operator]:
    """The overloads of `ns::name`, empty if there is no such operator."""
    known = OPERATORS.get(qualname)
    if known is not None:
        return known
    namespace, _, name = qualname.partition("::")
    found = SOURCES[namespace](name) if namespace in SOURCES else {}
    if found:
        OPERATORS[qualname] = found
    return found


def find(qualname: str, overload: str = "") -> Operator | None:
    """The operator `ns::name` of this overload name."""
    return overloads(qualname).get(overload)


def define(schema: FunctionSchema, tags: Sequence[Any] = ()) -> Operator:
    """Add an operator.

    Raises: RuntimeError if there is one of its name and overload already.
    """
    known = overloads(schema.name)
    if schema.overload_name in known:
        raise RuntimeError(
            f"Tried to register an operator ({schema}) with the same name and overload name multiple times. Each overload's "
            f"schema should only be registered with a single call to def(). Defined before: {known[schema.overload_name].schema}"
        )
    operator = Operator(schema, tags)
    OPERATORS.setdefault(schema.name, {})[schema.overload_name] = operator
    return operator


def undefine(operator: Operator) -> None:
    """Remove an operator."""
    known = OPERATORS.get(operator.schema.name, {})
    known.pop(operator.schema.overload_name, None)
    if not known:
        OPERATORS.pop(operator.schema.name, None)
