"""New tensors of a given size: uninitialised, constant, like another tensor, diagonal."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ...core import device as places
from ...core import dtype as dt
from ...core.arguments import boolean, check_first
from ...core.checking import check_tensor
from ...core.device import as_device, device
from ...core.dtype import LEGACY_NAMES, PYTHON_DTYPES, DType, bool_, default_complex, get_default_dtype, int64
from ...core.filling import when_filling_changes
from ...core.layout import Layout, MemoryFormat, contiguous_format, preserve_format, strided
from ...core.nearest import unknown_keyword
from ...core.outputs import check_unrecorded, resize_out
from ...core.plans import PlanCache
from ...core.public import public
from ...core.recording import tape
from ...core.spec import Spec, contiguous_spec, make_spec, strides_in_order
from ...core.symbols import Symbol
from ...core.tensor import Tensor, as_new, make, new_hooks
from ...core.tensor import empty as empty_of
from ...families.calls import is_operand
from ...families.map import FILL, scalar_arguments
from ..assembly.copying import formatted_spec
from ..assembly.filling import fill_
from .uninitialized import fill_rest, filler

# ---- Arguments -------------------------------------------------------------------------------------------------------


def size_arguments(sizes: tuple, name: str) -> tuple[int, ...]:
    """Read (2, 3), ((2, 3),), ([2, 3],) or (Size,) as a tuple of ints.

    Raises: TypeError for sizes that are not ints; RuntimeError for negative sizes.
    """
    if not sizes:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    for each in sizes:
        if type(each) is not int or not 0 <= each < 2**63:
            break
    else:
        return sizes  # the usual case needs no further look
    if isinstance(sizes[0], (tuple, list)):
        if len(sizes) > 1:
            raise TypeError(f"{name}() takes 1 positional argument but {len(sizes)} were given")
        sizes = tuple(sizes[0])
    elif len(sizes) == 1 and (isinstance(sizes[0], bool) or not hasattr(sizes[0], "__index__")):
        raise TypeError(
            f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(sizes[0]).__name__}"
        )
    check_first(sizes, name, "size")
    result = tuple([_size(size, position, name) for position, size in enumerate(sizes, 1)])
    if any([size < 0 for size in result]):
        if name == "zeros":
            raise RuntimeError(f"zeros: Dimension size must be non-negative. Got {list(result)}")
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(result)}: {list(result)}")
    return result


def size_argument(size: Any, name: str) -> tuple[int, ...]:
    """The sizes of a function that takes them as one tuple only."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}"
        )
    return size_arguments((size,), name)


def _size(value: Any, position: int, name: str) -> int:
    try:
        size: Any = value if type(value) is Symbol else operator.index(value)
    except TypeError:
        reason = f"type must be tuple of ints,but got {type(value).__name__}"
    else:
        if -(2**63) <= size < 2**63:
            return size
        reason = "Overflow when unpacking long long"
    raise TypeError(
        f"{name}(): argument 'size' failed to unpack the object at pos {position} with error \"{reason}\""
    )


def check_dtype(dtype: Any, name: str = "") -> DType | None:
    """Return the DType that the argument names: a dtype, Python's float, int, bool or complex, or None."""
    if dtype is None or isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, type) and dtype in PYTHON_DTYPES:
        return PYTHON_DTYPES[dtype]
    hint = f" (write torch.{dtype})" if dt.is_dtype_name(dtype) else ""
    raise TypeError(
        f"{name}(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}{hint}".removeprefix(
            "(): "
        )
    )


# Layout -> the function (sizes, layout, dtype, device) that makes a tensor of it without elements. `weft/layouts` fills it.
other_layouts: dict[Layout | None, Callable] = {}


class _Naming:
    """The function that gives names to the dims of a new tensor, (tensor, names) -> tensor. `weft/layouts` sets it."""

    function: Callable[[Tensor, Any], Tensor]


naming = _Naming()


