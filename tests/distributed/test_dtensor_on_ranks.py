"""DTensors compute what plain tensors do: values, gradients and placements."""

import pytest
from weft_ranks import said, start

SETUP = """
import itertools
from weft.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
f = torch.nn.functional
R, P = Replicate(), Partial()

def numbers(seed, *shape):
    count = torch.tensor(shape).prod().item()
    return (((torch.arange(count) * (seed + 2) + seed) % 7) / 7).reshape(shape).double()
"""

LINE = "mesh = dist.init_device_mesh('cpu', ({size},))\nPLACES = [[Shard(0)], [Shard(1)], [R]]\n"


def check(program, size, tmp_path):
    """Each process of a mesh of one dimension runs the program to its end."""
    setup = SETUP + LINE.format(size=size)
    assert said(start(setup + program, size, tmp_path)) == ["done\n"] * size


OPERATIONS = """
calls = dict(
    add=lambda x, y: x + y,
    arithmetic=lambda x, y: x * y - 2 * x + 1,
    functions=lambda x, y: torch.exp(x) / (1 + y * y),
    matmul=lambda x, y: x @ y,
    transposed=lambda x, y: x @ y.t(),
    linear=lambda x, y: f.linear(x, y),
    bias=lambda x, y: f.linear(x, y, x[0]),
    layers=lambda x, y: f.linear(f.relu(f.linear(x, y)), y),
    columns=lambda x, y: f.relu(x @ y).sum(0),
    total=lambda x, y: (x - y).sum(),
    mean=lambda x, y: x.mean(1) * y.sum(1),
    norm=lambda x, y: (x * y).square().mean().sqrt(),
    softmax=lambda x, y: torch.softmax(x, -1) * y,
    other_softmax=lambda x, y: torch.softmax(x + y, 0),
    layer_norm=lambda x, y: f.layer_norm(x, (6,), y[0], y[1]),
    cat=lambda x, y: torch.cat([x, y]),
    reshape=lambda x, y: x.reshape(4, 9).sum(1) + y.flatten()[:4],
    broadcast=lambda x, y: x.unsqueeze(1) * y,
    row=lambda x, y: x + y[0],
    transpose=lambda x, y: x.transpose(0, 1) + y.permute(1, 0),
    slices=lambda x, y: x[1:4] * y[1],
    maxima=lambda x, y: x.max(1).values + y.amax(1),
    gelu=lambda x, y: f.gelu(x) + (y + 1).pow(2).sqrt(),
    where=lambda x, y: torch.where(x > y, x, y * 2),
    loss=lambda x, y: f.cross_entropy(x, y.argmax(1)) + f.mse_loss(x, y),
    attention=lambda x, y: f.scaled_dot_product_attention(x.view(2, 3, 6), y.view(2, 3, 6), y.view(2, 3, 6)),
    einsum=lambda x, y: torch.einsum("ij,kj->ik", x, y),
    in_place=lambda x, y: (x * 1).add_(y).mul_(2),
)
a, b = numbers(1, 6, 6), numbers(2, 6, 6)
for (name, call), x_place, y_place in itertools.product(calls.items(), PLACES, PLACES):
    try:
        plain = [each.clone().requires_grad_() for each in (a, b)]
        expected = call(*plain)
        weights = (torch.arange(expected.numel()) % 5 + 1.0).reshape(expected.shape).double()
        (expected * weights).sum().backward()
        cut = [distribute_tensor(each, mesh, place).requires_grad_() for each, place in ((a, x_place), (b, y_place))]
        result = call(*cut)
        (result.full_tensor() * weights).sum().backward()
        assert result.shape == expected.shape and torch.allclose(result.full_tensor(), expected), "value"
        for ours, theirs in zip(cut, plain):
            assert (ours.grad is None) == (theirs.grad is None), "no gradient"
            if ours.grad is not None:
                assert torch.allclose(ours.grad.full_tensor(), theirs.grad), "gradient"
    except Exception as error:
        print(name, x_place, y_place, type(error).__name__, str(error)[:200], flush=True)
        if not isinstance(error, AssertionError):
            raise
print("done")
"""


