"""`torch.ops`: operators by namespace, name and overload, `torch.ops.aten.add.Tensor`."""

from __future__ import annotations

import contextlib
import importlib
import os
import types
from collections.abc import Callable, Iterator
from typing import Any

from ..core.entry import entry
from ..core.grad_mode import is_grad_enabled
from .keys import DispatchKey, DispatchKeySet, device_key, excluded, parse_key
from .registry import operators as _operators
from .registry.operators import Operator, tensors_in
from .schema import FunctionSchema

# Operators whose tensor arguments may be given as numbers.
_NUMBERS_AS_TENSORS = frozenset(
    f"aten::{name}{end}"
    for name in (
        *("add", "sub", "mul", "div", "true_divide", "divide", "multiply", "subtract", "floor_divide", "rsub", "fmod"),
        *("remainder", "eq", "ne", "lt", "le", "gt", "ge", "mod", "copy", "bitwise_and", "bitwise_or", "bitwise_xor"),
    )
    for end in ("", "_")
)  # fmt: skip


def dl_open_guard() -> Any:
    """A context in which PyTorch loads libraries; nothing is to be done here."""
    return contextlib.nullcontext()


class OperatorBase:
    """The base of overloads and of operators that take functions."""

    def __init__(self) -> None:
        self.py_kernels: dict[Any, Callable] = {}
        self.python_key_table: dict[Any, Callable] = {}
        self._entry = entry(self._run, reported=self)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._entry(*args, **kwargs)

    def _run(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the operator, which neither a mode nor a class overrides."""
        raise NotImplementedError("This method should be implemented by the class")

    def has_kernel_for_dispatch_key(self, k: Any) -> bool:
        """Whether a Python function is registered for the dispatch key `k`."""
        return k in self.py_kernels

    def has_kernel_for_any_dispatch_key(self, ks: DispatchKeySet) -> bool:
        """Whether a Python function is registered for one of the dispatch keys."""
        return any(isinstance(each, DispatchKey) and ks.has(each) for each in self.py_kernels)

    def py_impl(self, k: Any) -> Callable:
        """A decorator that registers a function for a dispatch key, a mode or a class of tensors.

        Raises: RuntimeError if there is one for `k` already.
        """

        def inner(fn: Callable) -> Callable:
            if isinstance(k, type):
                self.python_key_table[k] = fn
                return fn
            if k in self.py_kernels:
                raise RuntimeError(f"Trying to override a python impl for {k} on operator {self.name()}")
            self.py_kernels[k] = fn
            return fn

        return inner

    def py_functionalize_impl(self, fn: Callable) -> Callable:
        """`fn` again: it says how PyTorch's tracing makes the operator functional, and nothing is traced here."""
        return fn

    def name(self) -> str:
        """The qualified name."""
        raise NotImplementedError("This method should be implemented by the class")


# ---- Higher-order operators ----------------------------------------------------------------------------------------------

_higher_order_ops: dict[str, HigherOrderOperator] = {}


class HigherOrderOperator(OperatorBase):
    """An operator that takes functions: a subclass states `__call__`, or functions are registered with `py_impl`."""

    def __init__(
        self, name: str, *, cacheable: bool = False, supports_training_input_mutation: bool = False
    ) -> None:
        super().__init__()
        if type(self) is HigherOrderOperator:
            raise RuntimeError(
                "Direct instantiation of HigherOrderOperator is not allowed. Please subclass it."
            )
        self._name = self.__name__ = name
        _higher_order_ops[name] = self
        self._ns = "higher_order"
        self.__module__ = "torch.ops.higher_order"
        self._cacheable = cacheable
        self.supports_training_input_mutation = supports_training_input_mutation
        self.non_fallthrough_keys: Any = None
        vars(ops.higher_order).pop(name, None)

    def py_autograd_impl(self, fn: Callable) -> Callable:
        """Register `fn` for tensors that take part in autograd."""
        return self.py_impl(DispatchKey.Autograd)(fn)

    @property
    def namespace(self) -> str:
        """The namespace in `torch.ops`, which is `higher_order`."""
        return self._ns

    def cacheable(self) -> bool:
        """Whether compilers may cache graphs with it."""
        return self._cacheable

    def fallthrough(self, dispatch_key: Any) -> None:
        """Do nothing, because dispatch skips keys without a function anyway."""

    def dispatch(self, /, dispatch_key: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the function that is registered for a dispatch key.

        Raises: NotImplementedError if there is none.
        """
        found = self.py_kernels.get(dispatch_key)
        if found is None:
            raise NotImplementedError(
                f"could not find kernel for HigherOrderOperator {self._name} at dispatch key {dispatch_key}"
            )
        return found(*args, **kwargs)

    def _run(self, /, *args: Any, **kwargs: Any) -> Any:
        tensors = tensors_in((*args, *kwargs.values()))
        for each in tensors:
            rule = self.python_key_table.get(type(each))
            if rule is not None:
                return rule(*args, **kwargs)
        backend = next((each.device.type for each in tensors if each.device.type != "cpu"), "cpu")
        recorded = is_grad_enabled() and any(each.requires_grad for each in tensors)
        keys = [
            DispatchKey[device_key(backend)],
            DispatchKey.CompositeExplicitAutograd,
            DispatchKey.CompositeImplicitAutograd,
            DispatchKey.Autograd,
        ]
        if recorded and "Autograd" not in excluded.names:
            keys[:0] = [DispatchKey.Autograd, DispatchKey.AutogradCPU]
        for key in keys:
            if key in self.py_kernels:
                return self.py_kernels[key](*args, **kwargs)
        return self.dispatch(DispatchKey[device_key(backend)], *args, **kwargs)

    def __str__(self) -> str:
        return self.name()

    def __repr__(self) -> str:
        return self.name()

    def name(self) -> str:
        """The name under `torch.ops.higher_order`."""
        return self._name

    def __deepcopy__(self, memo: Any = None) -> HigherOrderOperator:
        return self


# ---- Overloads -----------------------------------------------------------------------------------------------------------


class OpOverload(OperatorBase):
    """One overload of an operator: `torch.ops.aten.add.Tensor`."""

    __module__ = "torch._ops"

    def __init__(
        self,
        overloadpacket: OpOverloadPacket,
        op: Callable,
        op_dk: Callable,
        schema: FunctionSchema,
        tags: list,
    ) -> None:
        super().__init__()
        self._op, self._op_dk, self._schema, self._tags = op, op_dk, schema, tags
        self._overloadpacket = overloadpacket
        self._overloadname = schema.overload_name or "default"
        self._name = schema.qualified
        self.__name__ = f"{schema.name.split('::')[1]}.{self._overloadname}"
        self.__module__ = overloadpacket.__module__
        self.__qualname__ = self._name
        self._is_view = schema._is_view_op()
        self._defined_in_python = schema.name.split("::")[0] not in _operators.SOURCES
        self._numbers = schema.name in _NUMBERS_AS_TENSORS

    @property
    def _namespace(self) -> str:
        return self._schema.name.split("::")[0]

    @property
    def _opname(self) -> str:
        return self._schema.name.split("::")[1]

    @property
    def _operator(self) -> Operator | None:
        return _operators.find(self._schema.name, self._schema.overload_name)

    def _run(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._op(self._schema.bind(args, kwargs, self._numbers))

    def redispatch(self, /, keyset: DispatchKeySet, *args: Any, **kwargs: Any) -> Any:
        """Call the kernel for the first of these dispatch keys."""
        return self._op_dk(keyset, self._schema.bind(args, kwargs, self._numbers))

    def has_kernel_for_dispatch_key(self, k: Any) -> bool:
        """Whether a kernel is registered for the dispatch key `k` itself."""
        operator = self._operator
        return super().has_kernel_for_dispatch_key(k) or operator is not None and operator.has(parse_key(k))

    def has_kernel_for_any_dispatch_key(self, ks: DispatchKeySet) -> bool:
        """Whether a kernel is registered for one of the dispatch keys."""
        operator = self._operator
        return super().has_kernel_for_any_dispatch_key(ks) or (
            operator is not None and any(operator.has(each) for each in ks._names)
        )

    def _can_decompose(self) -> bool:
        return self.has_kernel_for_dispatch_key("CompositeImplicitAutograd")

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """Call the kernel that is composed of other operators; NotImplemented if there is no such kernel."""
        operator = self._operator
        registered = None if operator is None else operator._registered("CompositeImplicitAutograd")
        return NotImplemented if registered is None else registered.function(*args, **kwargs)

    def name(self) -> str:
        """Namespace, name and overload: `aten::add.Tensor`."""
        return self._name

    @property
    def namespace(self) -> str:
        """The part of the name before `::`."""
        return self._namespace

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The operator with all of its overloads."""
        return self._overloadpacket

    @property
    def op(self) -> Callable:
        """The function that a call of the overload runs."""
        return self._op

    @property
    def tags(self) -> list:
        """The properties of the operator, as `torch.Tag`s."""
        return self._tags

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self._namespace}.{self._opname}.{self._overloadname}"

    def __hash__(self) -> int:
        return hash(self._name)

    def __deepcopy__(self, memo: Any = None) -> OpOverload:
        return self

    def __reduce__(self):
        return _overload_named, (self._schema.name, self._overloadname)


class OpOverloadPacket:
    """An operator with all of its overloads: `torch.ops.aten.add`. A call takes the first that its arguments fit."""

    __module__ = "torch._ops"
    __file__ = "torch.ops"

    def __init__(
        self, qualified_op_name: str, op_name: str, op: Callable | None, overload_names: list[str]
    ) -> None:
        self._qualified_op_name, self.__name__, self._op = qualified_op_name, op_name, op
        self.__module__ = f"torch._ops.{qualified_op_name.split('::')[0]}"
        self._overload_names = overload_names
        self._dir: list[str] = []
        self._entry = entry(self._run, reported=self)

    @property
    def _operators(self) -> dict[str, Operator]:
        return _operators.overloads(self._qualified_op_name)

    @property
    def op(self) -> Callable:
        """The function that a call runs."""
        return self._op or self.__call__

    @property
    def _schemas(self) -> dict[str, FunctionSchema]:
        return {name: each.schema for name, each in self._operators.items()}

    def __getattr__(self, key: str) -> OpOverload:
        if key.startswith("__"):
            raise AttributeError(f"'{self}' can't have an overload name beginning with '__'")
        shown = str(self._qualified_op_name.replace("::", "."))
        operator = self._operators.get("" if key == "default" else key)
        if operator is None:
            raise AttributeError(f"The underlying op of '{shown}' has no overload name '{key}'")
        overload = OpOverload(
            self,
            operator.call,
            lambda keyset, values: operator.call(values, keyset),
            operator.schema,
            operator.tags,
        )
        setattr(self, key, overload)
        self._dir.append(key)
        return overload

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._entry(*args, **kwargs)

    def _run(self, /, *args: Any, **kwargs: Any) -> Any:
        overloads = self._operators
        numbers = self._qualified_op_name in _NUMBERS_AS_TENSORS
        errors = []
        for operator in overloads.values():
            try:
                values = operator.schema.bind(args, kwargs, numbers)
            except RuntimeError as error:
                if len(overloads) == 1:
                    raise
                errors.append(str(error))
                continue
            return operator.call(values)
        raise RuntimeError(
            "Overloaded torch operator invoked from Python failed to match any schema:\n"
            + "\n\n".join(errors)
        )

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return [name or "default" for name in self._operators]

    def op_overloads(self) -> list[OpOverload]:
        """The overloads."""
        return [getattr(self, name) for name in self.overloads()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._dir)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.overloads()]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._qualified_op_name.replace('::', '.')}')>"

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def __hash__(self) -> int:
        return hash(self._qualified_op_name)

    def __deepcopy__(self, memo: Any = None) -> OpOverloadPacket:
        return self

    def __reduce__(self):
        return _packet_named, (self._qualified_op_name,)