def check_layout(layout: Layout | None) -> None:
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"layout {layout!r} is not available in this version of weft")


def check_storage_size(spec: Spec) -> Spec:
    """Raises: RuntimeError for a tensor of more bytes than an address has."""
    if max(spec.span, spec.numel) * spec.dtype.itemsize >= 2**63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(spec.shape)}")
    return spec


def check_room(*sizes: int, dtype: DType) -> None:
    """Raises: RuntimeError if there is no memory for the result. NumPy's error would state the size of a temporary."""
    empty_of(check_storage_size(contiguous_spec(sizes, dtype)))


def check_out_options(out: Tensor, dtype: DType | None, layout: Layout | None, device: Any) -> None:
    """Raises: RuntimeError for options of a constructor that contradict its `out`."""
    check_tensor(out, "out", "out")
    spec = out.spec
    if dtype is not None and dtype is not spec.dtype:
        raise RuntimeError(
            f"dtype {LEGACY_NAMES[dtype]} does not match dtype of out parameter ({LEGACY_NAMES[spec.dtype]})"
        )
    check_layout(layout)
    if device is not None and as_device(device) is not spec.device:
        raise RuntimeError(
            f"device type {as_device(device).type} does not match device type of out parameter ({spec.device.type})"
        )


def new(
    sizes: Sequence[int], dtype: DType | None, where: Any, requires_grad: bool = False, layout: Any = None
) -> Tensor:
    """An uninitialised contiguous tensor. All constructors with sizes call this function."""
    check_layout(layout)
    dtype = check_dtype(dtype) or get_default_dtype()
    return with_grad(filled(_specs[tuple(sizes), dtype, as_device(where)], None), requires_grad)


def with_grad(result: Tensor, requires_grad: bool, names: Any = None) -> Tensor:
    """A new tensor that asks for its gradient, if wanted, and whose dims have these names, if given."""
    if names is not None:
        result = naming.function(result, names)
    if requires_grad is False or not boolean(requires_grad, "tensor", "requires_grad"):
        return result
    if result.spec.dtype.category < dt.FLOAT:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return tape.require_grad(result)


def resized_out(out: Tensor, sizes, name: str, dtype: DType | None, layout: Any, device: Any) -> Tensor:
    """The `out` of a constructor, of this size; its other options must not contradict it."""
    check_out_options(out, dtype, layout, device)
    check_unrecorded(name, (out,))
    if out.spec.shape != sizes:
        resize_out(out, sizes, name)
    return out


# ---- empty, zeros, ones ----------------------------------------------------------------------------------------------


def _sized(name: str, value: Any) -> Callable:
    """A constructor (*size, out, dtype, layout, device, requires_grad) that fills with `value`."""

    rows = PlanCache(lambda size, dtype, where: (_sized_spec(name, (size,), dtype, where), value))

    @public("function", name=name, words={"content": _CONTENT[value]})
    def constructor(*size: Any, **options: Any) -> Tensor:
        """Return a tensor of the given size{content}.

        Sizes are ints or one tuple. dtype: the default float unless given. `out` is resized to fit.

        >>> import weft as torch
        >>> torch.{name}(2, 3).shape
        torch.Size([2, 3])
        """
        dtype: Any = dt._default
        if not options and len(size) == 1 and type(size[0]) is int:
            return filled(*rows[size[0], dtype, places._default])
        if options and (len(options) > 1 or type(dtype := options.get("dtype")) is not DType):
            return _sized_in_full(name, value, size, **options)
        sizes = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
        for each in sizes:
            if type(each) is not int:  # 2.0 and True would find the plans of 2 and 1
                return _sized_in_full(name, value, size, **options)
        if not size:
            return _sized_in_full(name, value, size, **options)
        return filled(_sized_spec(name, tuple(sizes), dtype, places._default), value)

    return constructor


