"""Calls with wrong arguments, on PyTorch and on weft: the parts of `tests/hunts/arguments.py`."""
