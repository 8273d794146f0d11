"""Archives of `torch.export.save` that PyTorch wrote: their graphs and tensors in the form of weft's own archives.

PyTorch's graphs consist of operators of `torch.ops`. `_graph_json.py` resolves their names, so a file can only name operators
that weft has or that the program has registered. Source: the dataclasses of torch/_export/serde/schema.py, version 8.
"""

from __future__ import annotations

import io
import json
from typing import Any

import weft

from ..core.tensor import Tensor
from ..nn import Parameter
from ..serialization import load as load_tensors
from .pt2_archive import PT2ArchiveReader

_VERSION = 8
_DTYPES = {
    **dict(enumerate("uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool bfloat16".split(), 1)),
    28: "uint16", 29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 34: "uint32", 35: "uint64",
}  # fmt: skip
_LAYOUTS = {1: "sparse_coo", 2: "sparse_csr", 3: "sparse_csc", 4: "sparse_bsr", 5: "sparse_bsc", 7: "strided"}
_MEMORY_FORMATS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}
_PLAIN = {"as_int", "as_ints", "as_string", "as_strings", "as_bool", "as_bools", "as_int_lists"}
_KEYWORD = 2  # the kind of an argument that is given by name


def _missing(what: str) -> NotImplementedError:
    return NotImplementedError(
        f"torch.export.load: the archive was written by PyTorch, and weft does not read {what} yet: export the model with weft"
    )


# ---- Values -----------------------------------------------------------------------------------------------------------------


def _value(union: dict[str, Any]) -> Any:
    """An argument of a node as `_graph_json.encoded` would write it."""
    ((kind, held),) = union.items()
    if kind == "as_none":
        return None
    if kind in _PLAIN:
        return held
    if kind in ("as_tensor", "as_optional_tensor"):
        return {"node": held["name"]} if "name" in held else _value(held)
    if kind == "as_tensors":
        return [{"node": each["name"]} for each in held]
    if kind in ("as_optional_tensors", "as_nested_tensors"):
        return [_value(each) if isinstance(each, dict) else _value({"as_tensors": each}) for each in held]
    if kind == "as_float":
        return {"float": str(held)}
    if kind == "as_floats":
        return [{"float": str(each)} for each in held]
    for name, table in (
        ("as_scalar_type", _DTYPES),
        ("as_layout", _LAYOUTS),
        ("as_memory_format", _MEMORY_FORMATS),
    ):
        if kind == name and held in table:
            return {"torch": table[held]}
    if kind == "as_device":
        index = held.get("index")
        return {"device": held["type"] if index is None else f"{held['type']}:{index}"}
    raise _missing(f"arguments of the kind {kind}")


def _size(union: dict[str, Any]) -> int:
    if "as_int" not in union:
        raise _missing("dynamic sizes")
    return union["as_int"]


def _example(meta: dict[str, Any]) -> dict[str, Any]:
    return {"tensor": [[_size(each) for each in meta["sizes"]], _DTYPES[meta["dtype"]]]}


# ---- Graphs -----------------------------------------------------------------------------------------------------------------


def _nodes(graph: dict[str, Any], given: list[str]) -> list[dict[str, Any]]:
    """The nodes of a graph. given: the names of the inputs that a caller gives, whose sizes are checked."""
    metas = graph["tensor_values"]
    examples: dict[str, dict[str, Any]] = {name: {"val": _example(meta)} for name, meta in metas.items()}
    for name in given:
        examples[name]["check"] = {"check": [name, [_size(each) for each in metas[name]["sizes"]], None]}
    listed: list[dict[str, Any]] = []

    def add(op: str, name: str, target: str, args: list[Any], kwargs: dict[str, Any] | None = None) -> None:
        node = {"op": op, "name": name, "target": target, "args": args, "kwargs": kwargs or {}}
        listed.append(node | {"meta": examples.get(name, {})})

    for each in graph["inputs"]:
        if "as_tensor" not in each:
            raise _missing("inputs that are no tensors")
        add("placeholder", each["as_tensor"]["name"], each["as_tensor"]["name"], [])
    for node in graph["nodes"]:
        target = node["target"].removeprefix("torch.")
        if not target.startswith("ops."):
            raise _missing(f"calls of {node['target']}")
        args = [_value(each["arg"]) for each in node["inputs"] if each["kind"] != _KEYWORD]
        kwargs = {each["name"]: _value(each["arg"]) for each in node["inputs"] if each["kind"] == _KEYWORD}
        results = [_value(each) for each in node["outputs"]]
        if len(results) == 1 and isinstance(results[0], dict):
            add("call_function", results[0]["node"], target, args, kwargs)
            continue
        whole = node.get("name") or f"result_{len(listed)}"  # of several tensors, which follow as items
        add("call_function", whole, target, args, kwargs)
        items = results[0] if len(results) == 1 else results
        for position, item in enumerate(items or ()):
            if item is not None:
                add("call_function", item["node"], "operator.getitem", [{"node": whole}, position])
    add("output", "output", "output", [{"tuple": [_value(each) for each in graph["outputs"]]}])
    return listed


