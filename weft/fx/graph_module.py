"""A module whose forward is generated from a graph.

>>> import weft as torch
>>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
>>> for node in traced.graph.nodes:
...     if node.target is torch.relu:
...         node.target = torch.sigmoid
>>> _ = traced.recompile()
>>> traced(torch.zeros(2))
tensor([1.5000, 1.5000])
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import os
import re
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import weft

from ..core.tensor import Tensor
from ..core.warn import user_level
from ..library.qualified_name import is_from_torch
from ..nn import Module, Parameter
from ._compatibility import compatibility
from ._namespace import _custom_builtins
from .graph import Graph, PythonCode, _BoxedCodeGen, _PyTreeCodeGen

__all__ = ["GraphModule", "reduce_graph_module", "reduce_package_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
FX_GRAPH_MODULE_FILE_PREFIX = "fx_generated_"


# ---- Source as functions ---------------------------------------------------------------------------------------------


class _EvalCacheLoader:
    """Keeps generated source, so that tracebacks and `inspect` can show it."""

    def __init__(self) -> None:
        self.eval_cache: dict[str, str] = {}
        self.next_id = itertools.count()

    def cache(self, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> str:
        """Keep `src`; returns the file name to compile it under."""
        key = self._get_key()
        if co_fields:
            # linecache takes a name that ends with ">" for one without source, so "<lambda>" loses its brackets.
            name = co_fields["co_name"].strip("<>")
            key += f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in {name}"
        self.eval_cache[key] = src
        # linecache asks the loader of the module in which a function was defined for its source.
        own = globals.copy()
        own["__file__"], own["__name__"], own["__loader__"] = key, key, self
        linecache.lazycache(key, own)
        return key

    def get_source(self, module_name: str) -> str | None:
        return self.eval_cache.get(module_name)

    def _get_key(self) -> str:
        return f"<eval_with_key>.{next(self.next_id)}"


_loader = _EvalCacheLoader()


def _exec_with_source(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> None:
    # Without dont_inherit, annotations would stay text, as in this file.
    exec(compile(src, _loader.cache(src, globals, co_fields), "exec", dont_inherit=True), globals)


def _method_from_src(
    method_name: str, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Callable:
    """The function `method_name` that `src` defines."""
    own = globals.copy()
    _exec_with_source(src, own, co_fields)
    function = own[method_name]
    del own[method_name]
    return function


def _forward_from_src(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> Callable:
    return _method_from_src("forward", src, globals, co_fields)


def _bound_torch() -> str:
    """The statement that makes `torch` mean weft in a file of its own."""
    return "import torch" if sys.modules.get("torch") is weft else "import weft as torch"


def _format_import_statement(name: str, obj: Any, importer: Any) -> str:
    """The statement that makes `name` mean `obj`."""
    if name in _custom_builtins:
        return _custom_builtins[name].import_str
    if is_from_torch(obj) and "." not in name:
        return "import torch"
    module_name, attribute = importer.get_name(obj)
    return f"from {module_name} import {attribute} as {name}"


def _format_import_block(globals: dict[str, Any], importer: Any) -> str:
    return "\n".join(sorted({_format_import_statement(name, obj, importer) for name, obj in globals.items()}))


class _ModuleImporter:
    """Finds out from which module an object can be imported."""

    def get_name(self, obj: Any) -> tuple[str, str]:
        name = (
            getattr(obj, "__qualname__", None)
            or getattr(obj, "_name", None)
            or getattr(obj, "__name__", None)
        )
        module = getattr(obj, "__module__", None)
        if name is None or module is None:
            raise ValueError(f"cannot write a statement that imports {obj!r}: it has no name or no module")
        if name == "Ellipsis":
            module = "builtins"
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not obj or "." in name:
            raise ValueError(
                f"cannot write a statement that imports {obj!r}: {module}.{name} is something else"
            )
        return module, name


sys_importer = _ModuleImporter()


# ---- Pickles -----------------------------------------------------------------------------------------------------------


@compatibility(is_backward_compatible=True)
def reduce_graph_module(body: dict[Any, Any], import_block: str) -> Module:
    """A GraphModule from a pickle: `forward` is compiled, and traced again for the graph."""
    source = body.get("_code") or body["code"]
    head = _importing_weft(import_block)
    forward = _forward_from_src(head + source, {})
    return _deserialize_graph_module(forward, body)


def _importing_weft(import_block: str) -> str:
    """The import statements with weft for torch: a pickle may be read where `torch` is not bound to weft."""
    if sys.modules.get("torch") is weft:
        return import_block
    return re.sub(
        r"^(import|from) torch\b(.*)$",
        lambda match: f"{match[1]} weft{match[2]}" if match[0] != "import torch" else "import weft as torch",
        import_block,
        flags=re.MULTILINE,
    )


@compatibility(is_backward_compatible=True)
def reduce_package_graph_module(importer: Any, body: dict[Any, Any], generated_module_name: str) -> Module:
    """A GraphModule from a package of `torch.package`."""
    forward = importer.import_module(generated_module_name).forward
    return _deserialize_graph_module(forward, body)


class _CodeOnlyModule(Module):
    """Holds what a pickled GraphModule held, for tracing its forward."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _deserialize_graph_module(
    forward: Callable, body: dict[Any, Any], graph_module_cls: type | None = None
) -> Module:
    """Trace `forward` with the attributes in `body`, and make a GraphModule of it."""
    from ._symbolic_trace import Tracer

    tracer_cls = body.get("_tracer_cls") or Tracer
    graphmodule_cls = graph_module_cls or GraphModule
    # Older code used no leaf modules: every submodule of a GraphModule stays one call.
    body = {key: value for key, value in body.items() if key not in ("_tracer_cls",)}
    root = _CodeOnlyModule(body)
    type_of_root = types.new_class(body.get("_graphmodule_cls_name", "GraphModule"), (_CodeOnlyModule,))
    type_of_root.forward = forward  # type: ignore[attr-defined]
    root.__class__ = type_of_root

    class KeepModules(tracer_cls):  # type: ignore[misc, valid-type]
        def is_leaf_module(self, _: Module, __: str) -> bool:
            return True

    extras = body.get("_tracer_extras") or {}
    graph = KeepModules().trace(root, **extras)
    graph._tracer_cls = tracer_cls
    from ._lazy_graph_module import _make_graph_module

    module = _make_graph_module(root, graph, graph_module_cls=graphmodule_cls)
    # What the graph does not refer to came along in the pickle as well.
    for name, value in body.items():
        if name not in module.__dict__:
            module.__dict__[name] = value
    for place in ("_parameters", "_buffers", "_modules"):
        for name, value in body.get(place, {}).items():
            module.__dict__[place].setdefault(name, value)
    module.training = body.get("training", True)
    return module


