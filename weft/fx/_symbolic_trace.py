"""Symbolic tracing: a module is called with proxies, which write down what it does as a graph.

>>> import weft as torch
>>> class Scaled(torch.nn.Module):
...     def __init__(self):
...         super().__init__()
...         self.linear = torch.nn.Linear(4, 2)
...
...     def forward(self, x, scale=2.0):
...         return torch.relu(self.linear(x)) * scale
>>> print(torch.fx.symbolic_trace(Scaled()).code.strip())
def forward(self, x, scale = 2.0):
    linear = self.linear(x);  x = None
    relu = torch.relu(linear);  linear = None
    mul = relu * scale;  relu = scale = None
    return mul
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import copy
import functools
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import weft

from ..core import overrides
from ..core import pytree as pytree
from ..core.registry import FUNCTIONS
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..layouts.quantized.script_object import ScriptObject as ScriptObject
from ..nn import Module, Parameter, Sequential
from ._codegen import _PyTreeCodeGen, _PyTreeInfo
from ._compatibility import compatibility
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node, base_types
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

# The methods of Module that tracing replaces, as they are outside of it.
_orig_module_call: Callable = Module.__call__
_orig_module_getattr: Callable = Module.__getattr__

# Functions and methods whose arguments are sizes.
_OF_SIZES = ("zeros", "ones", "empty")
_METHODS_OF_SIZES = ("view", "expand", "repeat", "new_zeros", "new_ones", "new_empty", "new_full")

_proxyable_classes: dict[type, None] = {}
_is_fx_tracing_flag = False


def is_fx_tracing() -> bool:
    """Whether a symbolic trace is going on."""
    return _is_fx_tracing_flag


def is_fx_symbolic_tracing() -> bool:
    """Whether a symbolic trace is going on, outside of a compiler."""
    return _is_fx_tracing_flag


def is_fx_tracing_warning() -> None:
    """Warns of programs that confuse `is_fx_tracing` with other kinds of tracing. weft has one kind, so it does nothing."""


@compatibility(is_backward_compatible=True)
class ProxyableClassMeta(type):
    """A metaclass for classes whose instances may be made of proxies: making one becomes a node.

    >>> import weft as torch
    >>> class Pair(metaclass=torch.fx.ProxyableClassMeta):
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> def swapped(pair: Pair):
    ...     return Pair(pair.right, pair.left)
    >>> traced = torch.fx.symbolic_trace(lambda x, y: swapped(Pair(x, y)).left)
    >>> traced(1, 2)
    2
    """

    def __init__(cls, name: str, bases: tuple, attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made: Any = cls
        instance = made.__new__(made)
        if not is_fx_tracing():
            made.__init__(instance, *args, **kwargs)
            return instance
        found: dict[Any, None] = {}

        def note(proxy: Any) -> Any:
            found[proxy.tracer] = None
            return proxy

        _map_proxies(args, note)
        _map_proxies(kwargs, note)
        if not found:
            made.__init__(instance, *args, **kwargs)
            return instance
        if len(found) > 1:
            raise AssertionError(f"Expected one tracer, got {list(found)}")
        return next(iter(found)).create_proxy("call_function", cls, args, kwargs)


def _map_proxies(values: Any, function: Callable[[Any], Any]) -> None:
    from .node import map_aggregate

    map_aggregate(values, lambda each: function(each) if isinstance(each, Proxy) else each)


class PHBase:
    """A placeholder in `concrete_args`: this part of the argument stays an input of the graph."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A placeholder whose attributes go to the node of the input; `ph_key` tells placeholders apart."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


def _transfer_attrs(fr: Any, to: Any) -> None:
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


