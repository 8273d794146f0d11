"""What a beginner gets wrong: the errors of both libraries have the same type, and say the same.

An error says the same if its message has all numbers, shapes, dtypes and names of parameters of the first line of PyTorch's.
"""

import re
import warnings

import pytest
import torch

import weft

MISTAKES = """
# Making tensors
torch.zeros(2, 3, dytpe=torch.float32)
torch.zeros(2, 3, dtype="float32")
torch.zeros(2, 3, device="gpu")
torch.zeros(2, 3, require_grad=True)
torch.tensor([1, 2], require_grad=True)
torch.tensor([1, 2], requires_grad=True)
torch.tensor([[1, 2], [3]])
torch.tensor(1, 2)
torch.tensor("abc")
torch.tensor()
torch.tensor({"a": 1})
torch.rand((2, 3), (4,))
torch.rand("2")
torch.rand(2.5)
torch.randint(10)
torch.randint(0, 10)
torch.randint(5, 2, (3,))
torch.randn(-1)
torch.arange()
torch.arange(0, 10, 0)
torch.arange(5, 0)
torch.linspace(0, 1)
torch.eye("3")
torch.full((2, 3))
torch.full(2, 3)
torch.from_numpy([1, 2])
torch.manual_seed("a")
torch.FloatTensor([1, 2], [3])
torch.Tensor("a")
torch.Tensor([1, 2], dtype=torch.int32)
torch.normal(0, 1)
torch.bernoulli(torch.tensor([2.0]))
torch.multinomial(torch.tensor([-1.0, 2.0]), 1)
torch.empty(2, devic="cpu")
torch.randn(2, require_grad=True)
torch.randint(3, (2,), require_grad=True)
torch.rand()
torch.Tensor([1], requires_grad=True)
# Devices, dtypes and conversions
torch.ones(2, 3).item()
float(torch.ones(2))
int(torch.ones(2, 2))
bool(torch.ones(2))
if torch.ones(2) > 0: pass
len(torch.tensor(1))
list(torch.tensor(1))
torch.ones(2, requires_grad=True).numpy()
torch.ones(2).to("gpu")
torch.ones(2).to("cpu", torch.float32, 3, 4, 5)
torch.ones(2).to(dtype="int")
torch.ones(2).astype("float32")
torch.ones(2).type("float")
torch.device("gpu:0")
torch.device("cuda:x")
torch.dtype("float32")
torch.vmap(lambda x: x.item())(torch.ones(2))
# Layers and their functions
torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.ones(2))
torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 3]))
torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 1, 2]))
torch.nn.functional.mse_loss(torch.ones(2), torch.ones(3))
torch.nn.functional.binary_cross_entropy(torch.full((2,), 2.0), torch.ones(2))
torch.nn.functional.binary_cross_entropy(torch.ones(2), torch.ones(2, dtype=torch.int64))
torch.nn.functional.one_hot(torch.ones(2))
torch.nn.functional.embedding(torch.tensor([5]), torch.ones(3, 2))
torch.nn.functional.embedding(torch.tensor([0.5]), torch.ones(3, 2))
torch.nn.Linear(3)
torch.nn.Linear(3, 4)(torch.ones(2, 5))
torch.nn.Linear(3, 4)(torch.ones(2, 3, dtype=torch.float64))
torch.nn.Linear(3, 4)(torch.ones(2, 3, dtype=torch.int64))
torch.nn.Linear(3, 4, baias=False)
torch.nn.Linear(in_feature=3, out_features=4)
torch.nn.Linear(3.0, 4)
torch.nn.Conv2d(3, 4)
torch.nn.Conv2d(3, 4, 3)(torch.ones(1, 1, 8, 8))
torch.nn.Conv2d(3, 4, 3)(torch.ones(8, 8))
torch.nn.Conv2d(3, 4, 3)(torch.ones(1, 3, 2, 2))
torch.nn.Conv2d(3, 4, 3, pading=1)
torch.nn.BatchNorm1d(3)(torch.ones(2, 4))
torch.nn.BatchNorm1d(3)(torch.ones(1, 3))
torch.nn.LayerNorm(5)(torch.ones(2, 3))
torch.nn.Dropout(2)
torch.nn.LSTM(3, 4)(torch.ones(2, 5))
torch.nn.Embedding(3, 2)(torch.tensor([3]))
torch.nn.Embedding(3, 2)(torch.tensor([0.5]))
torch.nn.MultiheadAttention(5, 2)
torch.nn.Sequential(torch.nn.Linear(2, 2), torch.relu)
torch.nn.Sequential([torch.nn.Linear(2, 2)])
torch.nn.Module()(torch.ones(2))
torch.nn.Linear(2, 2).weights
torch.nn.Linear(2, 2).load_state_dict({"weight": torch.ones(3, 3), "bais": torch.ones(2)})
torch.nn.functional.relu()
torch.nn.functional.dropout(torch.ones(2), p=2)
torch.nn.functional.interpolate(torch.ones(1, 1, 4, 4))
torch.nn.functional.pad(torch.ones(2), (1,))
torch.nn.LSTM(3, 4, batch_frst=True)
torch.nn.Dropout(prob=0.5)
torch.nn.ReLU(inplac=True)
torch.nn.functional.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3), strides=2)
type("N", (torch.nn.Module,), {})()(torch.ones(2))
type("N", (torch.nn.Module,), {"__init__": lambda self: setattr(self, "l", torch.nn.Linear(2, 2))})()
# Optimizers, data and files
torch.optim.SGD(torch.nn.Linear(2, 2), lr=0.1)
torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), learning_rate=0.1)
torch.optim.SGD([], lr=0.1)
torch.optim.SGD([torch.ones(2)], lr=-1)
torch.optim.Adam(torch.nn.Linear(2, 2).parameters(), lr="0.1")
torch.optim.Adma
torch.load("missing.pt")
torch.save(torch.ones(2))
torch.utils.data.DataLoader([1, 2, 3], batch_sise=2)
torch.utils.data.DataLoader([1, 2, 3], batch_size=0)
list(torch.utils.data.DataLoader([torch.ones(2), torch.ones(3)], batch_size=2))
torch.utils.data.TensorDataset(torch.ones(2), torch.ones(3))
torch.utils.data.random_split([1, 2, 3], [1, 1])
# Gradients
torch.ones(2, 3).backward()
torch.ones(2, 3, requires_grad=True).backward()
x = torch.ones(2, requires_grad=True); x += 1
x = torch.ones(2, requires_grad=True); y = x.exp(); y += 1; y.sum().backward()
x = torch.ones(2, requires_grad=True); y = (x * x).sum(); y.backward(); y.backward()
torch.autograd.grad(torch.ones(1), torch.ones(1))
torch.func.grad(lambda x: x)(torch.ones(2))
# Indexing
torch.ones(2, 3)[5]
torch.ones(2, 3)[0, 0, 0]
torch.ones(2, 3)["a"]
torch.ones(2, 3)[1.5]
torch.ones(2, 3)[torch.tensor([0.5])]
torch.ones(2, 3)[torch.tensor([5])]
torch.ones(2, 3)[torch.ones(3, dtype=torch.bool)]
torch.ones(2, 3)[::-1]
x = torch.ones(2, 3); x[0] = torch.ones(4)
x = torch.ones(2, 3); x[5] = 1
torch.gather(torch.ones(2, 3), 1, torch.ones(2, 3))
torch.gather(torch.ones(2, 3), 1, torch.tensor([[7]]))
torch.index_select(torch.ones(2, 3), 0, torch.tensor([[0]]))
torch.topk(torch.ones(3), 5)
torch.ones(2, 3)[0, :, :, 0]
# Shapes
torch.cat(torch.ones(2), torch.ones(2))
torch.cat([torch.ones(2, 3), torch.ones(2, 4)])
torch.cat([torch.ones(2), 3])
torch.stack([torch.ones(2), torch.ones(3)])
torch.stack(torch.ones(2), torch.ones(2))
torch.stack([])
torch.cat([])
torch.ones(2, 3).view(5)
torch.ones(2, 3).view(-1, -1)
torch.ones(2, 3).t().view(6)
torch.ones(2, 3).reshape(4)
torch.ones(2, 3).reshape(-1, 4)
torch.ones(2, 3).transpose(0, 3)
torch.ones(2, 3).transpose(0)
torch.ones(2, 3).permute(0)
torch.ones(2, 3).permute(0, 0)
torch.ones(2, 3).squeeze(4)
torch.ones(2, 3).unsqueeze(5)
torch.ones(2, 3).unsqueeze()
torch.ones(2, 3).expand(3, 3)
torch.ones(2, 3).repeat(2)
torch.ones(2).shape()
torch.ones(2, 3).size(5)
torch.split(torch.ones(5), [2, 2])
torch.chunk(torch.ones(5), 0)
# Arithmetic and reductions
torch.ones(2, 3) + torch.ones(4)
torch.ones(2, 3) @ torch.ones(2, 3)
torch.matmul(torch.ones(3), torch.ones(4))
torch.mm(torch.ones(3), torch.ones(3, 3))
torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 3, 4))
torch.sum(torch.ones(2, 3), dims=1)
torch.sum(torch.ones(2, 3), axes=1)
torch.sum(torch.ones(2, 3), dim=2)
torch.ones(2, 3).mean(dim=5)
torch.tensor([1, 2]).mean()
torch.ones(2, 3).sofmax(1)
torch.sofmax(torch.ones(2))
torch.softmax(torch.ones(2))
torch.ones(2, 3).softmax()
torch.ones(2).add(dims=1)
torch.add(torch.ones(2), aplha=2)
torch.add(torch.ones(2), torch.ones(2), aplha=2)
torch.add(torch.ones(2))
torch.add(torch.ones(2), "a")
torch.ones(2) + "a"
torch.ones(2) + None
torch.ones(2) + [1, 2]
"a" + torch.ones(2)
torch.exp(2)
torch.exp([1.0, 2.0])
torch.exp("a")
torch.exp()
torch.exp(torch.ones(2), torch.ones(2))
torch.max(torch.ones(0))
torch.argmax(torch.ones(0))
torch.clamp(torch.ones(2))
torch.where(torch.ones(2), 1, 2)
torch.where(torch.ones(2) > 0, torch.ones(3), torch.ones(2))
torch.einsum("ij,jk", torch.ones(2, 3))
torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(4, 5))
torch.onnx.exprot
torch.linalg.inv(torch.ones(2, 3))
torch.linalg.inv(torch.ones(2, 2))
torch.linalg.cholesky(-torch.eye(2))
torch.linalg.solve(torch.ones(2, 2), torch.ones(3))
torch.inverse(torch.eye(2, dtype=torch.int64))
torch.ones(2, 3).fill_("a")
torch.ones(2, 3).copy_(torch.ones(4))
torch.ones(2).masked_fill(torch.ones(2), 0)
torch.sort(torch.ones(3), 2)
torch.tensor([1., 2.]) & 1
torch.tensor([1, 2]) // 0
~torch.ones(2)
torch.ones(2) << 1
torch.ones(2, dtype=torch.int32).normal_()
torch.ones(2).var(unbias=True)
torch.ones(2).uniform_(generato=None)
"""

