"""Passes and tracers that PyTorch does not promise to keep."""