def _packet_named(qualname: str) -> OpOverloadPacket:
    namespace, name = qualname.split("::")
    return getattr(getattr(ops, namespace), name)


def _overload_named(qualname: str, overload: str) -> OpOverload:
    return getattr(_packet_named(qualname), overload)


def overload_of(operator: Operator) -> OpOverload:
    """The overload of `torch.ops` that calls `operator`."""
    return _overload_named(operator.schema.name, operator.schema.overload_name or "default")


# ---- Namespaces ----------------------------------------------------------------------------------------------------------


class _Namespace(types.ModuleType):
    """A module that makes its members when they are first asked for, and iterates over those that it has made."""

    __file__ = "torch.ops"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._dir: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return iter(self._dir)


class _OpNamespace(_Namespace):
    """The operators of one namespace: `torch.ops.aten`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.ops.{name}")
        self.name = name

    def __getattr__(self, op_name: str) -> OpOverloadPacket:
        if op_name in ("__origin__", "__self__", "__path__", "__wrapped__", "__all__"):
            raise AttributeError(f"Invalid attribute '{op_name}' for '_OpNamespace' '{self.name}'")
        qualname = f"{self.name}::{op_name}"
        overloads = (
            {} if op_name.startswith("__") and op_name.endswith("__") else _operators.overloads(qualname)
        )
        if not overloads:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{op_name}'")
        packet = OpOverloadPacket(qualname, op_name, None, list(overloads))
        setattr(self, op_name, packet)
        self._dir.append(op_name)
        return packet


class _HigherOrderNamespace(_Namespace):
    """`torch.ops.higher_order`."""

    def __init__(self) -> None:
        super().__init__("torch.ops.higher_order")

    def __getattr__(self, name: str) -> HigherOrderOperator:
        if not name.startswith("__"):
            from . import higher_order  # noqa: F401 (it defines them, by this module)
        found = _higher_order_ops.get(name)
        if found is None:
            raise AttributeError(f"'_HigherOrderNamespace' 'higher_order' object has no attribute '{name}'")
        setattr(self, name, found)
        self._dir.append(name)
        return found


class _Ops(_Namespace):
    """`torch.ops`: the namespaces of operators."""

    __file__ = "_ops.py"

    def __init__(self) -> None:
        super().__init__("torch.ops")
        self.loaded_libraries: set[str] = set()
        self.higher_order = _HigherOrderNamespace()

    def __getattr__(self, name: str) -> _OpNamespace:
        if name.startswith("__"):
            raise AttributeError(f"'_Ops' object has no attribute '{name}'")
        namespace = _OpNamespace(name)
        setattr(self, name, namespace)
        self._dir.append(name)
        return namespace

    def import_module(self, module: str) -> None:
        """Import a module, which registers operators."""
        importlib.import_module(module)

    def load_library(self, path: str) -> None:
        """Register the operators of a compiled library of which weft has the operators.

        Raises: OSError for every other library, because compiled libraries need PyTorch.
        """
        from .registry.libraries import load

        path = os.path.realpath(path)
        if not load(path):
            raise OSError(
                f"Could not load this library: {path}: it is compiled for PyTorch, and weft has no operators of its name"
            )
        self.loaded_libraries.add(path)


ops: Any = _Ops()


def forget(operator: Operator) -> None:
    """Remove an operator that is no longer defined from `torch.ops`."""
    namespace, name = operator.schema.name.split("::")
    module = vars(ops).get(namespace)
    packet = None if module is None else vars(module).get(name)
    if packet is None:
        return
    vars(packet).pop(operator.schema.overload_name or "default", None)
    if not _operators.OPERATORS.get(operator.schema.name):
        delattr(module, name)
        module._dir.remove(name)
