"""Programs as ONNX models: `torch.onnx.export`. It needs the package onnx (`pip install 'weft[onnx]'`).

What `torch.export` can trace is written with ONNX's operators, one translation for each function (`_translations`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from .. import __version__, no_grad
from ..compat.missing import module_getattr
from ..export import Dim, ExportedProgram
from ..export import export as _capture
from ..nn import Module
from . import errors, ops
from ._exportable_module import ExportableModule
from ._observer import InputObserver
from ._program import DEFAULT_OPSET, ONNXProgram, translated
from ._registry import TensorProtoDataType, register_custom_op_symbolic, unregister_custom_op_symbolic
from .errors import OnnxExporterError

__all__ = [
    *(
        "ExportableModule",
        "InputObserver",
        "ONNXProgram",
        "OnnxExporterError",
        "TensorProtoDataType",
        "errors",
        "export",
    ),
    *("is_in_onnx_export", "ops"),
    *("register_custom_op_symbolic", "unregister_custom_op_symbolic"),
]

producer_name = "pytorch"
producer_version = __version__.partition("+")[0]


def is_in_onnx_export() -> bool:
    """Whether a model is being exported right now."""
    return _exporting


_exporting = False


def export(
    model: Module | ExportedProgram,
    args: tuple[Any, ...] = (),
    f: str | os.PathLike | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None,
    custom_translation_table: dict[Callable, Callable] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: Any = None,
    operator_export_type: Any = None,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[Module]] = False,
    autograd_inlining: bool = True,
) -> ONNXProgram | None:
    """Export a model to ONNX, and write it to the file `f`, if one is given.

    Dimensions are constants, but for those in `dynamic_shapes` (as for `torch.export.export`) or `dynamic_axes`.
    `verify` compares the outputs with those of onnxruntime. Options of PyTorch's exporter for TorchScript
    (`do_constant_folding`, ...) and its reports have no effect.
    Raises: OnnxExporterError for what cannot be written in ONNX, naming the function and the node.
    """
    global _exporting
    args = args if isinstance(args, tuple) else (args,)
    if args and isinstance(args[-1], dict) and not kwargs and not dynamo:
        args, kwargs = args[:-1], args[-1]  # as the exporter for TorchScript takes keyword arguments
    outer, _exporting = _exporting, True
    try:
        program = model if isinstance(model, ExportedProgram) else _program(
            model, args, kwargs or {}, dynamic_shapes, dynamic_axes, input_names
        )  # fmt: skip
    finally:
        _exporting = outer
    proto = translated(
        program,
        opset=opset_version or DEFAULT_OPSET,
        input_names=input_names,
        output_names=output_names,
        custom=custom_translation_table,
    )
    made = ONNXProgram(proto, program)
    if optimize:
        made.optimize()
    if verify:
        _verify(made, program)
    if f is not None:
        made.save(
            f,
            include_initializers=export_params,
            keep_initializers_as_inputs=keep_initializers_as_inputs,
            external_data=external_data and dynamo,
        )
    return made


def _program(
    model: Module,
    args: tuple,
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    dynamic_axes: Any,
    input_names: Sequence[str] | None,
) -> ExportedProgram:
    if not isinstance(model, Module):
        raise TypeError(f"torch.onnx.export takes a module or an ExportedProgram, not {type(model).__name__}")
    if dynamic_shapes is None and dynamic_axes:
        dynamic_shapes = _shapes_of_axes(model, args, kwargs, dynamic_axes, input_names)
    trained = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with no_grad():
            return _capture(model, args, kwargs, dynamic_shapes=dynamic_shapes)
    finally:
        for module in trained:
            module.training = True


def _shapes_of_axes(
    model: Module, args: tuple, kwargs: dict[str, Any], axes: Any, names: Sequence[str] | None
) -> Any:
    """`dynamic_axes`, which go by the names of ONNX inputs, as `dynamic_shapes`, which go by arguments."""
    import inspect

    own = list(inspect.signature(model.forward).bind(*args, **kwargs).arguments)
    by_input = dict(zip(names or own, own))
    shapes: dict[str, Any] = {name: None for name in own}
    dims: dict[str, Dim] = {}
    for name, chosen in axes.items():
        if name not in by_input:
            continue  # an output, whose sizes follow
        items = chosen.items() if isinstance(chosen, Mapping) else [(dim, None) for dim in chosen]
        shapes[by_input[name]] = {
            dim: dims.setdefault(label, Dim(label)) if label and label.isidentifier() else Dim.DYNAMIC
            for dim, label in items
        }
    return shapes


def _verify(made: ONNXProgram, program: ExportedProgram) -> None:
    from ..core.pytree import tree_leaves
    from ..testing import assert_close

    args, kwargs = program.example_inputs
    wanted = [each for each in tree_leaves(program.module()(*args, **kwargs)) if each is not None]
    for ours, theirs in zip(wanted, made(*args, **kwargs), strict=True):
        assert_close(theirs, ours, rtol=1e-4, atol=1e-5)


__getattr__ = module_getattr(__name__)
