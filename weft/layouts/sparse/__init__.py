"""Sparse tensors: coordinates (COO), and the compressed layouts CSR, CSC, BSR and BSC.

All files with rules are imported here, so that whichever function makes the first sparse tensor finds the rules complete.
"""

from . import (  # noqa: F401 (fill the rules)
    access,
    arithmetic,
    comparison,
    conversion,
    converting,
    creation,
    eigen,
    files,
    filling,
    joining,
    legacy,
    masked,
    multiplication,
    reductions,
    resizing,
    selecting,
    shape,
    solving,
    statistics,
    unary,
)
