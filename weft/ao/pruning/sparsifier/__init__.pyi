# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from . import base_sparsifier as base_sparsifier
from . import nearly_diagonal_sparsifier as nearly_diagonal_sparsifier
from . import utils as utils
from . import weight_norm_sparsifier as weight_norm_sparsifier
