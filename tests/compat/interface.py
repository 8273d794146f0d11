"""Writes weft/compat/interface/*.txt: the names of PyTorch that weft declares and does not implement.

    python tests/compat/interface.py            # all files
    python tests/compat/interface.py cuda ao    # some

A name that weft implements is left out, so run it again when a module has been built.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import importlib
import inspect
import io
import itertools
import keyword
import pkgutil
import re
import sys
import textwrap
import types
import warnings
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

FOLDER = Path(__file__).parents[2] / "weft" / "compat" / "interface"
sys.path.insert(0, str(FOLDER.parents[2]))
from weft.compat import declared, served  # noqa: E402

WIDTH = 120

NO_DEVICE = "weft has no such devices; test torch.{}.is_available() first"
NOT_FOR_CUDA = "weft's CUDA devices do not have it"
NOT_OF_DISTRIBUTED = (
    "weft has groups of processes and their collectives, but not this part of torch.distributed"
)
QUANTIZED = "weft has quantized tensors and the eager workflow of quantization, but not this"
SPARSE = "weft has sparse tensors, but not this"
TWO_OF_FOUR = "matrices with two of four elements are products of CUDA's"
TORCHSCRIPT = "weft has no TorchScript: programs run as they are"
GRADUAL = "passes that infer the types of sizes are not there yet"
NO_SYMBOLS = "the sizes of weft's tensors are ints, and there are no symbolic ones"
NO_COMPILER = "weft compiles each operation by itself, and has no compiler of graphs"
UNSPLIT = "splitting graphs between devices is not there yet; use torch.fx.passes.split_module"
# Packages that are declared with all of their modules, and why they are not there, in the words of the error.
PACKAGES = {
    "torch._dynamo.backends.debugging": NO_COMPILER,
    "torch.ao": QUANTIZED,
    "torch.contrib": "it shows the graphs of TorchScript, which weft does not have",
    "torch.backends.cudnn.rnn": NOT_FOR_CUDA,
    "torch.cuda": NOT_FOR_CUDA,
    "torch.distributed": NOT_OF_DISTRIBUTED,
    "torch.fx.experimental.accelerator_partitioner": UNSPLIT,
    "torch.fx.experimental.dynamic_spec": NO_SYMBOLS,
    "torch.fx.experimental.graph_gradual_typechecker": GRADUAL,
    "torch.fx.experimental.meta_tracer": "use torch.fx.Tracer, which has no values of the device meta",
    "torch.fx.experimental.migrate_gradual_types": GRADUAL,
    "torch.fx.experimental.optimization": "weft has no layout of MKL-DNN",
    "torch.fx.experimental.partitioner_utils": UNSPLIT,
    "torch.fx.experimental.proxy_tensor": "its private steps; use make_fx",
    "torch.fx.experimental.recording": NO_SYMBOLS,
    "torch.fx.experimental.sym_node": NO_SYMBOLS,
    "torch.fx.experimental.symbolic_shapes": NO_SYMBOLS,
    "torch.fx.experimental.unify_refinements": GRADUAL,
    "torch.fx.experimental.validator": NO_SYMBOLS,
    "torch.fx.passes.backends.cudagraphs": NOT_FOR_CUDA,
    "torch.fx.passes.fake_tensor_prop": "fake tensors are not there yet; use torch.fx.passes.shape_prop",
    "torch.fx.passes.regional_inductor": NO_COMPILER,
    "torch.fx.passes.regional_inductor_invoke_subgraph": NO_COMPILER,
    "torch.fx.passes.reinplace": "graphs are not made to compute in place",
    "torch.fx.passes.runtime_assert": NO_SYMBOLS,
    "torch.fx.passes.splitter_base": UNSPLIT,
    "torch.jit": TORCHSCRIPT,
    "torch.mps": NO_DEVICE.format("mps"),
    "torch.mtia": NO_DEVICE.format("mtia"),
    "torch.nativert": TORCHSCRIPT,
    "torch.distributed.nn.jit": NOT_OF_DISTRIBUTED,
    "torch.nn.backends": "weft has no THNN",
    "torch.nn.cpp": "weft has no modules of C++",
    "torch.numa": "weft binds no processes to the memory of one socket",
    "torch.onnx": "it belongs to the exporter of TorchScript, which weft has not; torch.onnx.export exports what torch.export traces",
    "torch.package": "weft writes and reads no archives of torch.package",
    "torch.nn.modules.linear_cross_entropy": "weft has one implementation of linear_cross_entropy, which is not in parts",
    "torch.profiler.python_tracer": "profiles of weft have no events of Python functions",
    "torch.sparse": TWO_OF_FOUR,
    "torch.utils.benchmark.utils.cpp_jit": "weft times Python statements only",
    "torch.utils.benchmark.utils.compile": "weft has no compilers to compare",
    "torch.utils.benchmark.utils.valgrind_wrapper": "weft times statements and does not count their instructions",
    "torch.utils.bundled_inputs": TORCHSCRIPT,
    "torch.utils.cpp_extension": "weft has no C++ headers and libraries to build an extension with",
    "torch.utils.data.datapipes.dataframe": "weft has no data pipes of DataFrames",
    "torch.utils.hipify": "weft has no CUDA sources to translate for ROCm",
    "torch.utils.jit": TORCHSCRIPT,
    "torch.utils.mkldnn": "weft does not use oneDNN, whose memory layout this module is for",
    "torch.utils.mobile_optimizer": TORCHSCRIPT,
    "torch.utils.model_dump": TORCHSCRIPT,
    "torch.xpu": "weft's XPU devices do not have it",
}
# Single names of other modules: for each module the names and the reason.
_SPARSE = (
    "sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor sparse_compressed_tensor "
    "indices_copy values_copy crow_indices_copy col_indices_copy ccol_indices_copy row_indices_copy"
).split()
_QUANTIZED = (
    "quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic empty_quantized choose_qparams_optimized "
    "quantized_batch_norm quantized_gru_cell quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d "
    "quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell"
).split()
_SHARED = (
    "rebuild_event reduce_event rebuild_nested_tensor reduce_nested_tensor rebuild_sparse_coo_tensor "
    "rebuild_sparse_compressed_tensor reduce_sparse_tensor rebuild_cuda_tensor rebuild_storage_fd rebuild_storage_filename"
).split()
_COUNTED = "CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts".split()
NAMES: dict[str, dict[str, str]] = {
    "torch": {**dict.fromkeys(_SPARSE, SPARSE), **dict.fromkeys(_QUANTIZED, QUANTIZED)},
    "torch.utils.benchmark": {
        **dict.fromkeys(_COUNTED, "weft does not count instructions"),
        "FuzzedSparseTensor": SPARSE,
    },
    "torch.utils.benchmark.op_fuzzers.sparse_binary": {"BinaryOpSparseFuzzer": SPARSE},
    "torch.utils.benchmark.op_fuzzers.sparse_unary": {"UnaryOpSparseFuzzer": SPARSE},
    "torch.utils.benchmark.utils.sparse_fuzzer": {"FuzzedSparseTensor": SPARSE},
    "torch.multiprocessing.reductions": dict.fromkeys(_SHARED, "weft sends dense tensors of the CPU only"),
}
# Packages whose modules also have the names that they only import: libraries import them from there.
IMPORTING = (
    "amp autograd distributions func functional hub jit library multiprocessing nn optim overrides random serialization "
    "storage testing utils _utils _tensor"
).split()
IMPORTED = "imported by these modules"
# Private modules that libraries import from.
PRIVATE = """
    torch.ao.quantization._learnable_fake_quantize torch.ao.quantization.fx._equalize
    torch.distributed._composable torch.distributed._composable.fsdp torch.distributed._composable.replicate
    torch.distributed._composable_state torch.distributed._functional_collectives
    torch.distributed._shard torch.distributed._shard.api torch.distributed._shard.sharded_tensor
    torch.distributed._shard.sharded_tensor.api torch.distributed._shard.sharding_spec
    torch.distributed._shard.metadata
    torch.distributed._state_dict_utils torch.distributed._symmetric_memory torch.distributed._tensor
    torch.distributed._tensor.api torch.distributed._tensor.placement_types torch.distributed._tools torch.distributed.fsdp._common_utils torch.distributed.fsdp._flat_param
    torch.distributed.fsdp._fully_shard torch.distributed.fsdp._runtime_utils
    torch.distributed.fsdp._state_dict_utils torch.distributed.fsdp._traversal_utils
    torch.distributed.fsdp._unshard_param_utils torch.distributed.fsdp._wrap_utils
    torch.distributed.algorithms._checkpoint
    torch.distributed.algorithms._checkpoint.checkpoint_wrapper
    torch.distributed.checkpoint._consolidate_hf_safetensors
    torch.distributed.checkpoint._nested_dict torch.distributed.checkpoint._state_dict_utils
    torch.distributed.tensor._dtensor_spec torch.distributed.tensor._utils
    torch.distributed.tensor.experimental._attention torch.distributed.tensor.parallel._utils
    torch.cuda._utils torch.cuda._memory_viz torch.cuda._sanitizer
    torch.jit._logging
