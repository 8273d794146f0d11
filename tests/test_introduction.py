"""What introductions to PyTorch's tensors teach: every chapter prints under `weft run` what it prints under PyTorch.

The chapters are one script, so that each of the two libraries is started once.
"""

from difflib import unified_diff

CHAPTERS = {
    "storage": """
import torch
grid = torch.arange(12.0).view(3, 4)
memory = grid.storage()
print(memory, memory[5], len(memory))
memory[5] = -5.5
print(grid)
corner = grid[1:, 2:]
print(corner.storage_offset(), corner.stride(), corner.size(), corner.dim(), corner.numel())
i, j = 1, 0
print(memory[corner.storage_offset() + i * corner.stride()[0] + j * corner.stride()[1]] == corner[i, j].item())
corner[0, 0] = 100
print(grid, grid[2].clone().storage_offset(), id(grid.storage()) == id(corner.storage()))
print(grid.storage().data_ptr() == grid.T.storage().data_ptr(), grid.data_ptr() == corner.data_ptr())
""",
    "views": """
cube = torch.arange(24).reshape(2, 3, 4)
for dims in ((0, 1), (0, 2), (1, 2), (-1, 0)):
    turned = cube.transpose(*dims)
    print(dims, turned.shape, turned.stride(), turned.is_contiguous(), torch.transpose(cube, *dims).shape)
table = cube[0]
print(table.t(), table.T.stride(), torch.equal(torch.t(table), table.transpose(0, 1)))
packed = table.t().contiguous()
print(packed.stride(), table.contiguous() is table, packed.storage().data_ptr() == table.storage().data_ptr())
print(cube.view(-1).shape, cube.view(4, -1).shape, table.view(12)[:5])
print(cube.reshape(6, 4).data_ptr() == cube.data_ptr(), table.t().reshape(12).data_ptr() == table.data_ptr())
attempt(lambda: table.t().view(12))
attempt(lambda: table.view(5, -1))
attempt(lambda: cube.t())
column = torch.arange(3)
print(column.unsqueeze(0).shape, column.unsqueeze(-1).unsqueeze(-1).shape, torch.reshape(column, (3, 1)).stride())
print(column.unsqueeze(1).squeeze(1).shape, table.squeeze(0).shape, column.unsqueeze_(0).shape, column.squeeze_().shape)
attempt(lambda: column.unsqueeze(3))
""",
    "dtypes": """
names = "bool uint8 int8 int16 short int32 int int64 long float16 half bfloat16 float32 float float64 double"
for name in names.split():
    dtype = getattr(torch, name)
    print(name, dtype, dtype.itemsize, torch.ones(2, dtype=dtype))
for value in (1, 1.5, True, [1, 2.5], [[True], [False]], (3, 4), [(1, 2), [3, 4]], []):
    print(torch.tensor(value), torch.tensor(value).dtype, torch.tensor(value).shape)
print(torch.get_default_dtype(), type(torch.rand(1)), isinstance(torch.ones(1), torch.FloatTensor))
attempt(lambda: torch.tensor([[1, 2], [3]]))
""",
    "creation": """
print(torch.zeros(2, 3), torch.ones((2, 1, 2)), torch.eye(3), torch.zeros(2, 0, 3), torch.empty(3, 4).shape)
print(torch.arange(4), torch.arange(3.0), torch.arange(9, 2, -3), torch.arange(0, 1, 0.25))
print(torch.linspace(-1, 1, 5), torch.logspace(-2, 4, 4), torch.linspace(3, 10, 4))
like = torch.ones(2, 2, dtype=torch.float64)
print(torch.zeros_like(like), torch.ones_like(like, dtype=torch.int16), torch.empty_like(like.t()).stride())
nested = [[1, 2], [3, 4]]
copied = torch.tensor(nested)
nested[0][0] = 9
print(copied, torch.zeros(2, out=torch.empty(2)), torch.tensor(7), torch.tensor(7).item())
attempt(lambda: torch.zeros(-1))
""",
    "random numbers": """
for seed in (0, 1729, -3, 2**40):
    torch.manual_seed(seed)
    print(torch.rand(2, 3), torch.rand(1).item(), torch.rand((2,), dtype=torch.float64), torch.rand(0))
    print(torch.randn(3), torch.randn(4, 5), torch.randn(2, dtype=torch.float64), torch.randperm(7))
    print(torch.rand_like(torch.ones(3)), torch.randn_like(torch.ones(2, 2)), torch.randint(10, (4,)))
    print(torch.normal(mean=1, std=0.5, size=(2, 3)), torch.rand(2, out=torch.zeros(2)), torch.rand(1, 1, 1, 1))
torch.manual_seed(5)
first = torch.randn(300)
torch.manual_seed(5)
print(torch.equal(first, torch.randn(300)), first[-4:], torch.rand(2, 2, dtype=torch.float16))
""",
    "printing": """
torch.manual_seed(2)
for tensor in (
    torch.tensor([1.0, -0.0, 250.0]), torch.tensor([0.5, 1e-3]), torch.tensor([1e-6, 1.0]), torch.tensor([1e9, 1.0]),
    torch.tensor([3.0, float("nan"), float("inf")]), torch.tensor([True, False]), torch.tensor([-1, 100]),
    torch.rand(1, 23), torch.rand(40, 40), torch.zeros(2, 2, 2, 2), torch.arange(1001), torch.tensor(2.5),
    torch.tensor([1 + 2j, -0.5j]), torch.rand(2, dtype=torch.float64) * 1e5, torch.tensor([]), torch.zeros(0, 3),
):
    print(tensor)
    print(f"{tensor.dtype}, {tensor.shape}, {tensor.device}, {tensor.numel()} elements")
print("{} {:.4f}".format(torch.device("cpu"), torch.tensor(2.0).sqrt().item()), [torch.ones(1)], (torch.ones(2, 2),))
print(torch.max(torch.tensor([[1, 5], [7, 2]]), dim=1))
""",
    "indexing": """
board = torch.arange(20).view(4, 5)
print(board[:], board[:, 2], board[1, :], board[2, 3], board[-1], board[-1:], board[0:3:2], board[:-1, 1:4:2])
print(board[None].shape, board[..., -1], board[1:, 0].storage_offset(), float(board[1][1]), len(board))
print(board[[0, 2]], board[board > 13], board[torch.tensor([1, -1]), torch.tensor([0, 4])])
board[2] = 0
board[0][1] = 561
board[:, -1] = torch.tensor([1, 2, 3, 4])
board[board == 7] = -7
print(board, [row.sum().item() for row in board])
print(torch.cat([board, board], dim=0).shape, torch.stack([board, board], 1).shape, torch.split(board, 3)[1])
attempt(lambda: board[4])
attempt(lambda: board[0, 0, 0])
attempt(lambda: board[::-1])
""",
    "operations": """
import math
ones, twos = torch.zeros(2, 2) + 1, torch.ones(2, 2) * 2
print((twos * 7 - ones) / 2, twos**2, twos**0.5, twos ** torch.tensor([[1, 2], [3, 4]]), 2 * twos, 1 - twos, 3 / twos)
signed = torch.tensor([[-1.5, 0.25, 2.0], [-0.5, 0.0, -3.0]])
print(abs(signed), torch.ceil(signed), torch.floor(signed), torch.clamp(signed, -1, 0.5), signed.add(1), -signed)
angles = torch.tensor([0, math.pi / 6, math.pi / 4, math.pi / 2])
print(angles.sin(), torch.asin(torch.sin(angles)), torch.cos(angles), torch.exp(angles), torch.sqrt(angles))
print(torch.bitwise_xor(torch.tensor([1, 5, 11]), torch.tensor([2, 7, 10])), torch.tensor([1, 2]) > torch.tensor(1))
print(torch.eq(signed, torch.zeros(1, 3)), signed < 0, torch.equal(signed, signed.clone()))
print(torch.allclose(signed, signed + 1e-9), (signed == signed).all())
cube = torch.arange(24.0).view(2, 3, 4)
print(cube.sum(), cube.sum(0), cube.sum((0, 2)), cube.sum(-1, keepdim=True), cube.mean(), cube.mean(-3), cube.prod(1))
print(torch.max(cube), torch.max(cube, 2).indices, torch.mean(cube, (1, 2)), torch.std(cube), torch.std(cube, 0))
print(torch.unique(torch.tensor([3, 1, 3, 2, 1])), cube.argmax(), cube.cumsum(1)[1], cube.min().item())
print((cube * torch.tensor([1.0, 10.0, 100.0]).unsqueeze(1)).sum(-2), (ones * torch.ones(3, 1, 1)).shape)
attempt(lambda: torch.ones(2, 3) * torch.ones(3, 2))
attempt(lambda: torch.ones(4, 3, 2) * torch.ones(4, 3))
attempt(lambda: torch.ones(4, 3, 2) + torch.ones(0))
print(torch.fft.fft(torch.tensor([1.0, 2.0, 4.0, 0.0])), torch.hamming_window(5))
attempt(lambda: torch.eig(ones))
total = torch.tensor(0.0, dtype=torch.float64)
samples = torch.rand(500, dtype=torch.float64)
for sample in samples:
    total += sample
print(torch.allclose(total, samples.sum()), abs(samples.float().sum() - total) < 1e-3)
""",
    "in place": """
counts, step = torch.tensor([1, 2]), torch.tensor([1, 1])
name = counts
address, place = id(counts), counts.data_ptr()
print(counts.add_(step) is counts, name, counts.mul_(3), counts.data_ptr() == place)
counts = counts.add(1)
print(id(counts) == address, name, counts, counts.zero_(), torch.sin_(torch.tensor([0.0, 0.5])))
product = torch.zeros(2, 2)
result = torch.matmul(torch.eye(2) * 3, torch.tensor([[1.0, 2.0], [3.0, 4.0]]), out=product)
print(result is product, product, torch.add(product, 1, out=product) is product, product)
attempt(lambda: torch.tensor([1, 2]).add_(0.5))
attempt(lambda: torch.ones(2).add_(torch.ones(3)))
attempt(lambda: torch.add(torch.ones(2), 1, out=torch.zeros(2, dtype=torch.int64)))
""",
    "conversion": """
values = torch.tensor([2.7, -2.7, 0.5, 255.0])
print(values.to(torch.int32), values.short(), values.to(dtype=torch.bool), values.half(), values.double(), values.int())
print(values.type(torch.float64), values.type(), values.to(torch.float32) is values, values.bfloat16(), values.long())
kinds = [torch.tensor([True]), torch.tensor([3], dtype=torch.uint8), torch.tensor([3], dtype=torch.int16)]
kinds += [torch.tensor([3]), torch.tensor([3.5], dtype=torch.float16), torch.tensor([3.5], dtype=torch.float64)]
print([[(a * b).dtype for b in kinds] for a in kinds])
print([(k + 1).dtype for k in kinds], [(k * 1.5).dtype for k in kinds], [(k / k).dtype for k in kinds])
print(torch.rand(3).to(device="cpu", dtype=torch.float16).dtype, torch.ones(2).cpu().device, torch.result_type(kinds[2], 1.0))
""",
    "linear algebra": """
system = torch.tensor([[4.0, 2.0, 0.0], [1.0, 3.0, 1.0], [0.0, 2.0, 5.0]])
solution = torch.tensor([1.0, -2.0, 3.0])
right = system @ solution
print(right, torch.linalg.solve(system, right).round(decimals=4), torch.allclose(system @ torch.linalg.inv(system), torch.eye(3), atol=1e-6))
torch.manual_seed(11)
batch, known = torch.randn(2, 3, 3), torch.randn(2, 3, 5)
print(batch, known, torch.allclose(torch.linalg.solve(batch, batch @ known), known, atol=1e-4))
print(torch.linalg.cross(torch.tensor([0.0, 1.0, 0.0]), torch.tensor([1.0, 0.0, 0.0])))
print(torch.linalg.matmul(torch.ones(2, 3), torch.full((3, 2), 2.0)), torch.matmul(torch.ones(4, 10, 6), torch.ones(6, 8)).shape)
print(torch.linalg.svd(torch.tensor([[3.0, 0.0], [4.0, 5.0]])))
print(torch.linalg.eigvals(torch.tensor([[0.0, 1.0], [-1.0, 0.0]])).imag.sort().values)
print(torch.tensordot(torch.arange(6.0).view(2, 3), torch.arange(12.0).view(3, 4), dims=1), torch.linalg.det(system))
operator = 2 * torch.eye(6).reshape(2, 3, 2, 3)
print(torch.linalg.tensorsolve(operator, torch.arange(6.0).view(2, 3)))
attempt(lambda: torch.ones(2, 3) @ torch.ones(2, 3))
attempt(lambda: torch.linalg.solve(torch.zeros(2, 2), torch.ones(2)))
""",
    "numpy": """
import numpy as np
tensor = torch.ones(2, 3)
array = tensor.numpy()
array[0, 0] = 7
tensor[1, 1] = 17
print(tensor, array, repr(array), id(tensor) == id(array), type(array))
tensor.zero_()
wide = np.linspace(0, 1, 4)
shared = torch.from_numpy(wide)
wide[1] = 23
shared[2] = -1
print(array, wide, shared, shared.to(torch.float32), np.array([1, 2]) + np.array([3, 4]), shared + shared)
print(torch.from_numpy(np.array([[1, 2], [3, 4]], dtype=np.float32)).t().stride(), np.sum(tensor.numpy()), np.asarray(shared))
print(torch.tensor(wide).dtype, torch.as_tensor(wide).data_ptr() == shared.data_ptr(), tensor.detach().cpu().numpy().dtype)
attempt(lambda: torch.from_numpy([1, 2]))
""",
    "einsum": """
picture, weights = torch.arange(2 * 3 * 2 * 2.0).view(2, 3, 2, 2), torch.tensor([0.25, 0.5, 0.25])
grey = torch.einsum("...chw,c->...hw", picture, weights)
print(grey, torch.equal(grey, (picture * weights.unsqueeze(-1).unsqueeze(-1)).sum(-3)))
print(torch.einsum("...chw,c->...hw", picture[0], weights))
a, b = torch.arange(6.0).view(2, 3), torch.arange(12.0).view(3, 4)
print(torch.einsum("ij,jk->ik", a, b), torch.einsum("ij->ji", a), torch.einsum("ij,ij->ij", a, a), torch.einsum("ij->", a))
x, y = torch.arange(24.0).view(2, 3, 4), torch.arange(40.0).view(2, 5, 4)
print(torch.einsum("bsh,bth->bst", x, y), torch.einsum("bsh->bs", x), torch.einsum("ii->i", torch.eye(3)))
attempt(lambda: torch.einsum("ij,jk->ik", a, a))
""",
    "benchmark": """
import re
import torch.utils.benchmark as benchmark
def loop(tensor, total):
    for i in range(len(tensor)):
        total += tensor[i]
    return total
def shown(measurement):
    # The first line is the object and its address.
    return re.sub(r"[0-9.]+ ([mun]?s)$", "TIME", "\\n".join(repr(measurement).splitlines()[1:]), flags=re.MULTILINE)
timers = [
    benchmark.Timer("loop(t, 0)", setup="from __main__ import loop", globals={"t": torch.rand(20)}),
    benchmark.Timer(stmt="a @ b", globals={"a": torch.eye(20), "b": torch.eye(20)}),
]
for timer in timers:
    print(shown(timer.timeit(100)))
print(timers[0].timeit(5).number_per_run, timers[1].timeit(3).median > 0)
""",
    "memory": """
block = torch.zeros(4, 8)
for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
    cast = block.to(dtype)
    print(dtype, cast.element_size(), cast.numel() * cast.element_size(), cast.nbytes, cast.untyped_storage().nbytes())
print(block[0].nbytes, block[0].untyped_storage().nbytes(), block.expand(3, 4, 8).nbytes)
print(torch.tensor([1e-8, 7e4]).half(), torch.tensor([1e-8, 7e4]).bfloat16(), torch.finfo(torch.float16))
""",
    "threads": """
torch.set_num_threads(4)
print(torch.get_num_threads(), torch.ones(300, 300).sum())
torch.set_num_threads(1)
print(torch.get_num_threads(), torch.ones(300, 300).sum())
attempt(lambda: torch.set_num_threads(0))
""",
    "devices": """
print(torch.device("cpu"), torch.device("cuda", 1), torch.device("cuda:0").index, torch.rand(1).device.type)
home = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
print(torch.ones(2, device=home).to(home).cpu(), torch.ones(1).to("cpu").device == torch.device("cpu"))
shape = torch.empty(3, 4, device="meta")
print(shape, (shape @ torch.empty(4, 5, device="meta")).shape, shape.device)
attempt(lambda: torch.device("gpu"))
""",
}  # fmt: skip

ATTEMPT = """
def attempt(action):
    try:
        action()
    except Exception as error:
        print("raises", type(error).__name__, str(error).splitlines()[0])
"""


def test_same_output_as_under_torch(run, run_weft, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(ATTEMPT + "".join(f"print('=== {name}')\n{text}" for name, text in CHAPTERS.items()))
    expected, got = run(script), run_weft("run", script)
    assert expected.returncode == 0, expected.stderr
    wanted, lines = expected.stdout.splitlines(), got.stdout.splitlines()
    # weft's messages begin as PyTorch's and may go on to say what those leave out.
    for i, (line, other) in enumerate(zip(lines, wanted, strict=False)):
        if other.startswith("raises ") and line.startswith(other):
            lines[i] = other
    difference = "\n".join(unified_diff(wanted, lines, "PyTorch", "weft", lineterm=""))
    assert not difference, difference
    assert (got.returncode, got.stderr) == (0, expected.stderr)
