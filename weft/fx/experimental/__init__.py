"""Passes and tracers that PyTorch does not promise to keep."""

from ...compat.missing import module_getattr

__getattr__ = module_getattr(
    __name__,
    (
        "const_fold",
        "debug",
        "merge_matmul",
        "normalize",
        "optimization",
        "proxy_tensor",
        "refinement_types",
        "rewriter",
        "schema_type_annotation",
        "symbolic_shapes",
        "unification",
        "unify_refinements",
    ),
)