def _patch_function(fn: FunctionType, nargs: int) -> FunctionType:
    """A copy of `fn` that takes `nargs` positional arguments for its named ones, its *args and its **kwargs alike.

    A Proxy then stands for all of *args.
    """
    code = fn.__code__
    names = code.co_varnames
    plain = code.replace(
        co_argcount=nargs, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=code.co_flags & ~HAS_VARSTUFF
    )
    assert names == plain.co_varnames
    return FunctionType(plain, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


@compatibility(is_backward_compatible=True)
class Tracer(TracerBase):
    """Traces modules and functions. Override its methods to change what becomes a node.

    >>> import weft as torch
    >>> class Everything(torch.fx.Tracer):  # goes into all modules
    ...     def is_leaf_module(self, m, module_qualified_name):
    ...         return False
    >>> print(Everything().trace(torch.nn.ReLU()))
    graph():
        %input_1 : torch.Tensor [num_users=1] = placeholder[target=input]
        %relu : [num_users=1] = call_function[target=torch.nn.functional.relu](args = (%input_1,), kwargs = {inplace: False})
        return relu
    """

    _qualname_counter: dict[str, int] = collections.defaultdict(int)

    @compatibility(is_backward_compatible=True)
    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        # Functions whose calls become nodes wherever the traced program calls them by a global name.
        self._autowrap_function_ids: set[int] = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        }
        self._autowrap_function_ids.update(id(each) for each in autowrap_functions)
        self._autowrap_search: list[ModuleType] = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name: str = ""
        self.scope = Scope("", None)
        self.module_stack: collections.OrderedDict[str, tuple[str, Any]] = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope: dict[str, tuple[str, type]] = {}

    @compatibility(is_backward_compatible=False)
    def get_fresh_qualname(self, prefix: str) -> str:
        """An attribute name that begins with `prefix` and that the root does not have."""
        # The numbers before were given out for this root; a root that lacks number 0 is another one.
        number = self._qualname_counter[prefix] if hasattr(self.root, f"{prefix}0") else 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        self._qualname_counter[prefix] = number
        return f"{prefix}{number}"

    @compatibility(is_backward_compatible=True)
    def create_arg(self, a: Any) -> Argument:
        """The argument of a node for a value of the program; parameters, buffers and constants become attributes."""
        if isinstance(a, Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            for name, buffer in self.root.named_buffers():
                if a is buffer:
                    return self.create_node("get_attr", name, (), {})
        elif isinstance(a, Module):
            for name, module in self.root.named_modules():
                if a is module:
                    return self.create_node("get_attr", name, (), {})
        elif isinstance(a, tuple) and hasattr(a, "_fields"):
            # Making the named tuple is a step of its own.
            fields = tuple(self.create_arg(each) for each in a)
            return self.create_node("call_function", a.__class__, fields, {})
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._constant(a, "_tensor_constant"), (), {})
        if type(a) in _proxyable_classes:
            return self.create_node(
                "get_attr", self._constant(a, f"_{a.__class__.__name__}_constant_"), (), {}
            )
        return super().create_arg(a)

    def _constant(self, value: Any, prefix: str) -> str:
        """The attribute of the root that holds `value`; it is added if there is none."""
        is_hashable = isinstance(value, collections.abc.Hashable)
        name = self.tensor_attrs.get(value) if is_hashable else None
        if name is None:
            name = self.get_fresh_qualname(prefix)
            if is_hashable:
                self.tensor_attrs[value] = name
            setattr(self.root, name, value)
        return name

    @compatibility(is_backward_compatible=True)
    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of the module becomes one node. By default this holds for all layers but Sequential."""
        root, _, rest = m.__module__.partition(".")
        is_layer = root in ("torch", "weft") and rest.startswith(("nn", "ao.nn"))
        return is_layer and not isinstance(m, Sequential)

    @compatibility(is_backward_compatible=True)
    def path_of_module(self, mod: Module) -> str:
        """The path of a submodule of the root. Raises: NameError if it is none."""
        if self.submodule_paths is not None:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if mod is module:
                return name
        raise NameError("module is not installed as a submodule")

    @compatibility(is_backward_compatible=True)
    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What happens when the program calls a module: a node for leaf modules, else its `forward` is traced."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            self.num_calls[path] = calls + 1
            key = f"{scope.module_path}@{calls}" if calls > 0 else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem(last=True)

    @compatibility(is_backward_compatible=False)
    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What happens when the program reads an attribute of a module: parameters become proxies."""
        if isinstance(attr_val, Parameter):
            found = self._proxy_of(attr_val, self.root.named_parameters(), parameter_proxy_cache, True)
            if found is not None:
                return found
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            found = self._proxy_of(attr_val, self.root.named_buffers(), parameter_proxy_cache, False)
            if found is not None:
                return found
        return attr_val

    def _proxy_of(
        self, value: Any, members: Iterator[tuple[str, Any]], cache: dict[str, Any], is_parameter: bool
    ) -> Any:
        for name, member in members:
            if value is not member:
                continue
            if name not in cache:
                # Nothing else, because tracers of libraries override create_proxy with fewer parameters.
                options: dict[str, Any] = {}
                if is_parameter and self.param_shapes_constant:
                    options["proxy_factory_fn"] = functools.partial(_parameter_proxy, self, name, value)
                cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
            return cache[name]
        return None

    # ---- The arguments of the root ------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=False)
    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """The function to trace and its arguments: proxies of placeholders, or parts of `concrete_args`."""
        analysed: Any = inspect.unwrap(root_fn)
        code: CodeType = analysed.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        original_names = list(code.co_varnames)
        names = iter(code.co_varnames)
        args: list[Any] = []
        skipped = 0
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            skipped = 1
            next(names)
            args.append(self.root)
        signature = inspect.signature(analysed)

        if isinstance(concrete_args, tuple):
            if len(concrete_args) != total - skipped:
                raise RuntimeError(
                    f"Tracing expected {total - skipped} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(original_names[skipped:], concrete_args, strict=False))

        def placeholder(name: str) -> Any:
            return self._proxy_placeholder(name, concrete_args, signature, analysed)

        args.extend(placeholder(next(names)) for _ in range(skipped, total))

        if code.co_kwonlyargcount > 0 or code.co_flags & HAS_VARSTUFF:
            if code.co_flags & inspect.CO_VARARGS:
                args.append(placeholder("*" + next(names)))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(placeholder("**" + next(names)))
            root_fn = _patch_function(analysed, len(args))

        leaves, in_spec = pytree.tree_flatten(tuple(args))
        if not all(child.is_leaf() for child in in_spec.children_specs):
            self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(original_names[:total], in_spec, None))

            def flattened(*leaves: Any) -> Any:
                result = root_fn(*pytree.tree_unflatten(list(leaves), in_spec))
                out_leaves, out_spec = pytree.tree_flatten(result)
                codegen: Any = self.graph._codegen
                codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
                return out_leaves

            return flattened, leaves
        return root_fn, args

    def _proxy_placeholder(
        self,
        name: str,
        concrete_args: dict[str, Any] | None,
        sig: inspect.Signature,
        fn_for_analysis: Callable[..., Any],
    ) -> Any:
        """The argument `name`: a Proxy, or what `concrete_args` says with proxies in place of PH."""
        if concrete_args is not None and name in concrete_args:
            count = 0

            def replace(value: Any) -> Any:
                nonlocal count
                count += 1
                default = (
                    ()
                    if sig.parameters[name].default is inspect.Parameter.empty
                    else (sig.parameters[name].default,)
                )
                out = self.create_proxy("placeholder", f"{name}_{count}", default, {})
                if isinstance(value, PHBase):
                    if value is not PH:
                        _transfer_attrs(fr=value, to=out.node)
                    return out
                self._guard(name, value, out)
                return value

            return pytree.tree_map(replace, concrete_args[name])
        if name.startswith("*"):
            default: tuple = ()
        else:
            parameter = sig.parameters[name]
            default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
        annotation = _annotation(fn_for_analysis, name)
        return self.create_proxy("placeholder", name, default, {}, type_expr=annotation)

    def _guard(self, name: str, value: Any, out: Proxy) -> None:
        """Let the graph check that an argument has the value that it was traced with."""
        expectation = f"{name} has been specialized to have value {value} but got another value"
        if type(value) in base_types and not isinstance(value, Tensor):
            weft._assert(out == value, expectation)
        elif value is None:
            self.create_proxy("call_function", _assert_is_none, (out, expectation), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the "
                "user to make sure that your inputs match the inputs you specialized the function with.",
                stacklevel=user_level(),
            )

    # ---- Tracing --------------------------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=True)
    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or function.

        Arguments named in `concrete_args` have the values given there, so that control flow may depend on them.
        """
        global _is_fx_tracing_flag
        outer_flag, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        knew_none = not overrides.override_types
        try:
            fn, module = self._set_root(root)
            self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
            if hasattr(fn, "__code__"):
                code = fn.__code__
                self.graph._co_fields = {
                    "co_name": code.co_name,
                    "co_filename": code.co_filename,
                    "co_firstlineno": code.co_firstlineno,
                }
            self.tensor_attrs = self._plain_tensors()
            if not isinstance(fn, FunctionType):
                raise AssertionError(f"Expected FunctionType, got {type(fn)}")
            globals_of_root = fn.__globals__
            fn, args = self.create_args_for_root(fn, module is not None, concrete_args)
            with self._patched(globals_of_root):
                result = fn(*args)
                annotation = _annotation(fn, "return")
                self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=annotation)
            self.submodule_paths = None
        finally:
            _is_fx_tracing_flag = outer_flag
            if knew_none:  # plain tensors do not pay for an end that only proxies need
                overrides.override_types.difference_update(
                    [kind for kind in overrides.override_types if issubclass(kind, Proxy)]
                )
        return self.graph

    def _set_root(self, root: Module | Callable[..., Any]) -> tuple[Any, Module | None]:
        """Note the root, and return the function to trace."""
        if isinstance(root, Module):
            from ._lazy_graph_module import _LazyGraphModule

            for module in root.modules():
                _LazyGraphModule.force_recompile(module)
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
                )
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
            fn = getattr(type(root), self.traced_func_name)
            return fn, root
        self.root = Module()
        self.submodule_paths = None
        return root, None

    def _plain_tensors(self) -> dict[Any, str]:
        """Tensors that are attributes of modules without being parameters or buffers, with their paths."""
        found: dict[Any, str] = {}

        def collect(module: Module, prefix: list[str]) -> None:
            for name, value in module.__dict__.items():
                if isinstance(value, Tensor):
                    found[value] = ".".join([*prefix, name])
            for name, child in module.named_children():
                collect(child, [*prefix, name])

        collect(self.root, [])
        return found

    @contextlib.contextmanager
    def _patched(self, globals_of_root: dict[str, Any]) -> Iterator[None]:
        """Inside, calls and parameters of modules, and calls of wrapped functions, come to this tracer."""
        cache: dict[str, Proxy] = {}

        def module_getattr(mod: Any, attr: Any) -> Any:
            return self.getattr(attr, _orig_module_getattr(mod, attr), cache)

        def module_call(mod: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _orig_module_call(mod, *args, **kwargs)

            _autowrap_check(
                patcher,
                getattr(getattr(mod, "forward", mod), "__globals__", {}),
                self._autowrap_function_ids,
            )
            return self.call_module(mod, forward, args, kwargs)

        with _new_patcher() as patcher:
            patcher.patch_method(Module, "__getattr__", module_getattr, deduplicate=False)
            patcher.patch_method(Module, "__call__", module_call, deduplicate=False)
            self._patch_sizes(patcher)
            _patch_wrapped_functions(patcher)
            _autowrap_check(patcher, globals_of_root, self._autowrap_function_ids)
            for module in self._autowrap_search:
                _autowrap_check(patcher, module.__dict__, self._autowrap_function_ids)
            yield

    def _patch_sizes(self, patcher: _Patcher) -> None:
        """Let functions that take only sizes ask for proxies among them, which they never do outside of tracing."""
        for name in _OF_SIZES:
            patcher.patch(vars(weft), name, self._recording(FUNCTIONS[name], "call_function"))
        for name in _METHODS_OF_SIZES:
            patcher.patch_method(Tensor, name, self._recording(vars(Tensor)[name], "call_method"))

    @staticmethod
    def _recording(function: Callable[..., Any], op: str) -> Callable[..., Any]:
        target = function if op == "call_function" else function.__name__

        @functools.wraps(function)
        def recording(*args: Any, **kwargs: Any) -> Any:
            proxy = _find_proxy(args, kwargs)
            if proxy is None:
                return function(*args, **kwargs)
            return proxy.tracer.create_proxy(op, target, args, kwargs)

        return recording

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        # `_autowrap_search` holds modules, which cannot be copied.
        new = Tracer.__new__(type(self))
        for name, value in self.__dict__.items():
            new.__dict__[name] = (
                copy.copy(value) if name == "_autowrap_search" else copy.deepcopy(value, memo)
            )
        return new


def _parameter_proxy(tracer: TracerBase, name: str, parameter: Any, node: Node) -> ParameterProxy:
    return ParameterProxy(tracer, node, name, parameter)


def _annotation(function: Callable[..., Any], name: str) -> Any:
    """The annotation of a parameter. weft writes its own as text, where PyTorch's layers have classes, or none for Any."""
    annotation = getattr(function, "__annotations__", {}).get(name)
    package = getattr(function, "__globals__", {}).get("__package__") or ""  # a script has None
    if isinstance(annotation, str) and package.partition(".")[0] == "weft":
        try:
            annotation = eval(annotation, function.__globals__)
        except Exception:
            return None
        return None if annotation is Any else annotation
    return annotation