@pytest.mark.parametrize("size", [2, 3])
def test_operations(tmp_path, size):
    check(OPERATIONS, size, tmp_path)


def test_operations_on_a_mesh_of_two_dimensions(tmp_path):
    setup = (
        SETUP
        + """
mesh = dist.init_device_mesh("cpu", (2, 2))
PLACES = [[Shard(0), R], [R, Shard(1)], [Shard(0), Shard(1)], [Shard(0), Shard(0)]]
"""
    )
    assert said(start(setup + OPERATIONS, 4, tmp_path)) == ["done\n"] * 4


WRITES = """
fills = dict(
    normal_=(), uniform_=(2, 3), random_=(5,), bernoulli_=(0.3,), exponential_=(), cauchy_=(), geometric_=(0.5,), log_normal_=(), cumsum_=(0,),
)
for (name, arguments), place in itertools.product(fills.items(), PLACES):
    plain, cut = numbers(1, 5, 4), distribute_tensor(numbers(1, 5, 4), mesh, place)
    local = cut.to_local()
    torch.manual_seed(7)
    getattr(plain, name)(*arguments)
    torch.manual_seed(7)
    assert getattr(cut, name)(*arguments) is cut
    assert torch.equal(cut.full_tensor(), plain) and cut.to_local().data_ptr() == local.data_ptr(), (name, place)
print("done")
"""


@pytest.mark.parametrize("size", [2, 3])
def test_writes_without_a_rule(tmp_path, size):
    """Random numbers are those of a plain tensor with the same seed, on any mesh."""
    check(WRITES, size, tmp_path)


MEMORY = """
strided = [((2, 3), (4, 1), 1), ((4, 5), (1, 4), 0), ((3,), (5,), 2), ((5, 2, 2), (4, 2, 1), 0), ((2, 2), (0, 1), 3)]
for arguments, place, turned in itertools.product(strided, PLACES, (False, True)):
    plain = numbers(1, 4, 5).t() if turned else numbers(1, 5, 4)
    cut = distribute_tensor(plain, mesh, place).requires_grad_()
    plain = plain.clone().requires_grad_()
    found, expected = cut.as_strided(*arguments), plain.as_strided(*arguments)
    assert found.shape == expected.shape and torch.equal(found.full_tensor(), expected), (arguments, place, turned)
    for each in (found, expected):
        each.square().sum().backward()
    assert torch.equal(cut.grad.full_tensor(), plain.grad), (arguments, place, turned)
for shape, place, wrap in itertools.product([(4, 4), (7, 3), (3, 5), (3, 3, 3)], PLACES, (False, True)):
    plain, cut = numbers(1, *shape), distribute_tensor(numbers(1, *shape), mesh, place)
    local = cut.to_local()
    assert cut.fill_diagonal_(9.0, wrap) is cut and torch.equal(cut.full_tensor(), plain.fill_diagonal_(9.0, wrap)), (shape, place)
    assert cut.to_local().data_ptr() == local.data_ptr()
for shape, place in itertools.product([(4, 4), (7, 3), (3, 5), (1, 4)], PLACES):
    plain, cut = numbers(1, *shape).requires_grad_(), distribute_tensor(numbers(1, *shape), mesh, place).requires_grad_()
    for each in (plain, cut):
        each.diagonal().square().sum().backward()
    assert torch.equal(cut.grad.full_tensor(), plain.grad), (shape, place)
whole = distribute_tensor(numbers(1, 4, 4), mesh, [R])
whole.diagonal().fill_(9.0)
assert torch.equal(whole.to_local(), numbers(1, 4, 4).fill_diagonal_(9.0))
try:
    distribute_tensor(numbers(1, 5, 4), mesh, [Shard(0)]).as_strided((5, 5), (4, 1))
except RuntimeError as error:
    assert "as_strided" in str(error), error
    print("done")
"""


@pytest.mark.parametrize("size", [2, 3])
def test_views_of_memory(tmp_path, size):
    """`as_strided` reads the memory that the whole tensor would have."""
    check(MEMORY, size, tmp_path)


REDUCTIONS = """
norm = torch.linalg.vector_norm
calls = dict(
    sum=lambda x: x.sum(0), mean=lambda x: x.mean(), prod=lambda x: x.prod(1), amax=lambda x: x.amax(0), amin=lambda x: x.amin(), max=lambda x: x.max(),
    aminmax=lambda x: torch.stack(tuple(x.aminmax())), any=lambda x: x.any(1), all=lambda x: x.all(), count=lambda x: x.count_nonzero(),
    nansum=lambda x: x.nansum(0), nanmean=lambda x: x.nanmean(), vecdot=lambda x: torch.linalg.vecdot(x, x), norm=lambda x: norm(x, 2, 0),
    norm_3=lambda x: norm(x, 3), norm_1=lambda x: norm(x, 1), norm_0=lambda x: norm(x, 0, 1), largest=lambda x: norm(x, float("inf")),
    norm_of_norms=lambda x: norm(torch.stack([norm(x, 2, 0), 2 * norm(x, 2, 0)])), flipped=lambda x: x.flip(0).roll(1, 1).sum(0),
    half=lambda x: norm(x, 2, 1) / 2 + norm(x, 2, 1), positions=lambda x: torch.searchsorted(x[0].sort().values, x), among=lambda x: torch.isin(x, x[0], invert=True),
)
rank = dist.get_rank()
own = numbers(rank + 1, 4, 5) - 0.4
parts = [DTensor.from_local(own, mesh, [Partial(how)]) for how in ("sum", "avg", "max", "min", "product")]
cut = [distribute_tensor(numbers(1, 4, 5) - 0.4, mesh, place) for place in PLACES]
for (name, call), x in itertools.product(calls.items(), parts + cut):
    expected, found = call(x.full_tensor()), call(x).full_tensor()
    assert torch.allclose(found.double(), expected.double()), (name, x.placements, found, expected)
for place in PLACES:
    plain, x = (numbers(1, 4, 5) - 0.4).requires_grad_(), distribute_tensor(numbers(1, 4, 5) - 0.4, mesh, place).requires_grad_()
    for each in (plain, x):
        (norm(each, 3) * norm(each, 2, 0).sum() + each.max() + each.aminmax().min).backward()
    assert torch.allclose(x.grad.full_tensor(), plain.grad), place
print("done")
"""


@pytest.mark.parametrize("size", [2, 3])
def test_reductions_of_parts(tmp_path, size):
    """What is linear works on summands, a maximum on maxima, a norm on norms, and nothing else."""
    check(REDUCTIONS, size, tmp_path)


FILES = """
import io
mesh = dist.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
cut = distribute_tensor(numbers(1, 5, 3), mesh, [Shard(0), Shard(1)])
part = distribute_tensor(numbers(2, 5, 3), mesh["dp"], [Shard(1)])
file = io.BytesIO()
torch.save([cut, part], file)
file.seek(0)
cut_again, part_again = torch.load(file)
assert torch.equal(cut_again.to_local(), cut.to_local()) and part_again.device_mesh == mesh["dp"]
assert torch.equal(cut_again.full_tensor(), numbers(1, 5, 3)) and torch.equal(part_again.full_tensor(), numbers(2, 5, 3))
assert torch.equal((cut + cut_again).full_tensor(), 2 * numbers(1, 5, 3))
print("done")
"""


@pytest.mark.parametrize("size", [2, 4])
def test_files_of_parts(tmp_path, size):
    """Each rank saves and loads its part; the groups of the mesh are made when they are needed."""
    assert said(start(SETUP + FILES, size, tmp_path)) == ["done\n"] * size


