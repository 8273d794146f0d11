# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from . import cholesky as cholesky
from . import determinants as determinants
from . import eigh as eigh
from . import jacobi as jacobi
from . import least_squares as least_squares
from . import lu as lu
from . import qr as qr
from . import rows as rows
from . import svd as svd
from . import triangular as triangular