# ---- Functions that become nodes -----------------------------------------------------------------------------------------

# (id of a module's globals, name of a function in it) -> these globals.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
# Methods of classes.
_wrapped_methods_to_patch: list[tuple[type, str]] = []


def _find_proxy(*objects_to_search: Any) -> Proxy | None:
    """The first Proxy among the arguments of a call."""
    found: list[Proxy] = []
    for each in objects_to_search:
        _map_proxies(each, lambda proxy: found.append(proxy))
    return found[0] if found else None


def _create_wrapped_func(orig_fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        if isinstance(result, Proxy):  # tracers that know values give containers of proxies
            result.node.meta["is_wrapped"] = True
        return result

    return wrapped


def _create_wrapped_method(cls: type, name: str) -> Callable[..., Any]:
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


class _PatchedFn(NamedTuple):
    """A name that was given another meaning."""

    frame_dict: Any
    fn_name: str
    orig_fn: Any
    new_fn: Any

    def patch(self) -> None:
        raise NotImplementedError

    def revert(self) -> None:
        raise NotImplementedError


class _PatchedFnSetItem(_PatchedFn):
    """Of a module's globals."""

    def patch(self) -> None:
        self.frame_dict[self.fn_name] = self.new_fn

    def revert(self) -> None:
        self.frame_dict[self.fn_name] = self.orig_fn


class _PatchedFnDel(_PatchedFn):
    """Of a module's globals, where the name was that of a builtin."""

    def patch(self) -> None:
        self.frame_dict[self.fn_name] = self.new_fn

    def revert(self) -> None:
        del self.frame_dict[self.fn_name]


class _PatchedFnSetAttr(_PatchedFn):
    """Of a class."""

    def patch(self) -> None:
        setattr(self.frame_dict, self.fn_name, self.new_fn)

    def revert(self) -> None:
        setattr(self.frame_dict, self.fn_name, self.orig_fn)


class _Patcher:
    """Gives names other meanings until the end of its `with`."""

    def __init__(self) -> None:
        self.patches_made: list[_PatchedFn] = []
        self.visited: set[int] = set()

    def patch(
        self, frame_dict: dict[str, Any], name: str, new_fn: Callable[..., Any], deduplicate: bool = True
    ) -> None:
        """Let `name` in these globals mean `new_fn`."""
        new_fn.__fx_already_patched = deduplicate  # type: ignore[attr-defined]
        if name not in frame_dict and hasattr(builtins, name):
            made: _PatchedFn = _PatchedFnDel(frame_dict, name, None, new_fn)
        elif getattr(frame_dict[name], "__fx_already_patched", False):
            return
        else:
            made = _PatchedFnSetItem(frame_dict, name, frame_dict[name], new_fn)
        self.patches_made.append(made)
        made.patch()

    def patch_method(
        self, cls: type, name: str, new_fn: Callable[..., Any], deduplicate: bool = True
    ) -> None:
        """Let the method `name` of a class be `new_fn`."""
        new_fn.__fx_already_patched = deduplicate  # type: ignore[attr-defined]
        original = getattr(cls, name)
        if getattr(original, "__fx_already_patched", False):
            return
        made = _PatchedFnSetAttr(cls, name, original, new_fn)
        self.patches_made.append(made)
        made.patch()

    def visit_once(self, thing: Any) -> bool:
        """Whether this object comes here for the first time."""
        is_new = id(thing) not in self.visited
        self.visited.add(id(thing))
        return is_new

    def revert_all_patches(self) -> list[_PatchedFn]:
        """Give all names their old meanings, for a while."""
        for each in reversed(self.patches_made):
            each.revert()
        return self.patches_made

    def reapply_all_patches(self) -> list[_PatchedFn]:
        """Undo `revert_all_patches`."""
        for each in self.patches_made:
            each.patch()
        return self.patches_made

    def __enter__(self) -> _Patcher:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.revert_all_patches()
        self.patches_made.clear()
        self.visited.clear()


CURRENT_PATCHER: _Patcher | None = None


@contextlib.contextmanager
def _new_patcher() -> Iterator[_Patcher]:
    global CURRENT_PATCHER
    outer = CURRENT_PATCHER
    try:
        CURRENT_PATCHER = _Patcher()
        with CURRENT_PATCHER as patcher:
            yield patcher
    finally:
        CURRENT_PATCHER = outer


@contextlib.contextmanager
def _maybe_revert_all_patches() -> Iterator[None]:
    """Inside, nothing that tracing replaced is replaced."""
    patcher = CURRENT_PATCHER
    try:
        if patcher is not None:
            patcher.revert_all_patches()
        yield
    finally:
        if patcher is not None:
            patcher.reapply_all_patches()


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Let the functions that `wrap` was called for become nodes."""
    for (_, name), frame_dict in _wrapped_fns_to_patch.copy().items():
        if name not in frame_dict and hasattr(builtins, name):
            original = getattr(builtins, name)
        else:
            original = frame_dict[name]
        patcher.patch(frame_dict, name, _create_wrapped_func(original))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Let those globals that are functions to wrap become nodes."""
    if not patcher.visit_once(frame_dict):
        return
    for name, value in list(frame_dict.items()):
        if not name.startswith("_") and callable(value) and id(value) in function_ids:
            patcher.patch(frame_dict, name, _create_wrapped_func(value))


@compatibility(is_backward_compatible=True)
def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Let calls of a function become nodes: tracing does not go into it. Returns what it is given.

    Call it at the top of a module, with a function of this module or the name of a function, or use it as decorator.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    if callable(fn_or_name):
        if isinstance(fn_or_name, str):
            raise AssertionError("fn_or_name should not be a string here")
        name = fn_or_name.__name__
    else:
        name = fn_or_name
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[(id(frame.f_globals), name)] = frame.f_globals
    return fn_or_name


@compatibility(is_backward_compatible=True)
def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """The module or function as a GraphModule: it is called once with proxies, which write down what happens.

    Control flow must not depend on the inputs, except on those in `concrete_args`.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


_wrapped_fns_to_patch[(id(globals()), "_assert_is_none")] = globals()