# Code -> what the message says instead of PyTorch's words.
BETTER = {
    'torch.ones(2).to("cpu", torch.float32, 3, 4, 5)': "expected one of:\n * (device, dtype, non_blocking",
    "torch.ones(2).add(dims=1)": "unexpected keyword argument 'dims'",  # PyTorch: `other` is missing
    "torch.add(torch.ones(2), aplha=2)": "unexpected keyword argument 'aplha'",  # the same
}

# Numbers, shapes, names of dtypes, words in quotes, and keywords with their values.
WORDS = re.compile(
    r"\[[\d, ]+\]|\((?:\d+, ?)+\d*\)|\d+x\d+|(?<![\w.])-?\d+(?:\.\d+)?(?!\w)|'\w+'|\"\w+\"|\w+(?==)|"
    r"\b(?:Float|Double|Half|Long|Int|Short|Bool|Byte|Char|u?int\d+|b?float\d+)\b"
)


def error_of(code: str, library) -> Exception:
    with warnings.catch_warnings(), pytest.raises(Exception) as raised:
        warnings.simplefilter("ignore")
        exec(code, {"torch": library})
    return raised.value


def words_of(message: str) -> set[str]:
    """What the first line of PyTorch's message mentions."""
    return {word.strip("'\"") for word in WORDS.findall(message.partition("\n")[0])}


def says(message: str, word: str) -> bool:
    if word[0] in "([":
        return word in message
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", message) is not None


@pytest.mark.parametrize("code", [line for line in MISTAKES.strip().splitlines() if line[0] != "#"])
def test_the_error_says_what_pytorch_says(code):
    theirs, ours = error_of(code, torch), error_of(code, weft)
    assert type(ours).__name__ == type(theirs).__name__
    message = str(ours).replace("weft", "torch")
    if code in BETTER:
        assert BETTER[code] in message
    else:
        assert [word for word in words_of(str(theirs)) if not says(message, word)] == []


def test_words():
    message = (
        "size of a (3) must be 4 at [2, 3], got -1.5: dtype=Float for argument 'dim' of 0-dim, 2d (2x3)\nno 7"
    )
    assert words_of(message) == {"3", "4", "[2, 3]", "-1.5", "dtype", "Float", "dim", "0", "2x3"}
    assert says("got 3", "3") and not says("got 13", "3")