""".split()
# Private names that libraries use, of modules that are declared.
PRIVATE_NAMES = {
    "torch.jit.mobile": "_load_for_lite_interpreter",
    "torch.distributed.checkpoint.format_utils": "_EmptyStateDictLoadPlanner",
    "torch.distributed.checkpoint.state_dict_loader": "_load_state_dict _load_state_dict_from_keys",
    "torch.distributed.fsdp.wrap": "_or_policy _module_wrap_policy _wrap _Policy",
    "torch.distributed.rpc.api": "_all_gather _require_initialized _is_current_rpc_agent_set",
    "torch.distributed.tensor.placement_types": "_StridedShard _MaskPartial",
    "torch.distributed.utils": "_sync_module_states _verify_param_shape_across_processes",
}
# Functions of devices that PyTorch answers without the device: what its CPU build answers is written down.
DEVICES = ("cuda", "mps", "mtia", "xpu")
ANSWERED = re.compile(
    r"is_|device_count|(max_)?(host_)?memory_|get_(arch_list|gencode_flags|rng_state_all)|(manual_)?seed|empty_cache|reset_"
)
# Functions that only ask answer that it is not there: False, no version, a count of 0.
ASKING = re.compile(r"(is|has|can)_|.*_(is_enabled|is_available|count)$|.*version$|.*_enabled$")
# These work something out from a name, from sizes or from a program, so False would be wrong.
WORKED_OUT = set(
    "is_algebraic_expression is_bool_expr is_dim is_dim_div_by_target is_target_div_by_dim is_channels_last_contiguous_2d "
    "is_channels_last_contiguous_3d is_channels_last_strides_2d is_channels_last_strides_3d is_contiguous "
    "is_non_overlapping_and_dense_indicator is_self_or_submodule is_submodule is_uninterruptible_state check_version is_mangled "
    "is_stdlib_module is_torch_jit_ignore_context_manager is_complex_value is_floating_point is_pinned has_torch_function "
    "is_column is_dataframe is_caffe2_gpu_file is_cusparse_file is_out_of_place is_pytorch_file is_special_file "
    "get_compiler_abi_compatibility_and_version".split()
)
SKIPPED_PARTS = {"testing", "test", "tests", "examples", "benchmark_main", "main", "jit"}
LITERALS = (bool, int, float, str, bytes, type(None))


def main(areas: list[str]) -> None:
    """Write the files of these areas, which are the parts of names after "torch."; all files without any."""
    files: dict[str, list[Section]] = {}
    for package, reason in PACKAGES.items():
        sections = files.setdefault(area_of(package), [])
        if not areas or area_of(package) in areas:
            paths = modules(package)
            found = {path: section(path, reason) for path in sorted(paths, key=is_private)}
            sections += [each for path in paths if (each := found[path]) is not None]
    for module, names in NAMES.items():
        sections = files.setdefault(area_of(module), [])
        for reason in dict.fromkeys(names.values()):
            each = section(module, reason, [name for name in names if names[name] == reason])
            sections += [each] if each is not None else []
    for area in IMPORTING:
        if not areas or area in areas:
            found = [imports(module) for module in modules(f"torch.{area}")]
            files.setdefault(area, []).extend(each for each in found if each is not None)
    for area, sections in files.items():
        if sections and (not areas or area in areas):
            text = page(sections)
            FOLDER.joinpath(f"{area}.txt").write_text(text, encoding="utf-8")
            print(
                f"{area}: {len(sections)} sections, {len(text.splitlines())} lines, {len(text) / 1000:.0f} kB"
            )


class Section(NamedTuple):
    """The declarations of one module for one reason."""

    reason: str
    module: str
    entries: list[str]


def page(sections: list[Section]) -> str:
    """The text of a file: each reason stands before the modules that it is for."""
    lines = []
    for reason, group in itertools.groupby(sections, lambda each: each.reason):
        lines.append(f"# {reason}")
        for each in group:
            lines.append(each.module)
            for _, entries in itertools.groupby(sorted(shared(each.entries), key=rank), rank):
                lines += filled(list(entries))
    return "\n".join(lines) + "\n"


def shared(entries: list[str]) -> list[str]:
    """The entries, with one for all functions that take the same arguments, and one for all such classes."""
    names: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        is_call = re.fullmatch(r"((?:class )?)(\w+)(\(.*)", entry)
        kind, name, rest = is_call.groups() if is_call else ("", entry, "")
        names.setdefault((kind, rest or entry), []).append(name)
    return [
        f"{kind}{', '.join(found)}{rest if rest != found[0] else ''}" for (kind, rest), found in names.items()
    ]


def rank(entry: str) -> int:
    """Imports come first in a module. Classes with methods stand last, each on lines of its own."""
    return 0 if entry.startswith("from ") else 2 if re.fullmatch(r"class .*: [\w, ]+", entry) else 1


def filled(entries: list[str]) -> list[str]:
    """Lines of entries, several in a line where they are short."""
    lines = []
    for entry in entries:
        if lines and rank(entry) < 2 and len(f"    {lines[-1]}; {entry}") <= WIDTH:
            lines[-1] += f"; {entry}"
        else:
            lines.append(entry)
    wrapper = textwrap.TextWrapper(
        WIDTH, "    ", "        ", break_long_words=False, break_on_hyphens=False, expand_tabs=False
    )
    # A line does not end at a no-break space.
    parts = [part for line in lines for part in wrapper.wrap(line.replace(" as ", "\xa0as\xa0"))]
    return [part.replace("\xa0", " ") for part in parts]


def area_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "torch"


def is_private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


def modules(package: str) -> list[str]:
    """The public modules of a package at any depth, and the private ones listed above."""
    found = [package]
    module = quietly(package)
    for info in pkgutil.iter_modules(getattr(module, "__path__", ())):
        name = f"{package}.{info.name}"
        if (
            (info.name.startswith("_") and name not in PRIVATE)
            or info.name in SKIPPED_PARTS
            or is_moved(name)
        ):
            continue
        found += modules(name) if info.ispkg else [name]
    # A package may put modules of another package under its own name; they have no files there.
    found += [
        each for each in PRIVATE if each.rpartition(".")[0] == package and each not in found and quietly(each)
    ]
    return found


def is_moved(name: str) -> bool:
    """Whether weft serves the module under its name of today."""
    return name.removeprefix("torch.") in served.MOVED


def quietly(name: str) -> types.ModuleType | None:
    """The module, or None if PyTorch itself cannot import it here."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return importlib.import_module(name)
        except BaseException:  # optional dependencies, other platforms, scripts
            return None


