"""From an exported program to an ONNX model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.pytree import tree_leaves
from ..core.tensor import Tensor
from ..export import ExportedProgram
from ..export.graph_signature import ConstantArgument, InputKind
from ..fx.node import Node
from ..overrides import resolve_name
from ._builder import Builder, element_type, onnx_package
from ._translations import TRANSLATIONS
from .errors import OnnxExporterError, UnsupportedOperatorError

DEFAULT_OPSET = 20
# bytes; a protobuf message holds at most 2 GiB, so larger models keep their tensors in a file beside them.
LIMIT = 2**31 - 2**20
# bytes; smaller tensors stay in the model when tensors go into a file beside it. It is the default of the package onnx.
THRESHOLD = 1024


class ONNXProgram:
    """An exported model. `save` writes it; calling it runs it with onnxruntime."""

    def __init__(self, model: Any, exported_program: ExportedProgram | None):
        self._model = model
        self.exported_program = exported_program
        self._session: Any = None

    def __repr__(self) -> str:
        onnx = onnx_package()
        return f"ONNXProgram(\n{onnx.printer.to_text(self._model)}\n)"

    @property
    def model_proto(self) -> Any:
        """The model as protobuf of the package onnx."""
        return self._model

    def save(
        self,
        destination: str | os.PathLike,
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model to a file. With `external_data` its tensors go into a file beside it, named `destination.data`.

        An existing file is replaced only when the new one is complete.
        """
        onnx = onnx_package()
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        if keep_initializers_as_inputs:
            model.graph.input.extend(
                onnx.helper.make_tensor_value_info(each.name, each.data_type, each.dims)
                for each in model.graph.initializer
            )
        if not include_initializers:
            del model.graph.initializer[:]
        path = Path(destination)
        is_large = model.ByteSize() > LIMIT
        has_large = any(len(each.raw_data) >= THRESHOLD for each in model.graph.initializer)
        outside = is_large or (bool(external_data) and has_large)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            if outside:
                data = path.with_name(path.name + ".data")
                data.unlink(missing_ok=True)
                onnx.save_model(
                    model,
                    str(temporary),
                    save_as_external_data=True,
                    location=data.name,
                    size_threshold=THRESHOLD,
                )
            else:
                onnx.save_model(model, str(temporary))
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    def initialize_inference_session(self, initializer: Callable[..., Any] | None = None) -> None:
        """Load the model into onnxruntime.

        Raises: ImportError if onnxruntime is not installed.
        """
        make = initializer or _session
        self._session = make(self._model.SerializeToString())

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """The outputs, as a flat tuple of tensors, that onnxruntime computes."""
        from .. import from_numpy

        if self._session is None:
            self.initialize_inference_session()
        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        names = [each.name for each in self._session.get_inputs()]
        feed = {name: each.detach().cpu().numpy() for name, each in zip(names, tensors, strict=True)}
        return tuple(from_numpy(np.asarray(each)) for each in self._session.run(None, feed))

    def call_reference(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """The outputs that the reference implementation of the package onnx computes."""
        from onnx.reference import ReferenceEvaluator

        from .. import from_numpy

        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        names = [each.name for each in self._model.graph.input]
        feed = {name: each.detach().cpu().numpy() for name, each in zip(names, tensors, strict=True)}
        return tuple(from_numpy(np.asarray(each)) for each in ReferenceEvaluator(self._model).run(None, feed))

    def compute_values(
        self, value_names: Sequence[str], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Sequence[Tensor]:
        """The values of these names inside of the graph, computed by the reference implementation of the package onnx."""
        onnx = onnx_package()
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        del model.graph.output[:]
        model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in value_names)
        return ONNXProgram(model, self.exported_program).call_reference(*args, **(kwargs or {}))

    def optimize(self) -> None:
        """Leave out operators that do nothing, and those whose results nobody uses."""
        from ._optimize import optimized

        optimized(self._model.graph)
        self._session = None

    def release(self) -> None:
        """Let go of the session of onnxruntime."""
        self._session = None

    def apply_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Replace the values of parameters and buffers by name."""
        numpy_helper = onnx_package().numpy_helper
        for each in self._model.graph.initializer:
            if each.name in state_dict:
                value = state_dict[each.name].detach().cpu().numpy()
                each.CopyFrom(numpy_helper.from_array(value, each.name))
        self._session = None

    def rename_axes(self, rename_mapping: Mapping[str, str]) -> None:
        """Give dynamic dimensions other names."""
        for each in (*self._model.graph.input, *self._model.graph.output, *self._model.graph.value_info):
            for dim in each.type.tensor_type.shape.dim:
                if dim.dim_param in rename_mapping:
                    dim.dim_param = rename_mapping[dim.dim_param]


def _session(model: Any) -> Any:
    """A session of onnxruntime on the CPU."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            "running an ONNXProgram needs the package onnxruntime: pip install onnxruntime"
        ) from error
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def translated(
    program: ExportedProgram,
    *,
    opset: int,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    custom: Mapping[Any, Callable] | None = None,
) -> Any:
    """The ONNX model of a program, checked by the package onnx."""
    onnx = onnx_package()
    b = Builder(opset)
    inputs = _inputs(program, b, input_names)
    for node in program.graph.nodes:
        if node.op in ("call_function", "call_method"):
            b.current = node
            b.values[node] = _call(b, node, custom or {})
            _note_writes(b, node)
    outputs = _outputs(program, b, output_names)
    graph = onnx.helper.make_graph(b.nodes, "main_graph", inputs, outputs, list(b.initializers.values()))
    imports = [onnx.helper.make_opsetid(name, version) for name, version in {"": opset, **b.domains}.items()]
    model = onnx.helper.make_model(graph, opset_imports=imports, producer_name="weft", ir_version=10)
    if model.ByteSize() < LIMIT:
        onnx.checker.check_model(model)
    return model


