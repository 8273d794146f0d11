# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from . import datapipe as datapipe
from . import iter as iter
from . import map as map
from . import utils as utils