def test_training_a_distributed_module(tmp_path):
    """The weights of a model are cut, and so are its batches; the curve is that of the plain model."""
    program = (
        SETUP
        + """
from weft.distributed.tensor import distribute_module
mesh = dist.init_device_mesh("cpu", (2,))

def made():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3)).double()

def cut(name, module, mesh):
    if isinstance(module, torch.nn.Linear):
        place = Shard(0) if name == "0" else Shard(1)
        module.weight = torch.nn.Parameter(distribute_tensor(module.weight.data, mesh, [place]))

def curve(model, x):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    losses = []
    for _ in range(4):
        loss = model(x).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float((loss.full_tensor() if isinstance(loss, DTensor) else loss).detach()))
    return losses

x = numbers(3, 4, 6)
plain, parallel = made(), distribute_module(made(), mesh, cut)
print(parallel[0].weight.to_local().shape, parallel[3].weight.to_local().shape)
expected = curve(plain, x)
for place in ([Shard(0)], [R]):
    found = curve(distribute_module(made(), mesh, cut), distribute_tensor(x, mesh, place))
    print(max(abs(a - b) for a, b in zip(expected, found)) < 1e-9)
"""
    )
    assert said(start(program, 2, tmp_path)) == ["torch.Size([4, 6]) torch.Size([3, 4])\nTrue\nTrue\n"] * 2


def test_tensor_parallel_transformer_block(tmp_path):
    """As PyTorch's tutorial cuts a block: attention and feed-forward by columns and rows, norms along the sequence."""
    program = (
        SETUP
        + """
from weft.distributed.tensor.parallel import (
    ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, parallelize_module
)
mesh = dist.init_device_mesh("cpu", (2,))

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(10, 8)
        self.norm = torch.nn.LayerNorm(8)
        self.qkv = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(3))
        self.out = torch.nn.Linear(8, 8)
        self.up, self.down = torch.nn.Linear(8, 12), torch.nn.Linear(12, 8)
        self.double()

    def forward(self, ids):
        x = self.tokens(ids)
        h = self.norm(x)
        q, k, v = (each(h).unflatten(-1, (-1, 2)).transpose(1, 2) for each in self.qkv)
        a = f.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.out(a)
        return x + self.down(f.gelu(self.up(x)))

def grads(block, ids):
    result = block(ids)
    (result * (torch.arange(result.numel()).reshape(result.shape) % 3 + 1)).sum().backward()
    full = lambda each: each.full_tensor() if isinstance(each, DTensor) else each
    return result.detach(), [full(each.grad) for each in block.parameters()]

torch.manual_seed(1)
plain = Block()
cut = Block()
cut.load_state_dict(plain.state_dict())
plan = {
    "tokens": RowwiseParallel(input_layouts=R),
    "qkv.*": ColwiseParallel(),
    "out": RowwiseParallel(),
    "up": ColwiseParallel(),
    "down": RowwiseParallel(),
}
parallelize_module(cut, mesh, plan)
print(tuple(cut.up.weight.to_local().shape), tuple(cut.down.weight.to_local().shape))
ids = (torch.arange(12) * 5 % 10).reshape(2, 6)
(expected, theirs), (found, ours) = grads(plain, ids), grads(cut, ids)
print(torch.allclose(expected, found), all(torch.allclose(a, b) for a, b in zip(theirs, ours)))

norms = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 4)).double()
x = numbers(2, 2, 6, 8)
expected = norms(x)
plan = {"0": SequenceParallel(), "1": ColwiseParallel(input_layouts=Shard(1), output_layouts=R)}
parallelize_module(norms, mesh, plan)
parallelize_module(norms, mesh, PrepareModuleInput(input_layouts=R, desired_input_layouts=Shard(1)))
print(torch.allclose(norms(x), expected))
"""
    )
    assert said(start(program, 2, tmp_path)) == ["(6, 8) (8, 6)\nTrue True\nTrue\n"] * 2