# ---- Attributes by their paths -------------------------------------------------------------------------------------------


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Give `to_module` the attribute at the path `target` of `from_module`, with the modules on the way to it."""
    *prefix, field = target.split(".")
    for item in prefix:
        source, goal = getattr(from_module, item, None), getattr(to_module, item, None)
        if source is goal:  # a module that was copied as a whole
            return
        if goal is None:
            goal = Module()
            setattr(to_module, item, goal)
        from_module, to_module = source, goal  # type: ignore[assignment]
    original = getattr(from_module, field)
    if isinstance(original, Tensor) and not isinstance(original, Parameter):
        to_module.register_buffer(field, original)
    else:
        setattr(to_module, field, original)


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Make `from_obj` the attribute at the path `target`."""
    *prefix, field = target.split(".")
    for item in prefix:
        child = getattr(to_module, item, None)
        if child is None:
            child = Module()
            setattr(to_module, item, child)
        to_module = child
    if isinstance(from_obj, Tensor) and not isinstance(from_obj, Parameter):
        to_module.register_buffer(field, from_obj)
    else:
        setattr(to_module, field, from_obj)


def _get_attr_via_attr_list(model: Module, attr_list: list[str]) -> Any:
    found: Any = model
    for name in attr_list:
        found = getattr(found, name)
    return found


def _get_attr(model: Module, attr_name: str) -> Any:
    return _get_attr_via_attr_list(model, attr_name.split("."))


def _del_attr(model: Module, attr_name: str) -> None:
    *prefix, field = attr_name.split(".")
    delattr(_get_attr_via_attr_list(model, prefix), field)


def _has_attr(model: Module, attr_name: str) -> bool:
    *prefix, field = attr_name.split(".")
    found: Any = model
    for name in prefix:
        found = getattr(found, name, None)
        if found is None:
            return False
    return hasattr(found, field)


# ---- The module ---------------------------------------------------------------------------------------------------------


