"""Parts that passes are made of."""

from ....compat.missing import module_getattr
from .common import HolderModule, compare_graphs, lift_subgraph_as_module

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]

__getattr__ = module_getattr(
    __name__,
    (
        "common",
        "fuser_utils",
        "matcher_utils",
        "matcher_with_name_node_map_utils",
        "source_matcher_utils",
    ),
)
