"""`gradcheck` and `gradgradcheck`: compare derivatives with finite differences.

A complex number counts as two real numbers. For a result y and an input x, the Jacobian has a row for each real number in y
and a column for each real number in x. Backward with the cotangent v computes the gradient of Re(conj(v) y), which is the
row of the Jacobian for v.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.above import above
from ..core.dtype import FLOAT, float32
from ..core.grad_mode import no_grad
from ..core.layout_calls import rules_of
from ..core.overrides import handles_dispatch
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..interop.numpy import from_numpy
from ..ops.assembly.joining import stack
from ..ops.creation.creation import ones_like, zeros_like
from ..ops.views.complex_views import view_as_real
from ..ops.views.slicing import as_strided
from . import forward_ad
from .backward import grad
from .gradcheck_properties import (
    GradcheckError,
    as_tuple,
    asks_for_gradient,
    check_batched,
    check_batched_forward,
    check_missing_cotangents,
    check_missing_tangents,
    check_zero_cotangents,
    dual_inputs,
    is_float,
    outputs_of,
    random_direction,
    tangent_of,
)


def gradcheck(
    func: Callable,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the derivatives of `func` in the inputs that require grad agree with central differences.

    Inputs should be of double precision. Of sparse inputs the elements vary, with `masked` those that have an entry. fast_mode compares
    one random combination of rows and columns only. check_undefined_grad: results without cotangents, and inputs without tangents.
    check_batched_grad, check_batched_forward_grad: derivatives of a batch, by `vmap`.

    Raises: GradcheckError where they differ, unless `raise_exception` is False; ValueError if no input requires grad.

    >>> import weft as torch
    >>> x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(torch.sin, (x,))
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    try:
        values = as_tuple(inputs)
        if rules_of(values):
            func, values = above("layouts.leaves").of_values(func, values, bool(masked))
        _check_inputs(values)
        checked = [k for k, x in enumerate(values) if asks_for_gradient(x)]
        if not outputs_of(func, values):
            _check_constant(func, values, checked, eps)
            return True
        compare = _compare_fast if fast_mode else _compare_all
        if check_backward_ad:
            _check_deterministic(func, values, checked, nondet_tol)
            compare(func, values, checked, eps, atol, rtol, False)
            if check_grad_dtypes:
                _check_dtypes(func, values, checked)
        if check_forward_ad:
            compare(func, values, checked, eps, atol, rtol, True)
            if check_undefined_grad:
                check_missing_tangents(func, values)
            if check_batched_forward_grad:
                check_batched_forward(func, values)
        if check_backward_ad:
            if check_batched_grad:
                check_batched(func, values)
            check_zero_cotangents(func, values, bool(masked))
            if check_undefined_grad:
                check_missing_cotangents(func, values)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the second derivatives of `func` at `inputs` agree with central differences of the first ones.

    grad_outputs: the cotangents of the results; random ones if not given.

    >>> import weft as torch
    >>> x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(torch.sin, (x,))
    True
    """
    checked_inputs = as_tuple(inputs)
    if rules_of(checked_inputs):
        func, checked_inputs = above("layouts.leaves").of_values(func, checked_inputs, masked)
    outputs = outputs_of(func, checked_inputs)
    if grad_outputs is None:
        cts = [_random_cotangent(y, gen_non_contig_grad_outputs) for y in outputs]
    else:
        cts = list(as_tuple(grad_outputs))
    count = len(cts)
    required = [asks_for_gradient(x) for x in checked_inputs]

    def derivative(*args: Any) -> tuple:
        values, seeds = list(args[:-count]), args[-count:]
        for k, wanted in enumerate(required):
            if wanted:
                values[k] = values[k].view_as(values[k])  # so that an input may be one of the results
                if not values[k].requires_grad:  # in forward mode
                    values[k].requires_grad_()
        leaves = [x for x, wanted in zip(values, required, strict=True) if wanted]
        results = outputs_of(func, values)
        return tuple(
            each
            for each in grad(results, leaves, seeds, create_graph=True, allow_unused=True)
            if each is not None
        )

    return gradcheck(
        derivative,
        (*checked_inputs, *cts),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


def _random_cotangent(y: Tensor, noncontiguous: bool) -> Tensor:
    """The one that PyTorch draws with the same seed."""
    return above("testing.random_tensors").make_tensor(
        y.shape,
        dtype=y.dtype,
        device=y.device,
        low=-1,
        high=1,
        requires_grad=True,
        noncontiguous=noncontiguous,
    )


def _check_inputs(inputs: Sequence[Any]) -> None:
    leaves = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not leaves:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for position, x in enumerate(inputs):
        if isinstance(x, Tensor) and x.requires_grad:
            if x.spec.dtype.to_real() is float32 or x.spec.dtype.itemsize < 4:
                warnings.warn(
                    f"Input #{position} requires gradient and is not a double precision floating point or complex. This "
                    "check will likely fail if all the inputs are not of double precision floating point or complex. ",
                    UserWarning,
                    stacklevel=user_level(),
                )
            if 0 in x.stride() and x.numel() > 1:
                raise RuntimeError(
                    f"The {position}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                    "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                    ".contiguous on the input before passing it to gradcheck."
                )


# ---- Real numbers ----------------------------------------------------------------------------------------------------


def _reals(x: Tensor) -> np.ndarray:
    """A copy of the elements as one row of real numbers; complex ones as pairs."""
    values = x.detach().clone().resolve_conj().resolve_neg().contiguous().view(-1)
    reals = (view_as_real(values).reshape(-1) if x.is_complex() else values).double()
    if handles_dispatch(type(reals)):  # an object that wraps a tensor has no memory
        return np.array([reals[k].item() for k in range(reals.numel())], np.float64)
    return reals.cpu().numpy()


def _units(x: Tensor) -> Iterator[Tensor]:
    """For each real number in a tensor: a tensor of zeros with 1 (or 1j) there."""
    for position in range(x.numel()):
        for unit in (1, 1j) if x.is_complex() else (1,):
            one = zeros_like(x.detach())
            as_strided(one, (x.numel(),), (1,))[_place(one, position)] = unit
            yield one


def _place(dense: Tensor, position: int) -> int:
    """Where element `position`, in logical order, lies in the memory of a dense tensor."""
    offset = 0
    for size, stride in zip(reversed(dense.shape), reversed(dense.stride()), strict=True):
        position, index = divmod(position, size)
        offset += index * stride
    return offset


def _moved(inputs: Sequence[Any], which: int, by: Tensor) -> list[Any]:
    """The inputs, the one of them moved. What is written to in place stays usable."""
    found = list(inputs)
    with no_grad():
        moved = inputs[which].detach() + by
        target = (
            moved.new_empty_strided(moved.shape, inputs[which].stride())
            if (inputs[which].spec.is_dense)
            else moved
        )
        target.copy_(moved)
    found[which] = target.requires_grad_()
    return found


def _numeric(
    func: Callable,
    inputs: Sequence[Any],
    which: int,
    direction: Tensor,
    eps: float,
    chosen: Callable[[Any], bool] = asks_for_gradient,
) -> list[np.ndarray]:
    """The central difference of the results along a direction of one input.

    Raises: AssertionError if the results have another shape or dtype than those of the input itself.
    """
    above, below = [outputs_of(func, _moved(inputs, which, direction * step), chosen) for step in (eps, -eps)]
    for a, b in zip(above, below, strict=True):
        for what, one, other in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
            if one != other:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed by {eps}, but got: "
                    f"{what}s {one} and {other}."
                )
    return [(_reals(a) - _reals(b)) / (2 * eps) for a, b in zip(above, below, strict=True)]


