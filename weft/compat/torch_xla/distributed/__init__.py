"""`torch_xla.distributed`: one process, and its loaders."""
