# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from . import averagers as averagers
from . import hierarchical_model_averager as hierarchical_model_averager
from . import utils as utils
