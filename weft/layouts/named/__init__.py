"""Named tensors: strided tensors whose dims have names."""