class _WrappedCall:
    """`__call__` of a GraphModule: says where in the generated code an error happened."""

    def __init__(self, cls: type, cls_call: Callable | None) -> None:
        self.cls = cls
        self.cls_call = cls_call

    @staticmethod
    def _generate_error_message(frame_summary: traceback.FrameSummary) -> str:
        """The generated lines around the one that failed."""
        number = frame_summary.lineno or 1
        source = linecache.getlines(frame_summary.filename)
        before, line, after = (
            source[max(number - 3, 0) : number - 1],
            source[number - 1 : number],
            source[number : number + 2],
        )
        text = "".join([*before, *line])
        mark = "~" * max(map(len, before + line), default=0)
        return (
            f"Call using an FX-traced Module, line {number} of the traced Module's generated forward function:\n"
            f"{text}\n{mark} <--- HERE\n{''.join(after)}\n"
        )

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)  # type: ignore[misc, arg-type]
        except Exception as error:
            assert error.__traceback__
            frames = traceback.extract_tb(error.__traceback__)
            generated = [each for each in frames if each.filename.startswith("<eval_with_key>")]
            # An error inside of a function that the graph calls shows itself where it is.
            if generated and not getattr(error, "_fx_explained", False):
                text = self._generate_error_message(generated[-1])
                with contextlib.suppress(Exception):
                    error._fx_explained = True  # type: ignore[attr-defined]
                error.add_note(text)
            raise


