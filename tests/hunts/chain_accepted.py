"""The differences between weft and PyTorch that random programs may meet: one list, with a reason for each.

The list only shrinks. An entry names what differs (`kind`), in which statements (`source`), and what the two libraries
said (`theirs`, `mine`): all of them are regular expressions. `where` decides about the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hunts.chain_comparison import numbers

from weft.families.array_op import array


@dataclass(frozen=True)
class Accepted:
    reason: str
    kind: str
    source: str = ""
    theirs: str = ""
    mine: str = ""
    where: Callable[[Any], bool] | None = None

    def covers(self, found: Any) -> bool:
        return (
            re.fullmatch(self.kind, found.kind) is not None
            and re.search(self.source, found.source) is not None
            and re.search(self.theirs, _said(found.theirs)) is not None
            and re.search(self.mine, _said(found.mine)) is not None
            and (self.where is None or self.where(found))
        )


def _said(value: Any) -> str:
    return f"{type(value).__name__}: {value}" if isinstance(value, Exception) else "result"


def _program_has(source: str) -> Callable[[Any], bool]:
    """Whether a statement of the program contains this text."""
    return lambda found: any(source in each.row.source for each in found.program.statements)


def _out_shares_memory(found: Any) -> bool:
    """Whether a tensor that is given as `out=` is an argument as well, or shares memory with one."""
    keys = [each.untyped_storage()._cdata for each in found.arguments if isinstance(each, torch.Tensor)]
    return "out=" in found.source and len(set(keys)) < len(keys)


def _reads_its_target(found: Any) -> bool:
    tensors = [each for each in found.arguments if isinstance(each, torch.Tensor)]
    storages = [each.untyped_storage()._cdata for each in tensors]
    return len(storages) > 1 and storages[0] in storages[1:]


def _target_is_integral(found: Any) -> bool:
    first = found.arguments[0]
    return not (first.is_floating_point() or first.is_complex())


def _writes_nothing(found: Any) -> bool:
    """Whether an index, a mask or a view names no elements."""
    given = dict(zip(found.statement.row.letters, found.arguments))
    if "i" in given and given["a"][given["i"]].numel() == 0:
        return True
    tensors = [each for each in found.arguments if isinstance(each, torch.Tensor)]
    return any(not each.numel() for each in tensors) or any(
        each.dtype is torch.bool and not each.any() for each in tensors[1:]
    )


def _differs_where_not_finite(found: Any) -> bool:
    """Whether the results agree wherever both are finite."""
    pairs = (
        [(found.theirs, found.mine)]
        if isinstance(found.theirs, torch.Tensor)
        else zip(found.theirs, found.mine)
    )
    for theirs, mine in pairs:
        one = theirs.detach().to(torch.complex128)
        other = torch.tensor(mine.tolist(), dtype=torch.complex128)
        both = one.isfinite() & other.isfinite()
        if not torch.allclose(one[both], other[both], rtol=1e-2):
            return False
    return True


def _rounds_products(found: Any) -> bool:
    """Whether results of `a * b - c * d` differ by no more than the rounding of a product."""
    theirs, mine = numbers(found.theirs.detach()), array(found.mine.detach())
    factors = [each.abs()[each.isfinite()].double().amax().item() for each in found.arguments[:2]]
    with np.errstate(all="ignore"):
        off = np.abs(theirs - mine)
    return not (off > 1e-6 * factors[0] * factors[-1]).any() and np.array_equal(
        np.isnan(theirs), np.isnan(mine)
    )


def _argument(found: Any, holds: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """Whether this holds of an element of the first argument."""
    return bool(holds(found.arguments[0].detach()).any())


def _has_nan(found: Any) -> bool:
    return _argument(found, torch.isnan)


def _input_has_nan(source: str) -> Callable[[Any], bool]:
    """Whether a statement of the program contains this text, and a leaf of the program NaN."""
    has = _program_has(source)
    return lambda found: (
        has(found) and any(bool(values.both[0].isnan().any()) for values, _ in found.program.inputs.values())
    )


def _is_rounding_of_cotangents(found: Any) -> bool:
    """Whether what is left of cotangents of 1, 2 and 3, which cancel, is no more than rounding."""
    precise = 1e-5 if found.theirs.dtype is torch.float32 else 1e-12
    return bool((found.theirs.abs() < precise).all()) and bool((found.mine.abs() < precise).all())


def _is_finite_where_theirs_is_nan(found: Any) -> bool:
    """Whether there are no other differences."""
    theirs, mine = numbers(found.theirs), array(found.mine)
    return np.array_equal(theirs, np.where(np.isnan(theirs), theirs, mine), equal_nan=True) and bool(
        (np.isfinite(mine) | np.isnan(theirs)).all()
    )


def _overflows_where_squared(found: Any) -> bool:
    return _argument(found, lambda given: given.abs() > torch.finfo(given.dtype).max ** 0.5)


def _differs_where_subnormal(found: Any) -> bool:
    """Whether results differ only where both are below the smallest normal number."""
    theirs, mine = (
        each.astype(np.float64) for each in (numbers(found.theirs.detach()), array(found.mine.detach()))
    )
    both = np.maximum(np.abs(theirs), np.abs(mine))
    tiny = torch.finfo(found.theirs.dtype).smallest_normal
    return bool((np.isclose(theirs, mine, rtol=1e-2, atol=0.0, equal_nan=True) | (both < tiny)).all())


def _all_of(*conditions: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda found: all(each(found) for each in conditions)


def _is_empty(found: Any) -> bool:
    return any(isinstance(each, torch.Tensor) and not each.numel() for each in found.arguments)


OVERLAP = "unsupported operation: some elements of the input tensor and the written-to tensor"
# Exceptions that tell of weft's inside: they are never accepted.
INTERNAL = (
    "^(Attribute|Key|Assertion|System|Name|UnboundLocal)Error|not supported between|tuple index|zip\\(|unsupported operand"
    "|NoneType|list index|object is not|takes \\d+ positional"
)
# (statement, what PyTorch tells, what weft tells)
TWO_MISTAKES = [
    (r"amax\(|amin\(", "to have non-zero size", "appears multiple times"),
    ("clamp.*out=", "clamp is not supported for complex", "can't be cast"),
    (r"cat\(.*out=", "can't be cast", "same number of dimensions|Sizes of tensors must match"),
    ("index_copy", "dimensionality must match|index should have one element", "Expected a long tensor"),
    ("index_copy_", "more than one element of the written-to tensor", "Number of indices"),
    ("index_reduce", "index out of range in self", "amax and amin are not implemented for complex"),
    ("scatter_|index_fill_", "Dimension out of range", "value cannot be converted"),
    ("vector_norm", "Dimension out of range", "dtype should be floating point or complex"),
    ("nansum|nanmean", "Dimension out of range", "not support complex"),
    ("baddbmm", "not implemented for 'Bool'", "Input dtypes must be the same"),
    (r"floor_|ceil_|trunc_", "not supported for complex", "more than one element"),
    ("embedding", "tensor has no dimensions", "must be 2-D"),
    (
        "cross_entropy",
        "Dimension out of range|expected target dtype|not implemented",
        "or more dimensions|target must have size|out of bounds",
    ),
    ("scatter_reduce", "not implemented for 'Bool'", "is out of bounds"),
    (
        "arange",
        "not implemented for",
        "unsupported range|inconsistent with step sign|converted to type double",
    ),
    ("cdist", "not implemented for", "expected scalar type"),
    ("cumprod_|cumsum_", "not implemented for", "more than one element"),
]


def _is_pair_of_mistakes(found: Any) -> bool:
    told = found.source, _said(found.theirs), _said(found.mine)
    return any(all(map(re.search, row, told)) for row in TWO_MISTAKES)


UNUSUAL = r"NotImplementedError|not implemented for|not supported for|Unsupported"

LIST = [
    Accepted("More dtypes work: PyTorch has no kernel.", "raises", theirs=UNUSUAL, mine="^result"),
    Accepted(
        "PyTorch checks nothing where there are no elements, or has no kernel for the dtype that it would need.",
        "raises", theirs="^result", mine="^NotImplementedError|expected scalar type", where=_is_empty,
    ),
    Accepted(
        "Writes whose source shares memory with the target copy the source first; PyTorch raises.",
        "raises", theirs=OVERLAP,
    ),
    Accepted(
        "Reads of the target itself see its old elements; PyTorch's kernels see some new ones.",
        "values", "masked_scatter_|scatter|index_", where=_reads_its_target,
    ),
    Accepted(
        "out= may share memory with an argument: the result is right. PyTorch overwrites what it has yet to read, or raises.",
        "values|raises|shape|strides", where=_out_shares_memory,
    ),
    Accepted("Writes through .data are counted.", "version", where=_program_has(".data")),
    Accepted(
        "After a write through .data, what was saved before it counts as overwritten.",
        "gradient: raises", theirs="^result", mine="modified by an inplace", where=_program_has(".data"),
    ),
    Accepted(
        "A view that was made without grad stays usable after its base was written to.", "unusable", theirs="",
    ),
    Accepted(
        "A view that was made without grad, or one of several, stays usable after its base was written to.",
        ".*raises", theirs="view was created|output of a function that returns multiple views|is a view and",
    ),
    Accepted(
        "Ops without a derivative refuse to write into leaves that require grad, as all others do.",
        "raises", r"logical_|bitwise_|out=|a \|= |a &= ", theirs="^result|^NotImplementedError|^RuntimeError",
        mine="a leaf Variable that requires|a view of a leaf Variable|don't support automatic differentiation|function that returns multiple views|view was created in no_grad",
    ),
    Accepted(
        "Ops without a derivative cut the history of what they overwrite; PyTorch keeps it, and gives wrong gradients.",
        "requires_grad|is_leaf|gradient: .*", where=_program_has("logical_"),
    ),
    Accepted(
        "Integer tensors never require grad; in PyTorch some writes give them a history.",
        "requires_grad|is_leaf", "_\\(|=", where=_target_is_integral,
    ),
    Accepted("narrow_copy has a derivative.", "requires_grad|is_leaf", "narrow_copy"),
    Accepted(
        "Writes in place keep what their own backward needs; PyTorch raises in backward.",
        "gradient: raises", theirs="modified by an inplace operation", mine="^result",
    ),
    Accepted(
        "A write that names no elements is not counted.", "version", where=_writes_nothing),
    Accepted(
        "Where an infinity or a NaN of a complex number leads (inf * 0, inf - inf) depends on the order of operations.",
        "(gradient: )?values of non-finite complex numbers",
    ),
    Accepted(
        "An index that is out of range is an IndexError; PyTorch's kernels raise that or RuntimeError.",
        "raises", theirs="^RuntimeError: .*(out of|INDICES|should be positive|index|setStorage)", mine="^IndexError",
    ),
    Accepted("Of two mistakes in one call the other one is told.", "raises", where=_is_pair_of_mistakes),
    Accepted(
        "Where there are no elements, PyTorch looks at no numbers, dims and dtypes that weft checks.",
        "raises", "scatter_|index_|cummin|cummax|einsum", theirs="^result",
        mine="value cannot be converted|^IndexError|expected scalar type", where=_is_empty,
    ),
    Accepted(
        "Where there are no elements, weft looks at no numbers that PyTorch checks.",
        "raises", theirs="value cannot be converted", mine="^result", where=_is_empty,
    ),
    Accepted("cross rounds both products. PyTorch's rounds one, so that parallel vectors do not give 0.", "values", "cross", where=_rounds_products),
    Accepted("PyTorch's derivative of block_diag takes an input of shape [0] for no row.", "gradient: values", where=_program_has("block_diag")),
    Accepted("uint8 masks serve writes as they serve reads.", "raises", theirs="only supports boolean masks", mine="^result"),
    Accepted("isin takes elements in any memory order.", "raises", "isin", theirs="view size is not compatible", mine="^result"),
    Accepted("diff of no elements is another result than zeros: it stays a part of the graph.", "is_leaf|requires_grad|conj", "diff", where=_is_empty),
    Accepted("out= converts to the dtype of the tensor; some of PyTorch's ops raise.", "raises", "out=", theirs="dtype|out type", mine="^result"),
    Accepted("Powers of kron may lie in any memory order; PyTorch cannot view its own.", "raises", "kron", theirs="view size is not compatible", mine="^result"),
    Accepted("tril_, index_fill_ and the like refuse elements that share memory, as all writes do.", "raises", "tril_|triu_|index_fill_|conj_physical_|nan_to_num_", theirs="^result", mine="more than one element"),
    Accepted("Assignments refuse elements that share memory, as all writes do, also where they are recorded and change nothing.", "raises", r"\] = ", theirs="^result", mine="more than one element", where=_reads_its_target),
    Accepted("PyTorch takes a view for a leaf when it writes back what was written in place.", "raises", r"\] \*= ", theirs="a leaf Variable that requires grad", mine="^result"),
    Accepted("PyTorch's out= of this storage cannot be resized.", "raises", theirs="not resizable"),
    Accepted("PyTorch fails while it words the error: it asks a tensor without dims for its sizes.", "raises", r"addmv|matmul|mv\(", theirs="Dimension specified as 0 but tensor has no dimensions", mine="size mismatch, got input"),
    Accepted("The results of reductions lie in memory of their own size; PyTorch's may be larger.", "raises", "as_strided", theirs="^result", mine="setStorage"),
    Accepted("Complex numbers have no order, also where there is but one.", "raises", "cummax|cummin", theirs="^result", mine="not implemented for 'Complex"),
    Accepted("Powers of float16 with exponents beyond its range are infinite or 0, as for other dtypes.", "raises", r"\*\*|pow", theirs="converted to type c10::Half", mine="^result"),
    Accepted("A bound that the dtype cannot hold is refused, also beside one that is NaN.", "raises", "clamp", theirs="^result", mine="value cannot be converted"),
    Accepted("PyTorch fails an assertion of its own.", ".*raises", theirs="INTERNAL ASSERT"),
    Accepted(
        "Where a product is infinite or NaN (inf * 0) depends on the order of its factors.",
        "values", "prod\\(", where=_differs_where_not_finite,
    ),
    Accepted(
        "The mean beside var or std of infinite numbers is infinite; PyTorch's running update makes it NaN in some layouts.",
        "values", "std_mean|var_mean", where=_differs_where_not_finite,
    ),
    Accepted(
        "A view that was made before its base required grad has no part in autograd. In PyTorch it requires grad as well, and "
        "gradients go to the view, never to its base.",
        "requires_grad", "requires_grad_",
    ),
    Accepted(
        "More derivatives work: PyTorch's fail for these dtypes or shapes.",
        "gradient: raises", theirs="can't be cast to the desired output type|with a bool tensor|size mismatch .got input|Found dtype|broadcast shape|input_is_complex",
        mine="^result",
    ),
    Accepted("unique along a dim sorts NaN to the end; where there is one, PyTorch's order is arbitrary.", "values", r"unique\(dim", where=_has_nan),
    Accepted(
        "hardtanh passes the gradient on to NaN; PyTorch's vector kernel stops it, the kernel for the rest does not.",
        "gradient: values", where=_input_has_nan("hardtanh"),
    ),
    Accepted("kron notices that a factor was overwritten before backward; PyTorch's gradient is wrong.", "gradient: raises", theirs="^result", mine="modified by an inplace", where=_program_has("kron")),
    Accepted(
        "The missing derivative of unique is told also behind a view that was made without grad.",
        "gradient: raises", theirs="^result", mine="the derivative for 'unique", where=lambda found: any(each.no_grad for each in found.program.statements),
    ),
    Accepted(
        "What amin and amax did not choose gets no part of the gradient, also if that is NaN: PyTorch multiplies by 0.",
        "gradient: values", where=_all_of(lambda found: _program_has("amin")(found) or _program_has("amax")(found), _is_finite_where_theirs_is_nan),
    ),
    Accepted(
        "The gradient of layer_norm is 0 but for rounding where the cotangents follow the elements.",
        "gradient: values", where=_all_of(_program_has("layer_norm"), _is_rounding_of_cotangents),
    ),
    Accepted("layer_norm of one element is 0; PyTorch's rounds the mean.", "values", "layer_norm", where=lambda found: found.arguments[0].shape[-1:] == (1,)),
    Accepted("layer_norm of numbers whose squares overflow is 0, not NaN.", "values", "layer_norm", where=_all_of(_overflows_where_squared, _differs_where_not_finite)),
    Accepted("gelu of inf is inf; that of PyTorch's vector kernel is NaN.", "values", "gelu", where=_all_of(lambda found: _argument(found, torch.isposinf), _differs_where_not_finite)),
    Accepted("Subnormal numbers are rounded as others are.", "values", "gelu|logsigmoid", where=_differs_where_subnormal),
    Accepted("The most frequent of numbers with NaN among them: NaN equals NaN, as in unique. PyTorch's order is arbitrary.", "values", r"mode\(", where=_has_nan),
    Accepted("A matrix product that overflows on the way is inf or NaN, depending on the order of its sums.", "values", " @ |mm|matmul", where=_differs_where_not_finite),
    Accepted("cross of numbers whose products overflow is NaN.", "values", "cross", where=_all_of(_overflows_where_squared, _differs_where_not_finite)),
    Accepted("logaddexp of complex numbers does not overflow on the way.", "values", "logaddexp", theirs="^result", where=_all_of(lambda found: found.theirs.is_complex(), _differs_where_not_finite)),
    Accepted("ldexp takes exponents of 64 bits; PyTorch's keeps 32 bits of them.", "values", "ldexp", where=lambda found: found.arguments[1].dtype is torch.int64 and bool((found.arguments[1] != found.arguments[1].int()).any())),
    Accepted("The order of a norm is no NaN.", "values", "norm", where=lambda found: any(type(each) is float and each != each for each in found.arguments)),
    Accepted("A norm of a single number is its size, also if its power overflows.", "values", r"norm\(", theirs="^result", where=lambda found: found.arguments[0].numel() == 1),
    Accepted(
        "Distances and powers of complex numbers with an infinite or NaN part depend on the order of operations.",
        "values", r"dist\(|\*\* b", where=_all_of(lambda found: any(each.is_complex() for each in found.arguments), _differs_where_not_finite),
    ),
    Accepted("More functions have derivatives.", "raises", theirs="does not support automatic differentiation|Autograd not support dtype", mine="^result"),
    Accepted("Losses have derivatives in their targets.", ".*raises", "_loss|backward", theirs="is not differentiable", mine="^result"),
    Accepted("The product of two conjugates is computed; PyTorch marks it as the conjugate of another.", "conj", "inner|dot|@|matmul"),
]  # fmt: skip


def accepted(found: Any) -> str | None:
    """The reason why a difference is accepted; None if it is not."""
    if re.search(INTERNAL, _said(found.mine)):
        return None
    for each in LIST:
        if each.covers(found):
            return each.reason
    return None