def _rows(
    func: Callable, inputs: Sequence[Any], checked: Sequence[int], index: int, ct: Tensor
) -> list[np.ndarray]:
    """The gradients of all inputs for a cotangent of one result."""
    fresh = _copies(inputs)
    y = outputs_of(func, fresh)[index]
    gradients = grad(y, [fresh[k] for k in checked], ct, allow_unused=True)
    return [
        np.zeros_like(_reals(fresh[k])) if g is None else _reals(g)
        for k, g in zip(checked, gradients, strict=True)
    ]


def _copies(inputs: Sequence[Any]) -> list[Any]:
    return [
        x.detach().clone().requires_grad_() if isinstance(x, Tensor) and x.requires_grad else x
        for x in inputs
    ]


def _pushed(func: Callable, inputs: Sequence[Any], which: int, tangent: Tensor) -> list[np.ndarray]:
    """The tangents of the results, by forward mode. The tangents of the other inputs are zeros."""
    tangents = {
        k: tangent.clone() if k == which else zeros_like(x.detach())
        for k, x in enumerate(inputs)
        if asks_for_gradient(x)
    }
    with forward_ad.dual_level():
        return [_reals(tangent_of(y)) for y in outputs_of(func, dual_inputs(inputs, tangents), is_float)]


# ---- Comparing -------------------------------------------------------------------------------------------------------


