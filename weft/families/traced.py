"""The traced value: a tensor without memory, whose ops build the expression of one element.

A function of elementwise ops becomes one kernel when it runs once on traced values, inside `tracing()`:

    a, b = Traced.load(0, spec_a), Traced.load(1, spec_b)       the operands of the kernel
    weight = Traced.number(0)                                   its first scalar argument
    with tracing():
        result = a.sigmoid() * b + weight                       an ordinary function of tensors
    store_as(result.value, result_spec)                         what the kernel writes: `elements.py`

A Traced value is a Tensor, so that it has every method, operator and property that tensors have. Inside `tracing()` a watcher
(`core/dispatch.py`) sees each op that is given traced values, and calls `Map.trace(*operands)` in place of the op. This
converts the operands as the kernel of the op does, applies the element of the row, and rounds to the dtype of the result
(`elements.rounded`). Therefore a kernel of several ops has the bits of the ops run one by one. Everything else that a function
can do with a tensor (read a value, ask for the shape, run an op that is not a Map) raises NoKernel.

Derivative kernels (`fusing.py`), optimizers (`update.py`) and recurrent cells (`ops/nn/recurrent_kernels.py`) are traced.

The values of a `KernelGraph` (`kernel_graph.py`) are another class, because a value of a graph is a whole tensor in memory: it has
an address, and reductions, products and indexing take it as an operand. A Traced value is one element of one kernel.

Traced values compose by substitution. To join the kernels of two ops, number the loads of the operands of both, and trace the
second op with the traced result of the first in place of the load of that result. The first result is already rounded to its
dtype, so it equals what the second op would have loaded from memory, and the bits do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.dispatch import PLAIN, unwatch, watch
from ..core.dtype import DType, compute_type, float64
from ..core.modes import DisableTorchFunction
from ..core.overrides import disabled
from ..core.spec import Spec, contiguous_spec, make_spec
from ..core.tensor import Tensor
from ..engine.complexes import Complex
from ..engine.expr import param
from .elements import load_as


class NoKernel(Exception):
    """The traced function does something that one kernel cannot do, so it must run op by op."""


def any_shape(operand: Spec) -> Spec:
    """The spec that stands for all shapes, except (), in the key of a trace."""
    shape = (1,) if operand.shape else ()
    return make_spec(shape, shape, operand.dtype, operand.device, operand.conj, operand.neg)


class Traced(Tensor):
    """One element of a tensor, or a number, while a function is traced.

    `value`: an Expr or a Complex in the compute type of the dtype, rounded to the dtype.
    `kind`: the operand as promotion sees it: a Spec of shape () or (1,), or the type of a number.
    `op`, `inputs`: the op that made the value and its operands; None and () for operands of the kernel, and for numbers.
    """

    __slots__ = ("value", "kind", "op", "inputs")
    __torch_function__ = staticmethod(disabled)

    value: Any
    kind: Any
    op: Any
    inputs: Sequence[Any]

    def __new__(cls, kind: Any, value: Any, op: Any = None, inputs: Sequence[Any] = ()) -> Traced:
        traced = object.__new__(cls)
        traced.kind = kind
        traced.value = value
        traced.op = op
        traced.inputs = inputs
        traced.spec = kind if type(kind) is Spec else contiguous_spec((), float64)
        traced._autograd = traced._base = None
        return traced

    @staticmethod
    def load(index: int, operand: Spec, dtype: DType | None = None) -> Traced:
        """Operand `index` of the kernel; `dtype` is what ops round to, if it is not the operand's."""
        dtype = dtype or operand.dtype
        kind = contiguous_spec((1,) if operand.shape else (), dtype, operand.device)
        return Traced(kind, load_as(index, operand, compute_type(dtype)))

    @staticmethod
    def number(index: int) -> Traced:
        """Scalar argument `index` of the kernel, a float64. As in Python, arithmetic among numbers is in float64, too."""
        return Traced(float, param(index, float64))

    def conj(self) -> Traced:
        """The complex conjugate, which is exact."""
        if not self.spec.dtype.is_complex:
            return self
        return Traced(self.kind, Complex(self.value.real, -self.value.imag), self.op, self.inputs)

    def detach(self) -> Traced:
        """The value itself, because a kernel records nothing."""
        return self

    def __repr__(self, *args: Any, **kwargs: Any) -> str:
        return f"Traced({self.kind}, from {getattr(self.op, 'name', 'outside')})"


def _refusing(name: str) -> Any:
    def refuse(self: Traced, *args: Any) -> Any:
        raise NoKernel(name)

    return refuse


# A traced value has no memory, and one trace serves all shapes.
for _name in ("size", "stride", "dim", "numel"):
    setattr(Traced, _name, _refusing(_name))
for _name in ("shape", "ndim"):
    setattr(Traced, _name, property(_refusing(_name)))
for _name in ("_storage", "_byte_offset"):
    setattr(Traced, _name, property(_refusing("the value of a tensor or a number")))


class tracing(DisableTorchFunction):  # noqa: N801 (used like a function)
    """Inside, an op that is given traced values is traced; classes and modes of users are not asked."""

    def __enter__(self) -> None:
        watch(self._trace)
        super().__enter__()

    def _restore(self) -> None:
        unwatch(self._trace)
        super()._restore()

    def _trace(self, op: Any, method: str, args: tuple, static: dict[str, Any]) -> Any:
        """A watcher (see `core/dispatch.py`)."""
        if Traced not in map(type, args):
            return PLAIN
        if method != "run" or not hasattr(op, "trace"):
            raise NoKernel(f"{op.name}.{method}")
        return op.trace(*args)
