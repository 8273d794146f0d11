"""Comparing values, and containers of values, in pairs: what `assert_close` and frameworks of tests are made of.

`originate_pairs` takes containers apart, and gives the two values of each item to the first class of pair that takes them.
A pair compares its two values, and raises an ErrorMeta if they do not match.
"""

from __future__ import annotations

import abc
import cmath
import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

import weft

from ..core.dtype import DType, complex128, float16, float32, float64, int64, uint16, uint32, uint64
from ..core.layout import jagged, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ..core.tensor import Tensor
from ..core.warn import user_level
from .mismatches import (
    ErrorMeta,
    Identifier,
    default_tolerances,
    get_tolerances,
    item_of,
    make_scalar_mismatch_msg,
    make_tensor_mismatch_msg,
)


class UnsupportedInputs(Exception):
    """Raised by the constructor of a Pair that does not take these values, so that the next class is tried."""


class Pair(abc.ABC):
    """Two values, and how they are compared. Each class takes the options that it knows and passes the others on.

    Subclasses convert the values in `_process_inputs`, and compare them in `compare`, which calls `_fail` on a mismatch.
    """

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (), **unknown_parameters: Any):
        self.actual = actual
        self.expected = expected
        self.id = id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs: Any, cls: type | tuple[type, ...]) -> None:
        """Refuse the values unless all of them are of the class."""
        if not all(isinstance(each, cls) for each in inputs):
            raise UnsupportedInputs

    def _fail(self, type: type[Exception], msg: str, *, id: tuple[Any, ...] = ()) -> NoReturn:
        """Raise the ErrorMeta. Before `Pair.__init__` has run, the caller gives the id."""
        raise ErrorMeta(type, msg, id=id or getattr(self, "id", ()))

    @abc.abstractmethod
    def compare(self) -> None:
        """Raise an ErrorMeta if the values do not match."""

    def extra_repr(self) -> Sequence[str | tuple[str, Any]]:
        """The options that `repr` shows: names of attributes, or names with values."""
        return ()

    def __repr__(self) -> str:
        shown = ("id", "actual", "expected", *self.extra_repr())
        fields = [(each, getattr(self, each)) if isinstance(each, str) else each for each in shown]
        lines = (f"    {name}={value!s}," for name, value in fields)
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])


class ObjectPair(Pair):
    """Any two objects, compared by ==."""

    def compare(self) -> None:
        try:
            equal = self.actual == self.expected
        except Exception as error:
            message = f"{self.actual} == {self.expected} failed with:\n{error}."
            raise ErrorMeta(ValueError, message, id=self.id) from error
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """Two values of which at least one is None."""

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any):
        if actual is not None and expected is not None:
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"None mismatch: {self.actual} is not {self.expected}")


