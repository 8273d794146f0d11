"""Tensors as text: `repr`, `str` and `format` give the same characters as PyTorch 2.13."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtype import get_default_dtype
from ...core.restoring import contextmanager


@dataclasses.dataclass(slots=True)
class PrintOptions:
    """Holds the arguments of `set_printoptions`."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed: first all that `profile` ('default', 'short', 'full') says, then the rest.

    Units: `precision` in digits after the point, `linewidth` in columns. Tensors of more than `threshold`
    elements show `edgeitems` at either end of each dimension. `sci_mode` None decides for each tensor and, as in
    PyTorch, comes back with every call that does not give it. An unknown profile is ignored.

    >>> import weft as torch
    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([1.23456])
    tensor([1.23])
    >>> torch.set_printoptions(profile="default")
    """
    global _options
    base = PROFILES.get(profile or "", _options)
    options = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    _options = dataclasses.replace(base, **changes, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """Return the present options, as keyword arguments of `set_printoptions`."""
    return dataclasses.asdict(_options)


@contextmanager
def printoptions(**kwargs) -> Iterator[None]:
    """Call `set_printoptions(**kwargs)` for the length of a `with` block.

    >>> import weft as torch
    >>> with printoptions(precision=2):
    ...     torch.tensor([1.23456])
    tensor([1.23])
    """
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


def tensor_repr(tensor, *, tensor_contents: str | None = None, tangent=None, names: Sequence = ()) -> str:
    """Return the text of `repr` and `str`: the values, or `tensor_contents` in their place, then the other properties.

    `tangent` is the one of `tensor` in forward-mode differentiation, and `names` are those of its dims: higher layers know them.
    """
    prefix, suffixes = _prefix(tensor), _suffixes(tensor, tensor_contents is not None)
    contents = _contents(tensor, len(prefix)) if tensor_contents is None else tensor_contents
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{tensor.grad_fn.name()}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    if any(names):
        suffixes.append(f"names={tuple(names)}")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    break_first = _layout(tensor) == "sparse_coo"
    text = _append_suffixes(prefix + contents, suffixes, indent=len(prefix), break_first=break_first)
    return _mark_parameter(tensor, text)


def tensor_format(tensor, spec: str) -> str:
    """What `format(tensor, spec)` gives: 0-dim tensors are formatted as numbers.

    Raises: TypeError for any other tensor unless `spec` is empty.
    """
    if tensor.dim() == 0 and not tensor.is_meta and type(tensor).__name__ == "Tensor":
        return format(tensor.item(), spec)
    return object.__format__(tensor, spec)


# Around the values


def _layout(tensor) -> str:
    return str(tensor.layout).removeprefix("torch.")


def _has_no_values(tensor) -> bool:
    """Whether it is on a device without memory: "meta", or one that only says that it is another."""
    spec = getattr(tensor, "spec", None)  # tests print PyTorch's tensors as well
    return tensor.is_meta or spec is not None and not spec.device.backend.has_memory


def _is_nested(tensor) -> bool:
    return getattr(tensor, "is_nested", False)


def _prefix(tensor) -> str:
    name = type(tensor).__name__
    if _is_nested(tensor):
        return "nested_tensor("
    return "tensor(" if name in ("Tensor", "Parameter") else f"{name}("


def _mark_parameter(tensor, text: str) -> str:
    is_parameter_class = any(base.__name__ == "Parameter" for base in type(tensor).__mro__)
    if type(tensor).__name__ != "Parameter" and (is_parameter_class or getattr(tensor, "_is_param", False)):
        text = f"Parameter({text})"
    return f"Parameter containing:\n{text}" if is_parameter_class else text


def _suffixes(tensor, has_contents: bool) -> list[str]:
    if _is_nested(tensor):
        return []  # each of its tensors has its own
    layout, size, dtype = _layout(tensor), f"size={tuple(tensor.shape)}", f"dtype={tensor.dtype}"
    suffixes = [] if tensor.device.type == "cpu" else [f"device='{tensor.device}'"]
    if layout.startswith("sparse"):
        suffixes.append(size)
        if not tensor.is_meta:
            suffixes.append(f"nnz={tensor._nnz()}")
        if str(tensor.dtype) not in _implied_dtypes():
            suffixes.append(dtype)
    elif getattr(tensor, "is_quantized", False):
        suffixes += [size, dtype, *_quantizer_suffixes(tensor)]
    else:
        is_blank = tensor.is_meta or not has_contents and _has_no_values(tensor)
        without_values = is_blank or tensor.numel() == 0
        if is_blank or (tensor.dim() != 1 if without_values else not _options.edgeitems):
            suffixes.append(size)
        if str(tensor.dtype) not in _implied_dtypes(without_values):
            suffixes.append(dtype)
    if layout != "strided":
        suffixes.append(f"layout={tensor.layout}")
    return suffixes


def _implied_dtypes(without_values: bool = False) -> tuple[str, ...]:
    """The dtypes that go without saying: `tensor` infers them from the values as they are printed."""
    default = str(get_default_dtype())
    if without_values:
        return (default,)
    # Not `default_complex()`: for a default of float16 PyTorch prints as if that were complex64.
    default_complex = "torch.complex128" if default == "torch.float64" else "torch.complex64"
    return default, default_complex, "torch.int64", "torch.bool"


def _quantizer_suffixes(tensor) -> list[str]:
    scheme = tensor.qscheme()
    if str(scheme).startswith("torch.per_tensor"):
        parameters = {"scale": tensor.q_scale(), "zero_point": tensor.q_zero_point()}
    else:
        parameters = {
            "scale": tensor.q_per_channel_scales(),
            "zero_point": tensor.q_per_channel_zero_points(),
            "axis": tensor.q_per_channel_axis(),
        }
    return [f"quantization_scheme={scheme}", *(f"{name}={value}" for name, value in parameters.items())]


def _append_suffixes(text: str, suffixes: list[str], indent: int, break_first: bool) -> str:
    # The first suffix gets two columns less than the others: PyTorch counts them twice.
    column = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in suffixes:
        if break_first or column + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
            break_first = False
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


# The values

_COMPRESSED_PARTS = {
    "sparse_csr": ("crow_indices", "col_indices", "values"),
    "sparse_csc": ("ccol_indices", "row_indices", "values"),
    "sparse_bsr": ("crow_indices", "col_indices", "values"),
    "sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


def _contents(tensor, indent: int) -> str:
    if _is_nested(tensor):
        return _nested_contents(tensor)
    tensor = tensor.detach()
    layout = _layout(tensor)
    if layout == "sparse_coo":
        return _parts({"indices": tensor._indices(), "values": tensor._values()}, indent)
    if layout in _COMPRESSED_PARTS:
        return _parts({name: getattr(tensor, name)() for name in _COMPRESSED_PARTS[layout]}, indent)
    if getattr(tensor, "is_quantized", False):
        tensor = tensor.dequantize()
    return _dense_contents(tensor, indent)


def _parts(parts: dict[str, Any], indent: int) -> str:
    texts = []
    for name, part in parts.items():
        text = f"{name}=tensor("
        text += _dense_contents(part, indent + len(text))
        if part.is_meta or part.numel() == 0:
            text += f", size={tuple(part.shape)}"
        texts.append(text + ")")
    return (",\n" + " " * indent).join(texts)


def _nested_contents(tensor) -> str:
    # Detached, then marked: the tensors inside show requires_grad=True and never the grad_fn of the unbind.
    rows = (tensor_repr(row.requires_grad_(tensor.requires_grad)) for row in tensor.detach().unbind())
    return "[\n" + ",\n".join("  " + row.replace("\n", "\n  ") for row in rows) + "\n]"


def _dense_contents(tensor, indent: int) -> str:
    if _has_no_values(tensor):
        return "..."
    if tensor.numel() == 0:
        return "[]"
    summarised = tensor.numel() > _options.threshold
    if summarised and tensor.dim() and not _options.edgeitems:
        return "[...]"
    edge = _options.edgeitems if summarised else tensor.numel()
    values = _values(tensor, edge)
    number = _complex_format(values) if tensor.dtype.is_complex else _real_format(values)
    return _brackets(values.tolist(), tensor.shape, indent, edge, number)


def _values(tensor, edge: int, dim: int = 0) -> np.ndarray:
    """The shown elements: of a dimension longer than 2 * edge only its ends, so that little is converted."""
    if dim < tensor.dim():
        size = tensor.shape[dim]
        if size <= 2 * edge:
            return _values(tensor, edge, dim + 1)
        ends = (tensor.narrow(dim, 0, edge), tensor.narrow(dim, size - edge, edge))
        return np.concatenate([_values(end, edge, dim + 1) for end in ends], axis=dim)
    # A copy, because numpy() marks the storage of its tensor as not resizable.
    values = tensor.cpu().clone().resolve_conj().resolve_neg().numpy()
    with np.errstate(invalid="ignore"):  # NumPy warns when it widens a signaling nan
        if tensor.dtype.is_complex:
            return values.astype(np.complex128)
        return values.astype(np.float64) if tensor.dtype.is_floating_point else values


class _Format(NamedTuple):
    text: Callable[[Any], str]  # how one element is written
    columns: int  # how wide the widest is


def _brackets(values: Any, shape: Sequence[int], indent: int, edge: int, number: _Format) -> str:
    """Nested lists as text; `shape` is that of the whole tensor and tells where elements were left out."""
    if not shape:
        return number.text(values)
    is_cut = shape[0] > 2 * edge
    if len(shape) == 1:
        texts = [number.text(value) for value in values]
        if is_cut:
            texts.insert(edge, " ...")
        per_line = max(1, math.floor((_options.linewidth - indent) / (number.columns + len(", "))))
        lines = [", ".join(texts[start : start + per_line]) for start in range(0, len(texts), per_line)]
        newline = ",\n"
    else:
        lines = [_brackets(value, shape[1:], indent + 1, edge, number) for value in values]
        if is_cut:
            lines.insert(edge, "...")
        newline = "," + "\n" * (len(shape) - 1)
    return "[" + (newline + " " * (indent + 1)).join(lines) + "]"


def _real_format(values: np.ndarray) -> _Format:
    if values.dtype.kind == "f":
        # Only these count: zeros, infinities and nan may be wider than the column.
        counted = values[np.isfinite(values) & (values != 0)]
        text = _float_text(counted)
    else:
        counted, text = values.ravel(), str
    columns = max((len(text(value)) for value in counted.tolist()), default=1)
    return _Format(lambda value: text(value).rjust(columns), columns)


def _complex_format(values: np.ndarray) -> _Format:
    real, imag = _real_format(values.real), _real_format(values.imag)

    def text(value: complex) -> str:
        imaginary = imag.text(value.imag).lstrip()
        sign = "" if imaginary.startswith("-") else "+"
        return f"{real.text(value.real)}{sign}{imaginary}j"

    return _Format(text, real.columns + imag.columns + len("j"))


def _float_text(counted: np.ndarray) -> Callable[[float], str]:
    """Return one notation for all elements: whole numbers with a point, fixed, or scientific."""
    scientific = _needs_exponent(np.abs(counted)) if _options.sci_mode is None else _options.sci_mode
    if scientific and counted.size:
        return f"{{:.{_options.precision}e}}".format
    if np.any(counted != np.ceil(counted)):
        return f"{{:.{_options.precision}f}}".format
    return lambda value: f"{value:.0f}" + ("." if math.isfinite(value) else "")


def _needs_exponent(magnitudes: np.ndarray) -> bool:
    if not magnitudes.size:
        return False
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    return largest > 1e8 or smallest < 1e-4 or largest / smallest > 1000