@compatibility(is_backward_compatible=True)
class GraphModule(Module):
    """A module made of a Graph: `code` and `forward` are generated from it.

    `root` is the module that the graph was traced from, or a dict of paths and attributes; what the nodes refer to is
    taken from it. Assign `graph` anew, or call `recompile` after changes of it.
    """

    def __new__(cls: type[GraphModule], *args: Any, **kwargs: Any) -> GraphModule:
        # Each instance has a class of its own, because `forward` is a method.
        for each in cls.__mro__:
            qualname = each.__qualname__.split(".")[-1]
            if qualname != "GraphModuleImpl":
                cls = each
                break

        class GraphModuleImpl(cls):  # type: ignore[misc, valid-type]
            pass

        return super().__new__(GraphModuleImpl)

    @compatibility(is_backward_compatible=True)
    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        if isinstance(root, Module):
            self._take_from_module(root, graph)
        elif isinstance(root, dict):
            self._take_from_dict(root, graph)
        else:
            raise RuntimeError(f"Unsupported type {type(root)} passed for root!")
        self.graph = graph
        # A tracer is kept for pickles, unless it is of a class that no one can import.
        self._tracer_cls = None
        tracer_cls = self.graph._tracer_cls
        if tracer_cls and "<locals>" not in tracer_cls.__qualname__:
            self._tracer_cls = tracer_cls
        self._tracer_extras = self.graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        self.shape_env = None  # of symbolic sizes, which weft does not have
        self._replace_hooks: list[Callable] = []
        self._create_node_hooks: list[Callable] = []
        self._erase_node_hooks: list[Callable] = []
        self._deepcopy_hooks: list[Callable] = []

    __jit_unused_properties__: list[str] = ["graph", "_boxed_call"]

    def _take_from_module(self, root: Module, graph: Graph) -> None:
        if hasattr(root, "training"):
            self.training = root.training
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                _copy_attr(root, self, str(node.target))
        if isinstance(root, _CodeOnlyModule):
            return
        for name in getattr(root, "meta", {}).get(_USER_PRESERVED_ATTRIBUTES_KEY, {}):
            setattr(self, name, root.meta[_USER_PRESERVED_ATTRIBUTES_KEY][name])  # type: ignore[index, union-attr]

    def _take_from_dict(self, root: dict[str, Any], graph: Graph) -> None:
        targets: list[str] = []
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                if node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
                targets.append(str(node.target))
        # Outer modules come before what lies in them.
        for target in sorted(targets, key=lambda path: path.count(".")):
            _assign_attr(root[target], self, target)

    # ---- Code -----------------------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """The graph. Assigning one generates the code anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of `forward`."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    @property
    def _boxed_call(self) -> bool:
        return isinstance(self._graph._codegen, _BoxedCodeGen)

    @compatibility(is_backward_compatible=True)
    def recompile(self) -> PythonCode:
        """Generate `code` and `forward` from the graph, after changes of it."""
        if isinstance(self._graph._codegen, _PyTreeCodeGen):
            self._in_spec = self._graph._codegen.pytree_info.in_spec
            self._out_spec = self._graph._codegen.pytree_info.out_spec
        python_code = self._graph.python_code(root_module="self")
        self._code = python_code.src
        self._lineno_map = python_code._lineno_map
        self._prologue_start = python_code._prologue_start
        cls = type(self)
        co_fields = self._graph._co_fields if hasattr(self._graph, "_co_fields") else {}
        cls.forward = _method_from_src(  # type: ignore[method-assign]
            self._graph._codegen._func_name, self._code, python_code.globals, co_fields
        )
        self._wrap_call(cls)
        return python_code

    def _wrap_call(self, cls: type) -> None:
        """Let `__call__` of this instance's class explain errors, on top of what there is."""
        if "_wrapped_call" not in vars(cls):
            own_call = vars(cls).get("__call__")
            cls._wrapped_call = _WrappedCall(cls, own_call)  # type: ignore[attr-defined]

        def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped_call(self, *args, **kwargs)

        cls.__call__ = call_wrapped  # type: ignore[method-assign, operator]

    def _recompile_submodules(self) -> list[PythonCode]:
        return [each.recompile() for each in self.children() if isinstance(each, GraphModule)]

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__repr__(), self._code, hint])

    @compatibility(is_backward_compatible=False)
    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """The code of this module and of the GraphModules in it, as classes; it is printed unless `print_output` is False."""
        return _print_readable(
            self,
            self._get_name(),
            print_output,
            include_stride,
            include_device,
            colored,
            expanded_def,
            additional_meta,
        )

    # ---- Submodules -----------------------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=False)
    def add_submodule(self, target: str, m: Module) -> bool:
        """Put `m` at the path `target`; modules on the way are made. False if something else stands there."""
        *prefix, field = target.split(".")
        module: Module = self
        for item in prefix:
            child = getattr(module, item, None)
            if child is None:
                child = Module()
                setattr(module, item, child)
            module = child
            if not isinstance(module, Module):
                return False
        module.add_module(field, m)
        return True

    @compatibility(is_backward_compatible=False)
    def delete_submodule(self, target: str) -> bool:
        """Remove the submodule at the path `target`. False if there is none."""
        *prefix, field = target.split(".")
        module: Module = self
        for item in prefix:
            if not isinstance(child := getattr(module, item, None), Module):
                return False
            module = child
        if not isinstance(getattr(module, field, None), Module):
            return False
        delattr(module, field)
        return True

    @compatibility(is_backward_compatible=False)
    def delete_all_unused_submodules(self) -> None:
        """Remove the submodules that no node refers to."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            path = str(node.target)
            parts = path.split(".")
            used.update(".".join(parts[:count]) for count in range(1, len(parts) + 1))
            if node.op == "call_module":
                with contextlib.suppress(AttributeError):
                    inner = self.get_submodule(path)
                    used.update(f"{path}.{name}" for name, _ in inner.named_modules() if name)
        for name, _ in list(self.named_modules()):
            if name and name not in used:
                self.delete_submodule(name)

    # ---- Copies and files -----------------------------------------------------------------------------------------------

    def __reduce_package__(self, exporter: Any) -> Any:
        state = self._state_for_pickle()
        name = f"fx-generated._{exporter.get_unique_id()}"
        python_code = self.recompile()
        block = _format_import_block(python_code.globals, exporter.importer)
        exporter.save_source_string(name, block + self.code)
        return reduce_package_graph_module, (state, name)

    def __reduce__(self) -> Any:
        """The source and the attributes; the graph is traced again when the pickle is read."""
        state = self._state_for_pickle()
        python_code = self.recompile()
        return reduce_graph_module, (state, _format_import_block(python_code.globals, sys_importer))

    def _state_for_pickle(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_graphmodule_cls_name"] = self.__class__.__name__
        state.pop("_graph", None)
        return state

    def _deepcopy_init(self) -> Any:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        # Hooks and the graph are put in their places below.
        apart = ("_graph", "_replace_hooks", "_create_node_hooks", "_erase_node_hooks")
        body = {key: value for key, value in self.__dict__.items() if key not in apart}
        copied = copy.deepcopy(body, memo)
        holder = _CodeOnlyModule(copied)
        self._deepcopy_init()(new, holder, copy.deepcopy(self.graph, memo))
        for place in ("_parameters", "_buffers", "_modules"):
            for name, value in copied[place].items():
                new.__dict__[place].setdefault(name, value)
        for name, value in copied.items():
            if (
                name not in new.__dict__
                or name in ("meta", "training", "_tracer_extras")
                or name.endswith("_hooks")
            ):
                new.__dict__[name] = value
        for name in ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks"):
            new.__dict__[name] = list(self.__dict__.get(name, ()))
        for hook in self._deepcopy_hooks:
            hook(new)
        return new

    def __copy__(self) -> GraphModule:
        from ._lazy_graph_module import _make_graph_module

        new: Any = _make_graph_module(self, self.graph)
        new.meta = getattr(self, "meta", {})
        return new

    @compatibility(is_backward_compatible=False)
    def to_folder(self, folder: str | os.PathLike, module_name: str = "FxModule") -> None:
        """Write a package with the class `module_name`, whose instances are copies of this module.

        The weights go to `state_dict.pt`. Submodules whose repr does not build them go to files of their own.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        weft.save(self.state_dict(), folder / "state_dict.pt")
        lines = self._lines_of_members(folder)
        python_code = self.recompile()
        torch_import = _bound_torch()
        imports = [
            _importing_weft(_format_import_statement(name, obj, sys_importer))
            for name, obj in python_code.globals.items()
        ]
        body = "\n".join(f"    {line}" if line else "" for line in self.code.split("\n"))
        source = "\n".join([
            "", torch_import, *imports, "",
            "from torch.nn import *" if torch_import == "import torch" else "from weft.nn import *",
            f"class {module_name}(torch.nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            *(f"        {line}" for line in lines),
            f"        self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))",
            "",
            body,
        ])  # fmt: skip
        (folder / "module.py").write_text(source + "\n", encoding="utf-8")
        (folder / "__init__.py").write_text("from .module import *", encoding="utf-8")

    def _lines_of_members(self, folder: Path) -> list[str]:
        """The statements that make the submodules, parameters and buffers."""
        lines: list[str] = []
        safe_to_repr = [
            getattr(weft.nn, name)
            for name in ("Linear", "Conv1d", "Conv2d", "Conv3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d")
        ]
        pickled: list[str] = []
        for name, module in self.named_children():
            if type(module) in safe_to_repr:
                value = repr(module)
            else:
                file = folder / f"{name}.pt"
                weft.save(module, file)
                pickled.append(name)
                value = f"torch.load(r'{file}', weights_only=False)"
            comment = "" if type(module) in safe_to_repr else f"  # {' '.join(repr(module).split())}"
            lines.append(f"setattr(self, '{name}', {value}){comment}")
        for name, buffer in self._buffers.items():
            if buffer is not None:
                lines.append(
                    f"self.register_buffer('{name}', torch.empty({list(buffer.shape)}, dtype={buffer.dtype}))"
                )
        for name, parameter in self._parameters.items():
            if parameter is not None:
                lines.append(
                    f"setattr(self, '{name}', torch.nn.Parameter(torch.empty({list(parameter.shape)}, "
                    f"dtype={parameter.dtype})))"
                )
        if pickled:
            warnings.warn(
                f"Was not able to save the following children modules as reprs -saved as pickled files instead: {pickled}",
                stacklevel=user_level(),
            )
        return lines

    def _replicate_for_data_parallel(self) -> GraphModule:
        new = copy.copy(self)
        new.__dict__["_is_replica"] = True
        return new

    # ---- Hooks ----------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable) -> Iterator[None]:
        """Inside, `f(old, new, user)` hears of each argument that is replaced; `new` is a name."""
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_replace_node_hook(self, f: Callable) -> None:
        self._hook(self._replace_hooks, f)

    def _unregister_replace_node_hook(self, f: Callable) -> None:
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable) -> None:
        self._hook(self._create_node_hooks, f)

    def _unregister_create_node_hook(self, f: Callable) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable) -> None:
        self._hook(self._erase_node_hooks, f)

    def _unregister_erase_node_hook(self, f: Callable) -> None:
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(self, f: Callable) -> None:
        self._hook(self._deepcopy_hooks, f)

    def _unregister_deepcopy_hook(self, f: Callable) -> None:
        self._deepcopy_hooks.remove(f)

    @staticmethod
    def _hook(hooks: list[Callable], function: Callable) -> None:
        if not callable(function):
            raise AssertionError("hook must be a callable.")
        hooks.append(function)


def _print_readable(
    module: Any,
    module_name: str,
    print_output: bool = True,
    include_stride: bool = False,
    include_device: bool = False,
    colored: bool = False,
    expanded_def: bool = False,
    additional_meta: list[str] | None = None,
) -> str:
    graph = module.graph
    if graph is None or not isinstance(graph, Graph):
        raise AssertionError("print_readable must be used on a module with a graph")
    source = graph.python_code(
        root_module="self",
        verbose=True,
        include_stride=include_stride,
        include_device=include_device,
        colored=colored,
        expanded_def=expanded_def,
        additional_meta=additional_meta,
    ).src.lstrip("\n")
    text = f"class {module_name}(torch.nn.Module):\n" + _indented(source)
    inner = [
        _print_readable(
            child,
            name,
            print_output=False,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            additional_meta=additional_meta,
        )
        for name, child in module.named_children()
        if hasattr(child, "graph") and isinstance(child.graph, Graph)
    ]
    text = "\n".join([text, *(_indented(each) for each in inner)])
    if print_output:
        print(text)
    return text


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line.strip() else "" for line in text.split("\n"))