def _sized_spec(name: str, sizes: tuple[int, ...], dtype: DType, where: device) -> Spec:
    try:
        return _specs[sizes, dtype, where]
    except RuntimeError:
        size_arguments(sizes, name)  # says it with the name of the constructor
        raise


def _checked_spec(sizes: tuple[int, ...], dtype: DType, where: device) -> Spec:
    """Raises: RuntimeError for negative sizes and for more bytes than an address has."""
    return check_storage_size(contiguous_spec(size_arguments((sizes,), "empty"), dtype, where))


_specs = PlanCache(_checked_spec, with_sizes=True)


def filled(spec: Spec, value: Any) -> Tensor:
    """Return a new dense tensor filled with 0 or 1, uninitialized if None: planned once for each spec."""
    allocate, launch, arguments = filled_plans[spec, value]
    storage = allocate()
    if launch is not None:
        launch.entry(storage.ptr, *arguments, launch.meta, launch.count)
    result = make(storage, 0, spec)
    return new_hooks[0](result) if new_hooks else result


def _filled_plan(spec: Spec, value: Any):
    """The function that allocates a tensor of this spec, the launch that fills it, and the arguments of the launch."""
    if value is None:
        value = filler(spec.dtype)
    launch = None if value is None or not spec.numel else FILL.write_plans[spec, type(value)]
    return spec.device.backend.allocator(spec.nbytes), launch, scalar_arguments(value or 0, spec.dtype)


filled_plans = PlanCache(_filled_plan)
when_filling_changes.append(filled_plans.clear)


def _sized_in_full(
    name: str,
    value: Any,
    positional: tuple,
    *,
    size: Any = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    **others: Any,
) -> Tensor:
    memory_format = others.pop("memory_format", None) if name == "empty" else None
    names = others.pop("names", None)
    if others:
        raise unknown_keyword(name, next(iter(others)), _OPTIONS)
    sizes = size_arguments(positional if size is None else (size,), name)
    dtype = check_dtype(dtype, name)
    if out is not None:
        target = resized_out(out, sizes, name, dtype, layout, device)
        value = filler(target.spec.dtype) if value is None else value
        return with_grad(target if value is None else fill_(target, value), requires_grad)
    if layout in other_layouts and not value:
        return with_grad(other_layouts[layout](sizes, layout, dtype, device), requires_grad)
    if memory_format is None or memory_format is contiguous_format:
        result = new(sizes, dtype, device, False, layout)
    else:
        result = _formatted(sizes, memory_format, dtype, device)
    result = result if value is None else as_new(fill_(result, value))
    return with_grad(result, requires_grad, names)


_OPTIONS = (
    "size",
    "out",
    "dtype",
    "layout",
    "device",
    "requires_grad",
    "pin_memory",
    "names",
    "memory_format",
)


def _formatted(sizes, memory_format: MemoryFormat, dtype: DType | None, where: Any) -> Tensor:
    if memory_format is preserve_format:
        raise RuntimeError("unsupported memory format Preserve: a new tensor has no strides to preserve")
    plain = contiguous_spec(sizes, dtype or get_default_dtype(), as_device(where))
    return filled(formatted_spec(check_storage_size(plain), memory_format, plain.dtype, plain.device), None)


_CONTENT = {None: " with uninitialised memory", 0: " filled with 0", 1: " filled with 1"}
empty = _sized("empty", None)
zeros = _sized("zeros", 0)
ones = _sized("ones", 1)


@public("function")
def full(
    size: Any,
    fill_value: Any,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    names: Any = None,
) -> Tensor:
    """Return a tensor of the given size filled with a number; dtype: that of the number unless given. names: of the dims.

    Raises: RuntimeError if the dtype cannot hold the number.

    >>> import weft as torch
    >>> torch.full((2,), 7), torch.full((2,), 0.5)
    (tensor([7, 7]), tensor([0.5000, 0.5000]))
    """
    sizes = size_argument(size, "full")
    fill_value = number_argument(fill_value, "full", "fill_value", 2)
    dtype = check_dtype(dtype, "full")
    if out is not None:
        return fill_(resized_out(out, sizes, "full", dtype, layout, device), fill_value)
    result = as_new(
        fill_(new(sizes, dtype or dtype_of_number(fill_value), device, False, layout), fill_value)
    )
    return with_grad(result, requires_grad, names)


