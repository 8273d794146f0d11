"""The rules of nested tensors, which the files of this folder fill."""

from __future__ import annotations

from ...core.layout_calls import Rules
from ...core.layout_spec import LayoutSpec
from ...core.tensor import Tensor
from ..parts import add_common_rules, bare, parts_of


class NestedRules(Rules):
    def numel_of(self, spec: LayoutSpec) -> int:
        return spec.detail[0]

    def is_dense(self, spec: LayoutSpec) -> bool:
        return False  # there are no strides

    def memory(self, x: Tensor) -> Tensor:
        return super().memory(x) if not x.is_contiguous() else bare(parts_of(x)[-1])


NESTED = NestedRules("nested", "write [f(each) for each in x.unbind()] to compute with its components")
add_common_rules(NESTED)
