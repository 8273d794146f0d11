"""weft.return_types: the types of results that are tuples with named fields."""

from weft.core.return_types import TYPES, return_type

# Type -> its fields. Each has a companion `max_out`, PyTorch's for results that were written into given tensors.
_FIELDS = {
    "cummax": "values indices",
    "cummin": "values indices",
    "kthvalue": "values indices",
    "max": "values indices",
    "median": "values indices",
    "min": "values indices",
    "mode": "values indices",
    "nanmedian": "values indices",
    "sort": "values indices",
    "topk": "values indices",
    "aminmax": "min max",
    "frexp": "mantissa exponent",
    "geqrf": "a tau",
    "histogram": "hist bin_edges",
    "linalg_cholesky_ex": "L info",
    "linalg_eig": "eigenvalues eigenvectors",
    "linalg_eigh": "eigenvalues eigenvectors",
    "linalg_inv_ex": "inverse info",
    "linalg_ldl_factor": "LD pivots",
    "linalg_ldl_factor_ex": "LD pivots info",
    "linalg_lstsq": "solution residuals rank singular_values",
    "linalg_lu": "P L U",
    "linalg_lu_factor": "LU pivots",
    "linalg_lu_factor_ex": "LU pivots info",
    "linalg_qr": "Q R",
    "linalg_slogdet": "sign logabsdet",
    "linalg_solve_ex": "result info",
    "linalg_svd": "U S Vh",
    "lu_unpack": "P L U",
    "qr": "Q R",
    "slogdet": "sign logabsdet",
    "svd": "U S V",
    "triangular_solve": "solution cloned_coefficient",
}

for _name, _fields in _FIELDS.items():
    for _own in (_name, f"{_name}_out"):
        return_type(_own, tuple(_fields.split()))
return_type("histogramdd", ("hist", "bin_edges"))
globals().update(TYPES)

all_return_types = [TYPES[name] for name in sorted(TYPES)]


def pytree_register_structseq(cls: type) -> None:
    """Let `torch.utils._pytree` take results of this type apart.

    Raises: ValueError for the types of this module, which it knows already.
    """
    from weft.core import pytree as _pytree

    if cls in TYPES.values():
        raise ValueError(f"{cls} is already registered as pytree node.")
    _pytree.register_pytree_node(
        cls, lambda result: (list(result), None), lambda values, context: cls(list(values))
    )