def _compare_all(func, inputs, checked, eps, atol, rtol, forward: bool) -> None:
    chosen = is_float if forward else asks_for_gradient
    outputs = outputs_of(func, inputs, chosen)
    for place, which in enumerate(checked):
        units = list(_units(inputs[which]))
        columns = [_numeric(func, inputs, which, unit, eps, chosen) for unit in units]
        pushed = [_pushed(func, inputs, which, unit) for unit in units] if forward else []
        for index, y in enumerate(outputs):
            size = len(_reals(y))
            numeric = np.stack([c[index] for c in columns], 1) if columns else np.zeros((size, 0))
            if forward:
                analytic = np.stack([c[index] for c in pushed], 1) if pushed else np.zeros_like(numeric)
                _same_parts(True, analytic, numeric, index, which, atol, rtol, inputs[which].is_complex())
            else:
                rows = [_rows(func, inputs, checked, index, ct)[place] for ct in _units(y)]
                analytic = np.stack(rows) if rows else np.zeros_like(numeric)
                _same_parts(False, analytic, numeric, index, which, atol, rtol, y.is_complex())


def _compare_fast(func, inputs, checked, eps, atol, rtol, forward: bool) -> None:
    chosen = is_float if forward else asks_for_gradient
    outputs = outputs_of(func, inputs, chosen)
    random = np.random.default_rng(0)
    for place, which in enumerate(checked):
        direction = random_direction(inputs[which], random)
        numeric = _numeric(func, inputs, which, direction, eps, chosen)
        if forward:
            for index, pushed in enumerate(_pushed(func, inputs, which, direction)):
                _same(True, pushed, numeric[index], index, which, atol, rtol)
            continue
        for index, y in enumerate(outputs):
            ct = random_direction(y, random)
            row = _rows(func, inputs, checked, index, ct)[place]
            analytic, projected = row @ _reals(direction), _reals(ct) @ numeric[index]
            _same(False, np.asarray(analytic), np.asarray(projected), index, which, atol, rtol, _FAST)


_FAST = "The numbers are those of fast mode: one random combination of rows and columns.\n"


def _same(
    forward: bool,
    analytic,
    numeric,
    index: int,
    which: int,
    atol: float,
    rtol: float,
    note: str = "",
    part: str = "",
) -> None:
    if not np.allclose(analytic, numeric, rtol=rtol, atol=atol, equal_nan=True):
        how = "computed with forward mode " if forward else ""
        raise GradcheckError(
            f"{part}Jacobian {how}mismatch for output {index} with respect to input {which},\n"
            f"numerical:{numeric}\nanalytical:{analytic}\n{note}"
        )


def _same_parts(
    forward: bool, analytic, numeric, index: int, which: int, atol: float, rtol: float, is_complex: bool
) -> None:
    """As `_same`; a message says whether the real or the imaginary part of a complex input or output is meant."""
    if not is_complex:
        _same(forward, analytic, numeric, index, which, atol, rtol)
        return
    for start, name in ((1, "imaginary"), (0, "real")):
        chosen = (slice(None), slice(start, None, 2)) if forward else slice(start, None, 2)
        part = f"While considering the {name} part of complex {'inputs' if forward else 'outputs'} only, "
        _same(forward, analytic[chosen], numeric[chosen], index, which, atol, rtol, part=part)


def _check_constant(func: Callable, inputs: Sequence[Any], checked: Sequence[int], eps: float) -> None:
    """Raises: GradcheckError if results change with inputs, though they do not require grad."""
    for which in checked:
        for unit in _units(inputs[which]):
            outputs = [as_tuple(func(*_moved(inputs, which, unit * step))) for step in (eps, -eps)]
            for higher, lower in zip(*outputs, strict=True):
                if isinstance(higher, Tensor) and not np.array_equal(
                    _reals(higher), _reals(lower), equal_nan=True
                ):
                    raise GradcheckError("Numerical gradient for function expected to be zero")


def _check_deterministic(
    func: Callable, inputs: Sequence[Any], checked: Sequence[int], tolerance: float
) -> None:
    fresh = _copies(inputs)
    y = outputs_of(func, fresh)
    runs = [
        grad(
            y,
            [fresh[k] for k in checked],
            [ones_like(each) for each in y],
            retain_graph=True,
            allow_unused=True,
        )
        for _ in range(2)
    ]
    for a, b in zip(*runs, strict=True):
        if a is not None and not np.allclose(_reals(a), _reals(b), rtol=0, atol=tolerance, equal_nan=True):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                f"different values, although analytical gradient matches numerical gradient. The tolerance for "
                f"nondeterminism was {tolerance}."
            )