def number_argument(value: Any, name: str, argument: str, position: int) -> Any:
    """Return a Python number from one: NumPy's, or a 0-dim tensor's.

    Raises: TypeError for everything else.
    """
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise OverflowError("int too big to convert")
    if isinstance(value, (int, float, complex)):
        return value
    if is_operand(value) and value.ndim == 0:
        return value.item()
    raise TypeError(
        f"{name}(): argument '{argument}' (position {position}) must be Number, not {type(value).__name__}"
    )


def dtype_of_number(value: Any) -> DType:
    """What a Python number becomes: bool, int64, the default float or the default complex."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    return get_default_dtype() if isinstance(value, float) else default_complex()


# ---- Like another tensor ---------------------------------------------------------------------------------------------


def _like(name: str, value: Any) -> Callable:
    @public("function", name=name, words={"content": _CONTENT[value]})
    def constructor(
        input: Tensor,
        *,
        dtype: DType | None = None,
        layout: Layout | None = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool | None = False,
        memory_format: MemoryFormat = preserve_format,
    ) -> Tensor:
        """Return a tensor of the size, dtype and device of `input`{content}."""
        check_tensor(input, name)
        if layout in other_layouts and not value:
            made = other_layouts[layout](input.shape, layout, dtype or input.dtype, device or input.device)
            return with_grad(made, requires_grad)
        return with_grad(
            filled(_spec_like(input, dtype, layout, device, memory_format), value), requires_grad
        )

    return constructor


def empty_as(
    input: Tensor, dtype=None, layout=None, where=None, requires_grad=False, memory_format=preserve_format
):
    """Return an uninitialised tensor like `input`, dense, in its memory order."""
    return with_grad(filled(_spec_like(input, dtype, layout, where, memory_format), None), requires_grad)


def _spec_like(
    input: Tensor, dtype: Any, layout: Layout | None, where: Any, memory_format: MemoryFormat | None
) -> Spec:
    check_layout(layout)
    spec = input.spec
    device = spec.device if where is None else as_device(where)
    return formatted_spec(spec, memory_format or preserve_format, check_dtype(dtype) or spec.dtype, device)


empty_like = _like("empty_like", None)
zeros_like = _like("zeros_like", 0)
ones_like = _like("ones_like", 1)


@public("function")
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    memory_format: MemoryFormat = preserve_format,
) -> Tensor:
    """Return a tensor of the size, dtype and device of `input` filled with a number."""
    check_tensor(input, "full_like")
    fill_value = number_argument(fill_value, "full_like", "fill_value", 2)
    result = empty_as(input, dtype, layout, device, False, memory_format)
    return with_grad(as_new(fill_(result, fill_value)), requires_grad)


def _new_method(name: str, value: Any) -> None:
    @public("method", name=name, words={"content": _CONTENT[value]})
    def method(
        self: Tensor,
        *positional: Any,
        size: Any = None,
        dtype: DType | None = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Layout | None = None,
        pin_memory: bool | None = False,
    ) -> Tensor:
        """Return a tensor of the given size and, unless given, this dtype and device{content}."""
        sizes = size_arguments(positional if size is None else (size,), name)
        check_layout(layout)
        spec = self.spec
        where = spec.device if device is None else as_device(device)
        return with_grad(filled(_specs[sizes, check_dtype(dtype) or spec.dtype, where], value), requires_grad)


_new_method("new_empty", None)
_new_method("new_zeros", 0)
_new_method("new_ones", 1)


@public("method")
def new_full(
    self: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Layout | None = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """A tensor of the given size filled with a number; dtype and device are this tensor's unless given."""
    sizes = size_argument(size, "new_full")
    fill_value = number_argument(fill_value, "new_full", "fill_value", 2)
    spec = self.spec
    result = new(sizes, dtype or spec.dtype, spec.device if device is None else device, False, layout)
    return with_grad(as_new(fill_(result, fill_value)), requires_grad)