# (file, class or function) -> the module and the name that declare it in the file.
_declared: dict[tuple[str, Any], tuple[str, str]] = {}


def section(path: str, reason: str, wanted: list[str] | None = None) -> Section | None:
    """The declarations of a module, or of the names `wanted`; None if weft has the module and all of its names."""
    module = quietly(path)
    own = own_module(path)
    names = public_names(module) if module is not None else {}
    if wanted is not None:
        names = {name: getattr(module, name) for name in wanted}
    entries, imports = [], {}
    for name, value in names.items():
        if has(own, name) or isinstance(value, types.ModuleType):
            continue
        home, real = foreign_home(name, value, path), own_name(value, name)
        if not home and isinstance(value, type | types.FunctionType):  # declared once in a file
            home, real = _declared.setdefault((area_of(path), value), (path, name))
        if home and home != path:
            imports.setdefault(home, []).append(f"{real} as {name}" if real != name else name)
        elif text := declaration(name, value, path):
            entries.append(text)
    entries = [*import_entries(path, imports), *entries]
    return None if own is not None and not entries else Section(reason, path, entries)


def imports(path: str) -> Section | None:
    """A section with the functions and classes of other modules that a module of PyTorch imports, and weft's does not."""
    module, own = quietly(path), own_module(path)
    if module is None or own is None:
        return None
    found: dict[str, list[str]] = {}
    for name, value in sorted(vars(module).items()):
        home = getattr(value, "__module__", None)
        if name.startswith("__") or not callable(value) or not isinstance(home, str) or home == path:
            continue
        real = getattr(value, "__name__", "")
        holder = own_module(home) if home.startswith("torch") else None
        if not has(own, name) and has(holder, real):
            found.setdefault(home, []).append(name if name == real else f"{real} as {name}")
    return Section(IMPORTED, path, import_entries(path, found)) if found else None


