"""`torch.export.save` and `load`: an exported program as an archive of a graph in JSON and of tensors."""

from __future__ import annotations

import dataclasses
import io
import json
import os
from typing import IO, Any

from ..core.pytree import treespec_dumps, treespec_loads
from ..nn import Parameter
from ..serialization import load as load_tensors
from ..serialization import save as save_tensors
from . import _pytorch_json
from . import graph_signature as signatures
from ._graph_json import decoded, decoded_graph, encoded, encoded_graph
from ._guards import Size, SizeName
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec
from .pt2_archive import PT2ArchiveReader, PT2ArchiveWriter
from .pt2_archive.constants import (
    CONSTANTS_DIR,
    EXTRA_DIR,
    MODELS_DIR,
    MODELS_FILENAME_FORMAT,
    SAMPLE_INPUTS_FILENAME_FORMAT,
    WEIGHTS_DIR,
)

_MODEL = MODELS_FILENAME_FORMAT.format("model")
_WEIGHTS = "data/weights/model.pt"
_CONSTANTS = "data/constants/model.pt"
_SAMPLES = SAMPLE_INPUTS_FILENAME_FORMAT.format("model")
_FORMAT = "weft 1"


def save(
    ep: ExportedProgram,
    f: str | os.PathLike[str] | IO[bytes],
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Write a program to a file (`.pt2` by convention) or buffer, which `load` reads. `extra_files` are texts by name.

    Raises: TypeError if `ep` is no ExportedProgram; NotImplementedError for a graph that calls functions of the user's own.

    >>> import io
    >>> import weft as torch
    >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    >>> buffer = io.BytesIO()
    >>> torch.export.save(program, buffer)
    >>> _ = buffer.seek(0)
    >>> torch.export.load(buffer).module()(torch.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    model = json.dumps(_encoded(ep))
    with PT2ArchiveWriter(f) as archive:
        archive.write_string(_MODEL, model)
        archive.write_bytes(_WEIGHTS, _tensors(dict(ep.state_dict)))
        archive.write_bytes(_CONSTANTS, _tensors(dict(ep.constants)))
        if ep.example_inputs is not None:
            archive.write_bytes(_SAMPLES, _tensors(ep.example_inputs))
        for name, text in (extra_files or {}).items():
            archive.write_bytes(EXTRA_DIR + name, text if isinstance(text, bytes) else str(text).encode())


def load(
    f: str | os.PathLike[str] | IO[bytes],
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """Read a program that `save` wrote. Nothing of the file is executed, so that files of others are safe to read.

    `extra_files` is filled with the texts of its names. Containers of the inputs and outputs that are classes of the user's must
    have been registered before, with the same `serialized_type_name`.
    Archives that PyTorch wrote are read, too.
    Raises: RuntimeError for a file that is no archive, or that calls something else than functions of torch; NotImplementedError
    for what weft does not read of PyTorch's archives: dynamic sizes, control flow, operators that weft lacks.
    """
    with PT2ArchiveReader(f) as archive:
        names = archive.get_file_names()
        models = [each for each in names if each.startswith(MODELS_DIR)]
        if len(models) != 1:
            raise RuntimeError(
                f"torch.export.load: expected an archive of one exported program, and got {models}"
            )
        text = json.loads(archive.read_string(models[0]))
        try:
            program = _program(archive, text, _read(archive, _SAMPLES) if _SAMPLES in names else None)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            raise RuntimeError(
                f"torch.export.load: the archive is damaged: {type(error).__name__}: {error}"
            ) from error
        for name in extra_files or ():
            if EXTRA_DIR + name in names:
                extra_files[name] = archive.read_string(EXTRA_DIR + name)  # type: ignore[index]
    return program


def _program(archive: PT2ArchiveReader, text: dict[str, Any], samples: Any) -> ExportedProgram:
    if text.get("format") == _FORMAT:
        return _decoded(text, _read(archive, _WEIGHTS), _read(archive, _CONSTANTS), samples)
    state, constants = (_pytorch_json.tensors(archive, each) for each in (WEIGHTS_DIR, CONSTANTS_DIR))
    return _decoded(_pytorch_json.program(text), state, constants, samples)


def _tensors(value: Any) -> bytes:
    buffer = io.BytesIO()
    save_tensors(value, buffer)
    return buffer.getvalue()


def _read(archive: PT2ArchiveReader, name: str) -> Any:
    return load_tensors(io.BytesIO(archive.read_bytes(name)), weights_only=True)


# ---- The parts of a program ---------------------------------------------------------------------------------------------------


def _encoded(ep: ExportedProgram) -> dict[str, Any]:
    signature = ep.graph_signature
    return {
        "format": _FORMAT,
        "graph": encoded_graph(ep.graph),
        "inputs": [
            [each.kind.name, _argument(each.arg), each.target, each.persistent]
            for each in signature.input_specs
        ],
        "outputs": [[each.kind.name, _argument(each.arg), each.target] for each in signature.output_specs],
        "ranges": [[str(name), each.lower, each.upper] for name, each in ep.range_constraints.items()],
        "guards": ep._guards_code,
        "modules": [[each.fqn, _call(each.signature)] for each in ep.module_call_graph],
    }


def _decoded(text: dict[str, Any], state: dict, constants: dict, samples: Any) -> ExportedProgram:
    inputs = [
        InputSpec(InputKind[kind], _argument_of(arg), target, persistent)
        for kind, arg, target, persistent in text["inputs"]
    ]
    outputs = [
        OutputSpec(OutputKind[kind], _argument_of(arg), target) for kind, arg, target in text["outputs"]
    ]
    parameters = {each.target for each in inputs if each.kind == InputKind.PARAMETER}
    state = {
        name: Parameter(value, value.requires_grad)
        if name in parameters and not isinstance(value, Parameter)
        else value
        for name, value in state.items()
    }
    program = ExportedProgram(
        {},
        decoded_graph(text["graph"]),
        ExportGraphSignature(inputs, outputs),
        state,
        {SizeName(name): Size(low, high) for name, low, high in text["ranges"]},
        [ModuleCallEntry(name, _call_of(call)) for name, call in text["modules"]],
        samples,
        constants,
    )
    program._guards_code = list(text["guards"])
    return program


def _argument(argument: Any) -> list[Any]:
    return [
        type(argument).__name__,
        *(encoded(getattr(argument, each.name)) for each in dataclasses.fields(argument)),
    ]


_ARGUMENTS = ("TensorArgument", "SymIntArgument", "SymFloatArgument", "SymBoolArgument", "ConstantArgument")


def _argument_of(text: list[Any]) -> Any:
    name, *values = text
    if name not in _ARGUMENTS:
        raise RuntimeError(f"torch.export.load: the file has an argument of the unknown kind {name!r}")
    return getattr(signatures, name)(*(decoded(each, {}) for each in values))


def _call(signature: ModuleCallSignature | None) -> Any:
    if signature is None:
        return None
    return [
        [_argument(each) for each in signature.inputs],
        [_argument(each) for each in signature.outputs],
        treespec_dumps(signature.in_spec),
        treespec_dumps(signature.out_spec),
        signature.forward_arg_names,
    ]


def _call_of(text: Any) -> ModuleCallSignature | None:
    if text is None:
        return None
    inputs, outputs, in_spec, out_spec, names = text
    return ModuleCallSignature(
        [_argument_of(each) for each in inputs],
        [_argument_of(each) for each in outputs],
        treespec_loads(in_spec),
        treespec_loads(out_spec),
        names,
    )
