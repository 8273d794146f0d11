"""What the tests of exporting share: run a model in weft and its ONNX model in onnxruntime, and compare."""

import weft
from weft import nn


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def check(model, *args, shapes=None, more=(), tolerance=1e-4, **options):
    """Export with `args`, then compare the outputs for these and for the argument tuples in `more`."""
    model = model.eval() if isinstance(model, nn.Module) else Function(model)
    program = weft.onnx.export(model, args, dynamic_shapes=shapes, **options)
    for inputs in (args, *more):
        copies = [each.clone() if isinstance(each, weft.Tensor) else each for each in inputs]
        results = weft.utils._pytree.tree_leaves(model(*copies))
        wanted = [each for each in results if isinstance(each, weft.Tensor)]
        got = [each for each in program(*inputs)]
        assert len(got) >= len(wanted)
        for ours, theirs in zip(wanted, got):
            assert ours.dtype == theirs.dtype
            weft.testing.assert_close(theirs, ours.detach(), rtol=tolerance, atol=tolerance)
    return program