class BooleanPair(Pair):
    """Two bools, Python's or NumPy's."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (), **other_parameters: Any):
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return (bool, np.bool_)

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...]) -> tuple[bool, bool]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_bool(actual, id=id), self._to_bool(expected, id=id)

    def _to_bool(self, bool_like: Any, *, id: tuple[Any, ...]) -> bool:
        if isinstance(bool_like, (bool, np.bool_)):
            return bool(bool_like)
        raise ErrorMeta(TypeError, f"Unknown boolean type {type(bool_like)}.", id=id)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


class NumberPair(Pair):
    """Two numbers, Python's or NumPy's. rtol and atol are those of int64, float64 and complex128 unless given."""

    _TYPE_TO_DTYPE: dict[type, DType] = {int: int64, float: float64, complex: complex128}
    _NUMBER_TYPES = (int, float, complex)

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: tuple[Any, ...] = (),
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_dtype: bool = False,
        **other_parameters: Any,
    ):
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)
        dtypes = (self._TYPE_TO_DTYPE[type(each)] for each in (actual, expected))
        self.rtol, self.atol = get_tolerances(*dtypes, rtol=rtol, atol=atol, id=id)
        self.equal_nan = equal_nan
        self.check_dtype = check_dtype

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return (*self._NUMBER_TYPES, np.number)

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...]) -> tuple[complex, complex]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_number(actual, id=id), self._to_number(expected, id=id)

    def _to_number(self, number_like: Any, *, id: tuple[Any, ...]) -> complex:
        if isinstance(number_like, np.number):
            return number_like.item()
        if isinstance(number_like, self._NUMBER_TYPES):
            return number_like
        raise ErrorMeta(TypeError, f"Unknown number type {type(number_like)}.", id=id)

    def compare(self) -> None:
        actual, expected = self.actual, self.expected
        if self.check_dtype and type(actual) is not type(expected):
            self._fail(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.")
        if actual == expected or (self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
            return
        distance = abs(actual - expected)
        if not cmath.isfinite(distance) or distance > self.atol + self.rtol * abs(expected):
            message = make_scalar_mismatch_msg(actual, expected, rtol=self.rtol, atol=self.atol)
            self._fail(AssertionError, message)

    def extra_repr(self) -> Sequence[str]:
        return ("rtol", "atol", "equal_nan", "check_dtype")


# Layout of compressed sparse tensors -> its name in messages, and the methods that give its indices.
_COMPRESSED = {
    sparse_csr: ("CSR", ("crow_indices", "col_indices")),
    sparse_csc: ("CSC", ("ccol_indices", "row_indices")),
    sparse_bsr: ("BSR", ("crow_indices", "col_indices")),
    sparse_bsc: ("BSC", ("ccol_indices", "row_indices")),
}
_LAYOUTS = {strided, jagged, sparse_coo, *_COMPRESSED}


class TensorLikePair(Pair):
    """Two tensors, or two values of one type that can be made tensors. `assert_close` explains the options."""

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: tuple[Any, ...] = (),
        allow_subclasses: bool = True,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_device: bool = True,
        check_dtype: bool = True,
        check_layout: bool = True,
        check_stride: bool = False,
        **other_parameters: Any,
    ):
        actual, expected = self._process_inputs(actual, expected, id=id, allow_subclasses=allow_subclasses)
        super().__init__(actual, expected, id=id, **other_parameters)
        self.rtol, self.atol = get_tolerances(actual, expected, rtol=rtol, atol=atol, id=id)
        self.equal_nan = equal_nan
        self.check_device = check_device
        self.check_dtype = check_dtype
        self.check_layout = check_layout
        self.check_stride = check_stride

    def _process_inputs(
        self, actual: Any, expected: Any, *, id: tuple[Any, ...], allow_subclasses: bool
    ) -> tuple[Tensor, Tensor]:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or (not allow_subclasses and type(actual) is not type(expected)):
            self._inputs_not_supported()
        actual, expected = self._to_tensor(actual), self._to_tensor(expected)
        for each in (actual, expected):
            self._check_supported(each, id=id)
        return actual, expected

    def _to_tensor(self, tensor_like: Any) -> Tensor:
        if isinstance(tensor_like, Tensor):
            return tensor_like
        try:
            return weft.as_tensor(tensor_like)
        except Exception:
            self._inputs_not_supported()

    def _check_supported(self, tensor: Tensor, *, id: tuple[Any, ...]) -> None:
        if tensor.layout not in _LAYOUTS:
            raise ErrorMeta(ValueError, f"Unsupported tensor layout {tensor.layout}", id=id)

    def compare(self) -> None:
        self._compare_attributes(self.actual, self.expected)
        if "meta" not in (self.actual.device.type, self.expected.device.type):
            self._compare_values(*self._equalize_attributes(self.actual, self.expected))

    def _compare_attributes(self, actual: Tensor, expected: Tensor) -> None:
        for name, ours, theirs in self._attributes(actual, expected):
            if ours != theirs:
                self._fail(
                    AssertionError, f"The values for attribute '{name}' do not match: {ours} != {theirs}."
                )

    def _attributes(self, actual: Tensor, expected: Tensor) -> Iterator[tuple[str, Any, Any]]:
        """The attributes that have to be equal, in the order in which they are compared."""
        yield "shape", actual.shape, expected.shape
        yield "is_quantized", actual.is_quantized, expected.is_quantized
        if actual.is_quantized:
            yield "qscheme()", actual.qscheme(), expected.qscheme()
        if self.check_layout:
            yield "layout", actual.layout, expected.layout
        if self.check_stride and actual.layout is expected.layout is strided:
            yield "stride()", actual.stride(), expected.stride()
        if self.check_device:
            yield "device", actual.device, expected.device
        if self.check_dtype:
            yield "dtype", actual.dtype, expected.dtype

    def _equalize_attributes(self, actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
        """The two tensors on one device, of one dtype and one layout."""
        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        if actual.dtype is not expected.dtype:
            common = weft.promote_types(_comparable(actual.dtype), _comparable(expected.dtype))
            actual, expected = actual.to(common), expected.to(common)
        if actual.layout is not expected.layout:
            actual, expected = (
                each if each.layout is strided else each.to_dense() for each in (actual, expected)
            )
        return actual, expected

    def _compare_values(self, actual: Tensor, expected: Tensor) -> None:
        if actual.is_quantized:
            name: Identifier = "Quantized tensor-likes"
            self._compare_closeness(actual.dequantize(), expected.dequantize(), name)
        elif actual.layout is sparse_coo:
            self._compare_coo(actual, expected)
        elif actual.layout in _COMPRESSED:
            self._compare_compressed(actual, expected)
        elif actual.layout is jagged:
            self._compare_closeness(actual.values(), expected.values())
        else:
            if actual.dtype.is_floating_point and actual.dtype.itemsize == 1 and (self.rtol or self.atol):
                self._fail(
                    AssertionError,
                    f"Rtol={self.rtol} and atol={self.atol} are not supported for bitwise comparison of low dimensional "
                    "floats. Please use rtol=0.0 and atol=0.0.",
                )
            self._compare_closeness(actual, expected)

    def _compare_coo(self, actual: Tensor, expected: Tensor) -> None:
        self._compare_counts(
            "sparse dimensions in sparse COO tensors", actual.sparse_dim(), expected.sparse_dim()
        )
        self._compare_counts("specified values in sparse COO tensors", actual._nnz(), expected._nnz())
        self._compare_regular_values_equal(
            actual._indices(), expected._indices(), identifier="Sparse COO indices"
        )
        self._compare_closeness(actual._values(), expected._values(), "Sparse COO values")

    def _compare_compressed(self, actual: Tensor, expected: Tensor) -> None:
        kind, methods = _COMPRESSED[actual.layout]
        self._compare_counts(f"specified values in sparse {kind} tensors", actual._nnz(), expected._nnz())
        for method in methods:  # the indices of one tensor may be int32, and those of the other int64
            indices = (getattr(each, method)().to(int64) for each in (actual, expected))
            self._compare_regular_values_equal(*indices, identifier=f"Sparse {kind} {method}")
        self._compare_closeness(actual.values(), expected.values(), f"Sparse {kind} values")

    def _compare_counts(self, what: str, actual: int, expected: int) -> None:
        if actual != expected:
            self._fail(AssertionError, f"The number of {what} does not match: {actual} != {expected}")

    def _compare_closeness(self, actual: Tensor, expected: Tensor, identifier: Identifier = None) -> None:
        """Compare with the tolerances of this pair."""
        self._compare_regular_values_close(
            actual,
            expected,
            rtol=self.rtol,
            atol=self.atol,
            equal_nan=self.equal_nan,
            identifier=identifier,
        )

    def _compare_regular_values_equal(
        self, actual: Tensor, expected: Tensor, *, equal_nan: bool = False, identifier: Identifier = None
    ) -> None:
        self._compare_regular_values_close(
            actual, expected, rtol=0.0, atol=0.0, equal_nan=equal_nan, identifier=identifier
        )

    def _compare_regular_values_close(
        self,
        actual: Tensor,
        expected: Tensor,
        *,
        rtol: float,
        atol: float,
        equal_nan: bool,
        identifier: Identifier = None,
    ) -> None:
        matches = weft.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
        if matches.all():
            return
        if actual.dim():
            message = make_tensor_mismatch_msg(
                actual.detach(), expected.detach(), matches, rtol=rtol, atol=atol, identifier=identifier
            )
        else:
            message = make_scalar_mismatch_msg(
                actual.item(), expected.item(), rtol=rtol, atol=atol, identifier=identifier
            )
        self._fail(AssertionError, message)

    def extra_repr(self) -> Sequence[str]:
        return ("rtol", "atol", "equal_nan", "check_device", "check_dtype", "check_layout", "check_stride")


def _comparable(dtype: DType) -> DType:
    """int64 for the wide unsigned dtypes, which do not promote with signed ones."""
    return int64 if dtype in (uint16, uint32, uint64) else dtype


def originate_pairs(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]],
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    id: tuple[Any, ...] = (),
    **options: Any,
) -> list[Pair]:
    """A pair for each item of two nested containers, or one pair for two other values.

    Raises: ErrorMeta of an AssertionError if lengths or keys differ, of a TypeError if no class takes two values.
    """
    if _is_strided_nested(actual) and _is_strided_nested(expected):
        actual, expected = actual.unbind(), expected.unbind()
    keys = _common_keys(actual, expected, sequence_types, mapping_types, id)
    if keys is None:
        return [_originate_pair(actual, expected, pair_types, id, options)]
    pairs = []
    for key in keys:
        pairs += originate_pairs(
            actual[key],
            expected[key],
            pair_types=pair_types,
            sequence_types=sequence_types,
            mapping_types=mapping_types,
            id=(*id, key),
            **options,
        )
    return pairs


def _common_keys(
    actual: Any,
    expected: Any,
    sequence_types: tuple[type, ...],
    mapping_types: tuple[type, ...],
    id: tuple[Any, ...],
) -> Iterable[Any] | None:
    """The keys or positions of the items of two containers; None if these are no containers of one kind."""
    both = (actual, expected)
    # A string is a sequence of strings, which has no end.
    if all(isinstance(each, sequence_types) and not isinstance(each, str) for each in both):
        if len(actual) != len(expected):
            message = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise ErrorMeta(AssertionError, message, id=id)
        return range(len(actual))
    if not all(isinstance(each, mapping_types) for each in both):
        return None
    ours, theirs = set(actual.keys()), set(expected.keys())
    if ours != theirs:
        raise ErrorMeta(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(theirs - ours)}\n"
            f"Additional keys in the actual mapping: {sorted(ours - theirs)}",
            id=id,
        )
    with contextlib.suppress(Exception):  # keys that have no order; that of tensors is one of their elements
        return sorted(ours)
    return ours


def _is_strided_nested(value: Any) -> bool:
    """Whether this is a tensor whose sizes only its components have."""
    return isinstance(value, Tensor) and value.is_nested and value.layout is strided


def _originate_pair(
    actual: Any, expected: Any, pair_types: Sequence[type[Pair]], id: tuple[Any, ...], options: Any
) -> Pair:
    for pair_type in pair_types:
        try:
            return pair_type(actual, expected, id=id, **options)
        except UnsupportedInputs:
            continue
        except ErrorMeta:
            raise
        except Exception as error:
            raise RuntimeError(
                f"Originating a {pair_type.__name__}() at item {item_of(id)} with\n\n{type(actual).__name__}(): {actual}\n\n"
                f"and\n\n{type(expected).__name__}(): {expected}\n\nresulted in the unexpected exception above."
            ) from error
    message = f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
    raise ErrorMeta(TypeError, message, id=id)


def not_close_error_metas(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]] = (ObjectPair,),
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    **options: Any,
) -> list[ErrorMeta]:
    """The mismatches of all pairs of two nested containers."""
    __tracebackhide__ = True  # pytest leaves the frame out of its report
    try:
        pairs = originate_pairs(
            actual,
            expected,
            pair_types=pair_types,
            sequence_types=sequence_types,
            mapping_types=mapping_types,
            **options,
        )
    except ErrorMeta as mismatch:
        raise mismatch.to_error() from None
    mismatches = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as mismatch:
            # Its traceback refers to this frame, whose list refers to it: a cycle that keeps the tensors alive.
            mismatches.append(mismatch.with_traceback(None))
        except Exception as error:
            raise RuntimeError(
                f"Comparing\n\n{pair}\n\nresulted in the unexpected exception above."
            ) from error
    return mismatches


def _unwrap_dtensor_for_comparison(actual: Any, expected: Any) -> tuple[Any, Any]:
    """The two values, because weft has no tensors that lie on several ranks."""
    return actual, expected


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Nothing, if |actual - expected| <= atol + rtol * |expected| everywhere. Sequences and mappings are compared by item.

    rtol and atol depend on the dtype unless given. msg: what the error says instead, or makes of the usual message.
    Raises: AssertionError if they are not close or differ in what is checked; ValueError if only one of rtol and
    atol is given; TypeError for what cannot be compared.

    >>> import weft as torch
    >>> torch.testing.assert_close(torch.ones(2), torch.ones(2) + 1e-7)
    """
    __tracebackhide__ = True
    mismatches = not_close_error_metas(
        actual,
        expected,
        pair_types=(NonePair, BooleanPair, NumberPair, TensorLikePair),
        allow_subclasses=allow_subclasses,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    if mismatches:
        raise mismatches[0].to_error(msg)


# dtype -> (rtol, atol)
_OLD_TOLERANCES = {float16: (1e-3, 1e-3), float32: (1e-4, 1e-5), float64: (1e-5, 1e-8)}


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """`assert_close` of values alone, by its old name; deprecated."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please use "
        "`torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=user_level(),
    )
    actual = actual if isinstance(actual, Tensor) else weft.tensor(actual)
    expected = expected if isinstance(expected, Tensor) else weft.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(actual, expected, dtype_precisions=_OLD_TOLERANCES)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )
