"""The loop of scans, as LLVM IR: after each element of a row, the results of the state so far are stored."""

from __future__ import annotations

from typing import NamedTuple

from ..core.dtype import DType
from .expr import postorder
from .llvm import Block, constant, emit, value_type
from .loops import METADATA, Inner, Result
from .monoid import Monoid, index


class ScanKernel(NamedTuple):
    """Everything that the machine code of a scan depends on; its innermost loop runs along the scanned dim, in order."""

    monoid: Monoid
    operand_dtypes: tuple[DType, ...]
    strides: str  # a class for each output, then each input

    @property
    def results(self) -> tuple[Result, ...]:
        return self.monoid.finish


def scan_ir(kernel: ScanKernel) -> str:
    """The IR of the kernel's `row`; `shared_loop_ir` calls it."""
    return f"{_ScanRow(kernel).ir()}\n{METADATA}"


class _ScanRow(Inner):
    kernel: ScanKernel

    def text(self) -> str:
        block = Block(self.declarations)
        after = self._element(block)
        states = [
            f"%state{k} = phi {value_type(each.dtype)} [{constant(each.dtype, each.value)}, %start], [{new}, %step]"
            for k, (each, new) in enumerate(zip(self.kernel.monoid.identity, after, strict=True))
        ]
        return self._row(block.lines, states=states, in_order=True)

    def _element(self, block: Block) -> list[str]:
        """Combine the element at `%i` into the state and store the results; returns the new state."""
        monoid = self.kernel.monoid
        names = {index(): "%i"}
        for leaf in postorder(monoid.to_state):
            if leaf.op == "load" and leaf is not index():
                names[leaf] = self._load(block, len(self.kernel.results) + self._index(leaf), leaf, "%i")
        lifted = emit(block, monoid.to_state, names)
        before = {leaf: f"%state{k}" for k, leaf in enumerate(monoid.left)}
        after = emit(block, monoid.combine, before | dict(zip(monoid.right, lifted, strict=True)))
        parts = [part for result in monoid.finish for part in result.parts]
        self._store_all(block, emit(block, parts, dict(zip(monoid.left, after, strict=True))))
        return after
