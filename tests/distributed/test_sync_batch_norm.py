from weft_ranks import said, start

PROGRAM = """
torch.manual_seed(0)
x = torch.randn(6, 3, 4, dtype=torch.float64)
weights = torch.randn(6, 3, 4, dtype=torch.float64)
parts = (x[:1], x[1:4], x[4:])
own_weights = (weights[:1], weights[1:4], weights[4:])[rank]

def trained(layer, x, weights):
    layer.double()
    x = x.clone().requires_grad_()
    for _ in range(2):
        (layer(x) * weights).sum().backward()
    return x.grad, layer

whole_grad, whole = trained(torch.nn.BatchNorm1d(3), x, weights)
grad, layer = trained(torch.nn.SyncBatchNorm(3), parts[rank], own_weights)
for each in layer.parameters():
    dist.all_reduce(each.grad)
print(torch.allclose(grad, (whole_grad[:1], whole_grad[1:4], whole_grad[4:])[rank]))
print(all(torch.allclose(a.grad, b.grad) for a, b in zip(layer.parameters(), whole.parameters())))
print(all(torch.allclose(a, b) for a, b in zip(layer.buffers(), whole.buffers())))
layer.eval(), whole.eval()
print(torch.allclose(layer(x), whole(x)))
"""


def test_batches_of_different_sizes_are_one_batch(tmp_path):
    """PyTorch's SyncBatchNorm needs a GPU, so a batch of one process is the reference."""
    assert said(start(PROGRAM, 3, tmp_path)) == ["True\n" * 4] * 3
