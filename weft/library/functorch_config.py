"""`torch._functorch.config`: settings of tracing. The names are those that weft acts upon."""

# Whether a FakeTensorMode that is made from now on allows tensors on "meta" inside.
fake_tensor_allow_meta = True