# ---- Strides ---------------------------------------------------------------------------------------------------------


@public("function")
def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    names: Any = None,
) -> Tensor:
    """Return an uninitialised tensor of the given size and strides (in elements).

    Raises: RuntimeError if there are not as many strides as sizes, or one is negative.

    >>> import weft as torch
    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    check_layout(layout)
    sizes, strides = tuple(size), tuple(stride)
    if len(sizes) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(sizes)}) must match dimensionality of strides ({len(strides)})"
        )
    size_arguments((sizes,), "empty_strided")
    if any(step < 0 for step in strides):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(sizes)} and strides={list(strides)}: strides must "
            "not be negative"
        )
    spec = make_spec(sizes, strides, check_dtype(dtype) or get_default_dtype(), as_device(device))
    check_storage_size(spec)
    result = make(spec.device.backend.allocate(spec.span * spec.dtype.itemsize), 0, spec)
    fill_rest(result._storage, 0, spec.dtype)
    return with_grad(result, requires_grad, names)


@public("method")
def new_empty_strided(
    self: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Layout | None = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """An uninitialised tensor of the given size and strides; dtype and device are this tensor's unless given."""
    spec = self.spec
    return empty_strided(
        size,
        stride,
        dtype=dtype or spec.dtype,
        device=spec.device if device is None else device,
        requires_grad=requires_grad,
        layout=layout,
    )


@public("function")
def empty_permuted(
    size: Any,
    physical_layout: Sequence[int],
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
) -> Tensor:
    """An uninitialised dense tensor whose dimensions lie in memory in the order `physical_layout`, outermost first.

    >>> import weft as torch
    >>> torch.empty_permuted((2, 3, 4), (2, 0, 1)).stride()
    (3, 1, 6)
    """
    sizes = size_argument(size, "empty_permuted")
    order = tuple(physical_layout)
    if len(order) != len(sizes):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(sizes)} is not equal to len(physical_layout) = {len(order)}"
        )
    for position, dim in enumerate(order):
        if not 0 <= dim < len(sizes):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(sizes) - 1}, but got {dim} at index "
                f"{position}).  NB: negative dims not currently supported; file an issue if you want it."
            )
    if len(set(order)) != len(order):
        raise RuntimeError(f"Duplicate dim not allowed: {order}")
    return empty_strided(
        sizes,
        strides_in_order(sizes, order),
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


# ---- The identity matrix ---------------------------------------------------------------------------------------------


@public("function")
def eye(
    n: int,
    m: int | None = None,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    names: Any = None,
) -> Tensor:
    """An [n, m] matrix with ones on the diagonal and zeros elsewhere; m is n unless given.

    >>> import weft as torch
    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    sizes = (_length(n, "n"), _length(n if m is None else m, "m"))
    if out is None:
        check_layout(layout)
        own = _specs[sizes, check_dtype(dtype, "eye") or get_default_dtype(), as_device(device)]
        result = filled(own, 0)
    else:
        result = zeros(sizes, out=out, dtype=dtype, layout=layout, device=device)
    fill_(result.diagonal(), 1)
    return (
        with_grad(as_new(result), requires_grad, names) if out is None else with_grad(result, requires_grad)
    )


def _length(value: Any, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(
            f"eye(): argument '{name}' (position {'nm'.index(name) + 1}) must be int, not {type(value).__name__}"
        )
    length = operator.index(value)
    if length < 0:
        raise RuntimeError(f"{name} must be greater or equal to 0, got {length}")
    return length
