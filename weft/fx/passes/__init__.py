"""Functions that look at graphs or change them."""

from ...compat.missing import module_getattr

__getattr__ = module_getattr(
    __name__,
    (
        "annotate_getitem_nodes",
        "backends",
        "dialect",
        "graph_drawer",
        "graph_manipulation",
        "graph_transform_observer",
        "infra",
        "net_min_base",
        "operator_support",
        "param_fetch",
        "pass_manager",
        "shape_prop",
        "split_module",
        "split_utils",
        "tools_common",
        "utils",
    ),
)
