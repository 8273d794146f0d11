# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from . import nn as nn
from . import ns as ns
from . import pruning as pruning
from . import quantization as quantization