def import_entries(path: str, imports: dict[str, list[str]]) -> list[str]:
    """An entry for each module that the module `path` imports names from."""
    package = path.rpartition(".")[0] + "."
    places = {
        home: f".{home.removeprefix(package)}" if home.startswith(package) else home for home in imports
    }
    return [f"from {places[home]}: {', '.join(names)}" for home, names in imports.items()]


def own_module(path: str) -> types.ModuleType | None:
    """weft's module of that name, unless it is itself a declaration."""
    try:
        module = importlib.import_module("weft" + path.removeprefix("torch"))
    except ImportError:
        return None
    return module if module.__spec__.origin is not None else None


def has(own: types.ModuleType | None, name: str) -> bool:
    """Whether weft implements the name. A package may take it from one of its modules when it is asked for."""
    if own is None:
        return False
    is_declared = declared.has
    others = lambda module, each: module != own.__name__ and is_declared(module, each)  # noqa: E731
    with mock.patch.object(declared, "has", others):  # what the module itself only declares does not count
        return hasattr(own, name)


def public_names(module: types.ModuleType) -> dict[str, Any]:
    """The names that `module` exports, and those that it defines itself."""
    found = {}
    exported = getattr(module, "__all__", ())
    private = PRIVATE_NAMES.get(module.__name__, "").split()
    package = ".".join(module.__name__.split(".")[:2])
    for name in sorted({*exported, *vars(module)}):
        if (
            (name.startswith("_") and name not in private)
            or keyword.iskeyword(name)
            or not hasattr(module, name)
        ):
            continue
        value = getattr(module, name)
        home = getattr(value, "__module__", None)
        homes = ("torch._C", f"{module.__name__}.")  # also what a package takes from its own submodules
        is_own = home == module.__name__ or (isinstance(home, str) and home.startswith(homes))
        is_constant = name.isupper() and isinstance(value, LITERALS)
        from_private = isinstance(home, str) and home.startswith(f"{module.__name__.rpartition('.')[0]}._")
        is_torch = isinstance(home, str) and home.startswith("torch")
        # Libraries also import a class from a module that only uses it, of the same package.
        is_used = isinstance(value, type) and isinstance(home, str) and f"{home}.".startswith(f"{package}.")
        is_wanted = name in exported or is_own or is_constant or is_used or (from_private and callable(value))
        if is_wanted or (module.__name__ in PRIVATE and is_torch and callable(value)):
            found[name] = value
    return found