def _inputs(program: ExportedProgram, b: Builder, names: Sequence[str] | None) -> list[Any]:
    """Name the placeholders: parameters and constants become initializers, the user's tensors inputs."""
    onnx = onnx_package()
    specs = {each.arg.name: each for each in program.graph_signature.input_specs}
    wanted = list(names or ())
    inputs = []
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        spec = specs[node.name]
        if isinstance(spec.arg, ConstantArgument):
            continue  # the same in every call, so that the graph holds its value
        if spec.kind == InputKind.USER_INPUT:
            name = b.values[node] = b.fresh(wanted.pop(0) if wanted else node.name)
            sizes = node.meta["check"].sizes
            inputs.append(
                onnx.helper.make_tensor_value_info(name, element_type(node.meta["val"].dtype), sizes)
            )
        else:
            target = str(spec.target)
            value = program.state_dict[target] if target in program.state_dict else program.constants[target]
            name = b.values[node] = b.fresh(target)
            b.initializers[name] = onnx.numpy_helper.from_array(value.detach().cpu().numpy(), name)
    return inputs


def _call(b: Builder, node: Node, custom: Mapping[Any, Callable]) -> Any:
    """The ONNX value of a call."""
    name = _short_name(node)
    translation = custom.get(node.target) or TRANSLATIONS.get(name)
    if translation is None and name.endswith("_") and not name.endswith("__"):
        translation = TRANSLATIONS.get(name[:-1])
    if translation is None:
        raise UnsupportedOperatorError(
            f"torch.onnx: {_long_name(node)} has no translation to ONNX (node {node.name}{_origin(node)}). "
            "custom_translation_table={function: translation} can supply one"
        )
    try:
        return translation(b, *node.args, **node.kwargs)
    except (NotImplementedError, TypeError, KeyError, AttributeError) as error:
        raise OnnxExporterError(
            f"torch.onnx: {_long_name(node)} cannot be translated to ONNX as it is called here "
            f"(node {node.name}{_origin(node)}): {error}"
        ) from error


def _note_writes(b: Builder, node: Node) -> None:
    """ONNX has no in-place operations: after one, its result stands for the tensor that was written to."""
    if "writes" not in node.meta:
        return
    name = _short_name(node)
    is_write = (
        (name.endswith("_") and not name.startswith("__"))
        or name in ("setitem", "__setitem__")
        or node.kwargs.get("inplace")
    )
    same, others = node.meta["writes"]
    if not is_write and not any(True in (each,) for each in node.args if isinstance(each, bool)):
        raise OnnxExporterError(
            f"torch.onnx: {_long_name(node)} writes to its arguments (node {node.name}{_origin(node)}), which ONNX cannot"
        )
    for each in same:
        b.values[each] = b.values[node]
    # Other views of the same memory have changed as well, in ways that are not followed.
    b.stale.update({each: node for each in others})


def _short_name(node: Node) -> str:
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    for prefix in ("linalg_", "special_", "fft_"):
        name = name.removeprefix(prefix)
    return name


def _long_name(node: Node) -> str:
    if isinstance(node.target, str):
        return f"Tensor.{node.target}"
    return resolve_name(node.target) or str(getattr(node.target, "__qualname__", "a function"))


def _origin(node: Node) -> str:
    trace = node.meta.get("stack_trace") or node.stack_trace
    return f", from {trace.strip().splitlines()[-2].strip()}" if trace and len(trace.splitlines()) > 1 else ""


def _outputs(program: ExportedProgram, b: Builder, names: Sequence[str] | None) -> list[Any]:
    onnx = onnx_package()
    wanted = list(names or ())
    results = next(node for node in reversed(program.graph.nodes) if node.op == "output").args[0]
    found = []
    for place, (value, spec) in enumerate(zip(results, program.graph_signature.output_specs, strict=True)):
        if isinstance(spec.arg, ConstantArgument):
            continue  # None or a number, which is the same in every call
        known = value.meta["val"]
        name = wanted.pop(0) if wanted else f"output_{place}" if value.op == "placeholder" else value.name
        name = b.fresh(name)
        b.nodes.append(onnx.helper.make_node("Identity", [b.tensor(value)], [name]))
        if isinstance(known, Tensor):
            dynamic = value.meta.get("dynamic") or ()
            sizes = [f"{name}_dim_{dim}" if dim in dynamic else size for dim, size in enumerate(known.shape)]
            found.append(onnx.helper.make_tensor_value_info(name, element_type(known.dtype), sizes))
        else:
            found.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, []))
    return found
