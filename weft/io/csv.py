"""Reads and writes tables of numbers as text."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence

import numpy as np

from ..core.dtype import REDUCED_FLOATS, DType, complex32, compute_type, get_default_dtype
from ..core.tensor import Tensor
from ..interop.numpy import tensor_on
from .damage import reading


def load_csv(
    path: str | os.PathLike,
    *,
    dtype: DType | None = None,
    delimiter: str = ",",
    skip_rows: int = 0,
    columns: Sequence[int] | None = None,
) -> Tensor:
    """Load the numbers of a text file into a tensor [rows, columns]. `dtype` defaults to the default dtype.

    `skip_rows`: the number of lines to skip, such as a header. `columns`: the columns to load.

    Raises: RuntimeError that names row and column if a field is not a number, or if the rows differ in length.

    >>> import os, tempfile, weft
    >>> path = os.path.join(tempfile.mkdtemp(), "t.csv")
    >>> with open(path, "w") as file: print("x,y\\n1,2\\n3,4.5", file=file)
    >>> weft.io.load_csv(path, skip_rows=1)
    tensor([[1.0000, 2.0000],
            [3.0000, 4.5000]])
    """
    wanted = dtype or get_default_dtype()
    parsed = compute_type(wanted) if wanted in REDUCED_FLOATS or wanted is complex32 else wanted
    # Open the file here, because NumPy would treat some paths as URLs to download or as archives.
    with open(path, encoding="utf-8-sig", newline="") as file, reading(path), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "loadtxt: input contained no data")
        values = np.loadtxt(
            file,
            parsed.numpy,
            comments=None,
            delimiter=delimiter,
            skiprows=skip_rows,
            usecols=columns,
            ndmin=2,
            quotechar='"',
        )
    return tensor_on(values).to(wanted)
