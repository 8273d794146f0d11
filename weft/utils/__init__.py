"""Tools around the tensor: benchmarks, data loading, counting of operations."""
