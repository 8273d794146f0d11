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

from ..core.dtype import FLOAT, float32
from ..core.grad_mode import no_grad
from ..core.layout_calls import rules_of
from ..core.layout_spec import is_strided
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..interop.numpy import from_numpy
from ..layouts.leaves import of_values
from ..ops.assembly.joining import stack
from ..ops.creation.creation import empty_strided, ones_like, zeros_like
from ..ops.creation.random import randn
from ..ops.views.complex_views import view_as_real
from ..ops.views.slicing import as_strided
from . import dual
from .backward import grad


class GradcheckError(RuntimeError):
    """A derivative differs from the finite differences."""


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

    Inputs should be of double precision. Of sparse inputs the elements vary, with `masked` those that have an entry. fast_mode compares one random combination of rows and columns only.

    Raises: GradcheckError where they differ, unless `raise_exception` is False; ValueError if no input requires grad.

    >>> import weft as torch
    >>> x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(torch.sin, (x,))
    True
    """
    try:
        values = _tuple(inputs)
        if rules_of(values):
            func, values = of_values(func, values, bool(masked))
        _check_inputs(values)
        checked = [k for k, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad]
        outputs = _outputs(func, values)
        if not outputs:
            _check_constant(func, values, checked, eps)
            return True
        _check_deterministic(func, values, checked, nondet_tol)
        compare = _compare_fast if fast_mode else _compare_all
        compare(func, values, checked, eps, atol, rtol, check_backward_ad, check_forward_ad)
        if check_grad_dtypes:
            _check_dtypes(func, values, checked)
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
    checked_inputs = _tuple(inputs)
    if rules_of(checked_inputs):
        func, checked_inputs = of_values(func, checked_inputs, masked)
    outputs = _outputs(func, checked_inputs)
    if grad_outputs is None:
        cts = [_random_like(y, gen_non_contig_grad_outputs) for y in outputs]
    else:
        cts = list(_tuple(grad_outputs))
    count = len(cts)

    def derivative(*args: Any) -> tuple:
        values, seeds = args[:-count], args[-count:]
        values = tuple(
            x.view_as(x) if isinstance(x, Tensor) and x.requires_grad else x for x in values
        )  # so that an input may be one of the results
        leaves = [x for x in values if isinstance(x, Tensor) and x.requires_grad]
        results = _outputs(func, values)
        return tuple(
            each
            for each in grad(results, leaves, seeds, create_graph=True, allow_unused=True)
            if each is not None and each.requires_grad
        )

    return gradcheck(
        derivative,
        (*checked_inputs, *cts),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


def _tuple(value: Any) -> tuple:
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _outputs(func: Callable, inputs: Sequence[Any]) -> list[Tensor]:
    """The results that are differentiable; sparse ones are made dense."""
    found = [y for y in _tuple(func(*inputs)) if isinstance(y, Tensor) and y.requires_grad]
    return [y if is_strided(y.spec) else y.to_dense() for y in found]


def _random_like(y: Tensor, non_contiguous: bool) -> Tensor:
    spec = y.spec
    result = randn(spec.shape, dtype=spec.dtype, device=spec.device) * 0.5 + 0.75
    if non_contiguous and spec.shape:
        result = stack((result, result), -1).select(-1, 0)
    return result.detach().requires_grad_()


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
    return (view_as_real(values).reshape(-1) if x.is_complex() else values).double().numpy()


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
            empty_strided(moved.shape, inputs[which].stride(), dtype=moved.dtype)
            if (inputs[which].spec.is_dense)
            else moved
        )
        target.copy_(moved)
    found[which] = target.requires_grad_()
    return found


def _values(func: Callable, inputs: Sequence[Any]) -> list[np.ndarray]:
    return [_reals(y) for y in _outputs(func, inputs)]


def _numeric(
    func: Callable, inputs: Sequence[Any], which: int, direction: Tensor, eps: float
) -> list[np.ndarray]:
    """The central difference of the results along a direction of one input."""
    above = _values(func, _moved(inputs, which, direction * eps))
    below = _values(func, _moved(inputs, which, direction * -eps))
    return [(a - b) / (2 * eps) for a, b in zip(above, below, strict=True)]


def _rows(
    func: Callable, inputs: Sequence[Any], checked: Sequence[int], index: int, ct: Tensor
) -> list[np.ndarray]:
    """The gradients of all inputs for a cotangent of one result."""
    fresh = _copies(inputs)
    y = _outputs(func, fresh)[index]
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
    """The tangents of the results, by forward mode."""
    level = dual.open_level()
    try:
        duals = list(inputs)
        duals[which] = dual.with_tangent(inputs[which], level, tangent)
        outputs = _outputs(func, duals)
        tangents = [dual.tangents(y).get(level) for y in outputs]
        return [
            np.zeros_like(_reals(y)) if t is None else _reals(t)
            for y, t in zip(outputs, tangents, strict=True)
        ]
    finally:
        dual.close_level(level)


# ---- Comparing -------------------------------------------------------------------------------------------------------


def _compare_all(func, inputs, checked, eps, atol, rtol, backward: bool, forward: bool) -> None:
    outputs = _outputs(func, inputs)
    for place, which in enumerate(checked):
        units = list(_units(inputs[which]))
        columns = [_numeric(func, inputs, which, unit, eps) for unit in units]
        if forward:
            pushed = [_pushed(func, inputs, which, unit) for unit in units]
        for index, y in enumerate(outputs):
            size = len(_reals(y))
            numeric = np.stack([c[index] for c in columns], 1) if columns else np.zeros((size, 0))
            if backward:
                rows = [_rows(func, inputs, checked, index, ct)[place] for ct in _units(y)]
                analytic = np.stack(rows) if rows else np.zeros_like(numeric)
                _same("", analytic, numeric, index, which, atol, rtol)
            if forward and units:
                _same(
                    "computed with forward mode ",
                    np.stack([c[index] for c in pushed], 1),
                    numeric,
                    index,
                    which,
                    atol,
                    rtol,
                )


def _compare_fast(func, inputs, checked, eps, atol, rtol, backward: bool, forward: bool) -> None:
    outputs = _outputs(func, inputs)
    random = np.random.default_rng(0)
    for place, which in enumerate(checked):
        direction = _random_direction(inputs[which], random)
        numeric = _numeric(func, inputs, which, direction, eps)
        if forward:
            for index, pushed in enumerate(_pushed(func, inputs, which, direction)):
                _same("computed with forward mode ", pushed, numeric[index], index, which, atol, rtol)
        for index, y in enumerate(outputs if backward else ()):
            ct = _random_direction(y, random)
            row = _rows(func, inputs, checked, index, ct)[place]
            analytic, projected = row @ _reals(direction), _reals(ct) @ numeric[index]
            _same("(fast mode) ", np.asarray(analytic), np.asarray(projected), index, which, atol, rtol)


def _random_direction(x: Tensor, random: np.random.Generator) -> Tensor:
    values = random.standard_normal((2, x.numel()))
    values /= max(float(np.sqrt((values**2).sum())), 1e-30)
    numbers = values[0] + 1j * values[1] if x.is_complex() else values[0]
    return from_numpy(numbers).reshape(x.shape).to(x.dtype)


def _same(how: str, analytic, numeric, index: int, which: int, atol: float, rtol: float) -> None:
    if not np.allclose(analytic, numeric, rtol=rtol, atol=atol, equal_nan=True):
        raise GradcheckError(
            f"Jacobian {how}mismatch for output {index} with respect to input {which},\n"
            f"numerical:{numeric}\nanalytical:{analytic}\n"
        )


def _check_constant(func: Callable, inputs: Sequence[Any], checked: Sequence[int], eps: float) -> None:
    """Raises: GradcheckError if results change with inputs, though they do not require grad."""
    for which in checked:
        for unit in _units(inputs[which]):
            outputs = [_tuple(func(*_moved(inputs, which, unit * step))) for step in (eps, -eps)]
            for above, below in zip(*outputs, strict=True):
                if isinstance(above, Tensor) and not np.array_equal(
                    _reals(above), _reals(below), equal_nan=True
                ):
                    raise GradcheckError("Numerical gradient for function expected to be zero")


def _check_deterministic(
    func: Callable, inputs: Sequence[Any], checked: Sequence[int], tolerance: float
) -> None:
    fresh = _copies(inputs)
    y = _outputs(func, fresh)
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
    y = _outputs(func, fresh)
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
    values = _tuple(inputs)
    targets = values if target is None else _tuple(target)
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
    values = _tuple(inputs)
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
    leaves = [x for x in _tuple(inputs) if isinstance(x, Tensor) and x.requires_grad]
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