# ---- One declaration --------------------------------------------------------------------------------------------


def foreign_home(name: str, value: Any, path: str) -> str:
    """The module that defines `value`, if that is another one and weft has it; else the empty string."""
    home = getattr(value, "__module__", None)
    if callable(value) and isinstance(home, str) and home.startswith("torch") and home != path:
        return home if is_importable(home, value, own_name(value, name)) else ""
    return ""


def own_name(value: Any, name: str) -> str:
    """The name of a class or function in its module. Other values have the same name everywhere."""
    return getattr(value, "__name__", name)


def declaration(name: str, value: Any, path: str) -> str:
    """The text of a function, class or constant; empty for what cannot be declared."""
    home = getattr(value, "__module__", None)
    if callable(value) and isinstance(home, str) and not home.startswith("torch"):
        return ""
    if isinstance(value, type):
        return class_declaration(name, value, path)
    if callable(value):
        text = f"{name}({parameters(value)})"
        is_device = any(path.startswith(f"torch.{device}") for device in DEVICES)
        found = answer(value) if is_device and ANSWERED.match(name) else ""
        return text + (found or (f" = {absence(name)}" if asks(name) else ""))
    return f"{name} = {value!r}" if is_literal(value) and not is_local(name, value) else ""


def is_local(name: str, value: Any) -> bool:
    """Whether a constant says something of this machine, or is a text or a table that only PyTorch's own code reads."""
    is_text = isinstance(value, str) and not re.fullmatch(r"[\w.]*", value)
    return is_text or len(repr(value)) > 100 or name == "TYPE_CHECKING" or name.startswith("IS_")


