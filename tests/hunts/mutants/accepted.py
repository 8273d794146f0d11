"""What may differ between PyTorch and weft when arguments are wrong. Each entry has a reason; the list only shrinks."""

from __future__ import annotations

from typing import NamedTuple


class Accepted(NamedTuple):
    """A kind of difference: `paths` are patterns, the other strings must be contained in what was said."""

    reason: str
    kinds: str  # of findings, see `verdict.Finding`
    paths: str = "*"
    torch: str = ""
    weft: str = ""
    change: str = ""


# Their results depend on what memory happens to hold, or are not unique.
UNDEFINED_VALUES = (
    "empty*", "Tensor.new_empty*", "new_empty*", "Tensor.resize*", "resize*", "*svd*", "*eig*", "*qr", "*lobpcg*",
    "geqrf", "*.geqrf", "*ldl_factor*", "*pca_lowrank", "*cond",
)  # fmt: skip

ACCEPTED = (
    Accepted("More dtypes work in weft than in PyTorch.", "allowed", torch="not implemented for"),
    Accepted("More dtypes work in weft than in PyTorch.", "allowed", torch="NotImplementedError"),
)