def _check_dtypes(func: Callable, inputs: Sequence[Any], checked: Sequence[int]) -> None:
    fresh = _copies(inputs)
    y = outputs_of(func, fresh)
    gradients = grad(y, [fresh[k] for k in checked], [ones_like(each) for each in y], allow_unused=True)
    for k, g in zip(checked, gradients, strict=True):
        if g is not None and g.spec.dtype is not fresh[k].spec.dtype and g.spec.dtype.category >= FLOAT:
            raise GradcheckError(f"Gradient of input {k} has dtype {g.dtype!r}, the input {fresh[k].dtype!r}")


# ---- Jacobians, as PyTorch's older functions give them ----------------------------------------------------------------
# One matrix for each input: a row for each of its elements, a column for each element of the (first) result.


def get_numerical_jacobian(
    fn: Callable, inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Tensor, ...]:
    """The Jacobians of `fn(inputs)`, a function of the tuple, by central differences.

    Raises: ValueError unless grad_out is 1.
    """
    if grad_out != 1.0:
        raise ValueError(
            "Expected grad_out to be 1.0. get_numerical_jacobian no longer supports values of grad_out != 1.0."
        )
    values = as_tuple(inputs)
    targets = values if target is None else as_tuple(target)
    places = [k for k, x in enumerate(values) if any(x is each for each in targets)]
    return tuple(
        get_numerical_jacobian_wrt_specific_input(lambda *args: fn(args), k, values, None, eps)[0]
        for k in places
    )


def _get_numerical_jacobian(
    fn: Callable,
    inputs: Any,
    outputs: Any = None,
    target: Any = None,
    eps: float = 1e-3,
    is_forward_ad: bool = False,
) -> list[tuple[Tensor, ...]]:
    """For each of the inputs in `target` (all that require gradients) the Jacobians of all results of `fn(*inputs)`."""
    values = as_tuple(inputs)
    if target is None:
        places = [k for k, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad]
    else:
        places = [k for k, x in enumerate(values) if any(x is each for each in _iter_tensors(target))]
    return [
        get_numerical_jacobian_wrt_specific_input(fn, k, values, outputs, eps, is_forward_ad=is_forward_ad)
        for k in places
    ]


def _iter_tensors(x: Any, only_requiring_grad: bool = False) -> Iterator[Tensor]:
    """The tensors in nested iterables."""
    if isinstance(x, Tensor):
        if x.requires_grad or not only_requiring_grad:
            yield x
    elif isinstance(x, Iterable) and not isinstance(x, str):
        for each in x:
            yield from _iter_tensors(each, only_requiring_grad)


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable,
    input_idx: int,
    inputs: Any,
    outputs: Any,
    eps: float,
    input: Tensor | None = None,
    is_forward_ad: bool = False,
) -> tuple[Tensor, ...]:
    """The Jacobians of all results of `fn(*inputs)` in one input, by central differences."""
    moved = list(inputs)
    if input is not None:
        moved[input_idx] = input
    x = moved[input_idx]
    columns = [_numeric(fn, moved, input_idx, unit, eps) for unit in _units(x)]
    return tuple(from_numpy(np.stack(rows)).to(x.dtype) for rows in zip(*columns, strict=True))


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """The Jacobians of `output` in its inputs, by backward; and whether backward gives the same again, shapes and dtypes fit.

    Raises: ValueError unless grad_out is 1.
    """
    if grad_out != 1.0:
        raise ValueError(
            "Expected grad_out to be 1.0. get_analytical_jacobian no longer supports values of grad_out != 1.0."
        )
    leaves = [x for x in as_tuple(inputs) if isinstance(x, Tensor) and x.requires_grad]
    runs = [
        [grad(output, leaves, unit, retain_graph=True, allow_unused=True) for unit in _units(output)]
        for _ in range(2)
    ]
    found = [
        [
            stack([(zeros_like(x) if row[k] is None else row[k]).reshape(-1) for row in rows], -1)
            for k, x in enumerate(leaves)
        ]
        for rows in runs
    ]
    same = all(float((a - b).abs().max()) <= nondet_tol for a, b in zip(*found, strict=True) if a.numel())
    return tuple(found[0]), same, True, True