def asks(name: str) -> bool:
    """Whether a function only asks whether something is there."""
    return ASKING.match(name) is not None and name not in WORKED_OUT


def absence(name: str) -> Any:
    """What a function that asks says of something that is not there."""
    return 0 if name.endswith("count") else None if name.endswith("version") else False


def answer(function: Any) -> str:
    """The end of a declaration: what PyTorch returns without the device, or nothing if it raises."""
    needed = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    try:
        result = function(*[0 for _ in needed])
    except Exception:
        return ""
    result = dict(result) if isinstance(result, dict) else result
    return f" = {result!r}" if is_literal(result) else ""


def is_importable(home: str, value: Any, name: str) -> bool:
    """Whether weft has `value`'s home, as a module or as a declaration, under the value's own name."""
    if (is_private(home) and home not in PRIVATE) or name.startswith("_"):  # not declared there
        own = own_module(home)
        return has(own, name)
    module = quietly(home)
    if getattr(module, name, None) is not value:
        return False
    own = own_module(home)
    is_declared = any(f"{home}.".startswith(f"{package}.") for package in PACKAGES)
    return is_declared or has(own, name)


def is_literal(value: Any) -> bool:
    if isinstance(value, (tuple, list, set)):
        return all(is_literal(each) for each in value) and bool(value or not isinstance(value, set))
    if isinstance(value, dict):
        return all(is_literal(each) for pair in value.items() for each in pair)
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")
    return type(value) in LITERALS


def class_declaration(name: str, cls: type, path: str) -> str:
    if issubclass(cls, enum.Enum) and len(cls):
        kind = next(each.__name__ for each in cls.__mro__ if each.__module__ == "enum")
        return enumeration(name, kind, {each: member.value for each, member in cls.__members__.items()})
    if type(cls).__name__ == "pybind11_type" and hasattr(cls, "__members__"):
        return enumeration(name, "IntEnum", {each: int(member) for each, member in cls.__members__.items()})
    if type(cls).__name__ == "tensortype":  # torch.cuda.FloatTensor and its relatives
        return f"class {name}(...)"
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        defaults = [cls._field_defaults[each] for each in cls._fields if each in cls._field_defaults]
        rest = f", defaults={defaults!r}" if defaults and is_literal(defaults) else ""
        return f"{name} = namedtuple({name!r}, {list(cls._fields)!r}{rest})"
    if dataclasses.is_dataclass(cls) and (text := dataclass_declaration(name, cls)):
        return text
    return plain_class(name, cls, path)


def enumeration(name: str, kind: str, members: dict[str, Any]) -> str:
    """An enumeration with its values, or with the names alone if those are counted from 1."""
    is_counted = list(members.values()) == [*range(1, len(members) + 1)] and kind in ("Enum", "IntEnum")
    if is_counted or not all(map(is_literal, members.values())):
        return f"{name} = {kind}({name!r}, {' '.join(members)!r})"
    return f"{name} = {kind}({name!r}, {members!r})"


