# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from ._comm_mode import CommDebugMode as CommDebugMode
from ._visualize_sharding import visualize_sharding as visualize_sharding