# ---- The program ------------------------------------------------------------------------------------------------------------

_INPUTS = {"parameter": "PARAMETER", "buffer": "BUFFER", "tensor_constant": "CONSTANT_TENSOR"}


def _input(spec: dict[str, Any]) -> list[Any]:
    ((kind, held),) = spec.items()
    if kind == "user_input":
        return ["USER_INPUT", ["TensorArgument", held["arg"]["as_tensor"]["name"]], None, None]
    if kind not in _INPUTS:
        raise _missing(f"inputs of the kind {kind}")
    return [
        _INPUTS[kind],
        ["TensorArgument", held["arg"]["name"]],
        held[f"{kind}_name"],
        held.get("persistent"),
    ]


def _output(spec: dict[str, Any]) -> list[Any]:
    ((kind, held),) = spec.items()
    if kind != "user_output" or "as_tensor" not in held["arg"]:
        raise _missing(
            f"results of the kind {kind}, such as buffers that the model changes, and results that are no tensors"
        )
    return ["USER_OUTPUT", ["TensorArgument", held["arg"]["as_tensor"]["name"]], None]


def _module(entry: dict[str, Any]) -> list[Any]:
    signature = entry["signature"]
    if signature is None or entry["fqn"]:
        return [entry["fqn"], None]
    return ["", [[], [], signature["in_spec"], signature["out_spec"], signature["forward_arg_names"]]]


def program(model: dict[str, Any]) -> dict[str, Any]:
    """The model of an archive of PyTorch's in the words of weft's archives.

    Raises: NotImplementedError for programs with dynamic sizes, control flow, objects of classes or writes to buffers.
    """
    if model.get("schema_version", {}).get("major") != _VERSION:
        raise RuntimeError(
            f"torch.export.load: the archive has the version {model.get('schema_version')}, and weft reads version {_VERSION}"
        )
    module = model["graph_module"]
    inputs = [_input(each) for each in module["signature"]["input_specs"]]
    return {
        "graph": _nodes(module["graph"], [arg[1] for kind, arg, *_ in inputs if kind == "USER_INPUT"]),
        "inputs": inputs,
        "outputs": [_output(each) for each in module["signature"]["output_specs"]],
        "ranges": [],
        "guards": [],
        "modules": [_module(each) for each in module["module_call_graph"]],
    }


def tensors(archive: PT2ArchiveReader, folder: str) -> dict[str, Tensor]:
    """The tensors of `data/weights/` or `data/constants/`, by their names in the module."""
    (name,) = [
        each for each in archive.get_file_names() if each.startswith(folder) and each.endswith("_config.json")
    ]
    config = json.loads(archive.read_string(name))["config"]
    return {
        key: _tensor(archive.read_bytes(folder + each["path_name"]), each) for key, each in config.items()
    }


def _tensor(data: bytes, entry: dict[str, Any]) -> Tensor:
    if entry["use_pickle"]:
        return load_tensors(io.BytesIO(data), weights_only=True)
    meta = entry["tensor_meta"]
    sizes, strides = ([_size(each) for each in meta[key]] for key in ("sizes", "strides"))
    dtype = getattr(weft, _DTYPES[meta["dtype"]])
    flat = weft.frombuffer(bytearray(data), dtype=dtype) if data else weft.empty(0, dtype=dtype)
    result = flat.as_strided(
        sizes, strides, _size(meta["storage_offset"])
    )  # raises beyond the end of the data
    return Parameter(result, meta["requires_grad"]) if entry["is_param"] else result