def dataclass_declaration(name: str, cls: type) -> str:
    """A dataclass whose defaults can be written down, with no methods of its own; else nothing."""
    if cls.__bases__ != (object,) or methods(cls) or "__post_init__" in vars(cls):
        return ""
    fields = []
    for each in dataclasses.fields(cls):
        if each.default is not dataclasses.MISSING:
            if not is_literal(each.default):
                return ""
            fields.append(f"({each.name!r}, object, {each.default!r})")
        elif each.default_factory is not dataclasses.MISSING:
            if each.default_factory not in (list, dict, set):
                return ""
            made = each.default_factory.__name__
            fields.append(f"({each.name!r}, object, field(default_factory={made}))")
        else:
            fields.append(repr(each.name))
    frozen = ", frozen=True" if cls.__dataclass_params__.frozen else ""
    return f"{name} = make_dataclass({name!r}, [{', '.join(fields)}]{frozen})"


def plain_class(name: str, cls: type, path: str) -> str:
    bases, hidden = (
        [],
        [cls],
    )  # the ancestors that a declaration can name, and those whose methods it must repeat
    for base in cls.__bases__:
        for ancestor in base.__mro__:
            if text := base_name(ancestor, path):
                if text not in bases:
                    bases.append(text)
                break
            if ancestor.__module__.startswith("torch") and ancestor.__name__ != "Tensor":
                hidden.append(ancestor)
    shown = [each for each in cls.__mro__[1:] if base_name(each, path) in bases]
    shown = [
        each for each in shown if not any(each is not other and issubclass(other, each) for other in shown)
    ]
    bases = [base_name(each, path) for each in shown]
    text = f"class {name}"
    if not issubclass(cls, BaseException):
        inits = [vars(each).get("__init__") for each in hidden]
        init = next((each for each in inits if isinstance(each, types.FunctionType)), None)
        text += f"({parameters(init, 1) if init else '...'})"
    text += f" of {', '.join(bases)}" if bases else ""
    found = dict.fromkeys(each for cls in hidden for each in methods(cls))
    return f"{text}: {', '.join(found)}" if found else text


def base_name(base: type, path: str) -> str:
    """How a declaration names a base class; empty for object, for private classes and for Tensor, which has a cost:
    from its first subclass on, operations ask the classes of their arguments."""
    if base.__name__ == "Tensor":
        return ""
    if issubclass(base, BaseException) and base.__module__ == "builtins":
        return base.__name__
    if base.__module__ == path and base.__name__ in public_names(sys.modules[path]):
        return base.__name__
    own = own_module(base.__module__) if base.__module__.startswith("torch") else None
    if has(own, base.__name__):
        return f"{base.__module__}.{base.__qualname__}"
    return ""


def methods(cls: type) -> list[str]:
    """The names of the public methods and properties. Nothing else is declared of them, because there are no objects to ask for them."""
    kinds = (property, types.FunctionType)
    found = {
        name: getattr(value, "__func__", value)
        for name, value in vars(cls).items()
        if not name.startswith("_") and not keyword.iskeyword(name)
    }
    return [name for name, value in found.items() if isinstance(value, kinds)]


def parameters(function: Any, first: int = 0) -> str:
    """The parameters of a function from the one with the number `first` on, or `...` for any."""
    try:
        found = list(inspect.signature(function, follow_wrapped=True).parameters.values())[first:]
        plain = [each.replace(annotation=inspect.Parameter.empty, default=default(each)) for each in found]
        text = str(inspect.Signature(plain))[1:-1]
    except (TypeError, ValueError):
        return "..."
    return "..." if text == "*args, **kwargs" else text


def default(parameter: inspect.Parameter) -> Any:
    """The default as it may be written down: other values than literals become `...`."""
    if parameter.default is inspect.Parameter.empty or is_literal(parameter.default):
        return parameter.default
    return _Dots()


class _Dots:
    def __repr__(self) -> str:
        return "..."


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
