"""Operations on the device "meta" give PyTorch's shapes, strides and dtypes; those that need values say so."""

import itertools
import operator

import pytest
import torch
from oracle import name_of, strides_that_count
from quick_torch import op_db

import weft
from weft.utils._python_dispatch import TorchDispatchMode

SAMPLES = 2  # of each op

# Some samples of these have shapes, or numbers, that values decide.
NEEDS_VALUES = """
item equal allclose nonzero argwhere masked_select unique unique_consecutive to_sparse bincount
narrow tensor_split linspace logspace repeat_interleave nn.functional.one_hot
""".split()

# The result is not a tensor.
LEFT_OUT = ("broadcast_shapes",)


def find(module, name):
    """The function of this name, or the method."""
    try:
        return operator.attrgetter(name)(module)
    except AttributeError:
        return getattr(module.Tensor, name.removeprefix("Tensor."), None)


def on_meta(value):
    if isinstance(value, torch.Tensor):
        dtype = getattr(weft, name_of(value.dtype))
        made = weft.empty_strided(tuple(value.shape), value.stride(), dtype=dtype, device="meta")
        return made.conj() if value.is_conj() else made
    if isinstance(value, torch.dtype):
        return getattr(weft, name_of(value))
    if isinstance(value, torch.memory_format):
        return getattr(weft, str(value).removeprefix("torch."))
    if isinstance(value, torch.Size):
        return weft.Size(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(on_meta, value))
    return "meta" if value == "cpu" else value


def is_portable(value):
    """Whether `on_meta` can convert it."""
    if isinstance(value, torch.Tensor):
        return value.layout is torch.strided
    if isinstance(value, (list, tuple)):
        return all(map(is_portable, value))
    return not isinstance(value, (torch.nn.Module, torch.layout)) and not callable(value)


def tensors(value):
    if isinstance(value, (torch.Tensor, weft.Tensor)):
        return [value]
    return [each for item in value for each in tensors(item)] if isinstance(value, (list, tuple)) else []


def ops():
    for op in op_db():
        own = find(torch, op.name)
        private = op.name.startswith("_") and not op.name.startswith("__")
        if private or op.name in LEFT_OUT or not op.supported_dtypes("cpu") or not find(weft, op.name):
            continue
        if op.op == own:  # samples of some ops are of another function, which calls this one
            yield pytest.param(op, id=f"{op.name}-{op.variant_test_name}")


def first_samples(op):
    dtypes = op.supported_dtypes("cpu")
    dtype = next((each for each in (torch.float32, torch.int64) if each in dtypes), next(iter(dtypes)))
    found = itertools.islice(op.sample_inputs("cpu", dtype), 12)
    usable = [
        each for each in found if all(map(is_portable, (each.input, *each.args, *each.kwargs.values())))
    ]
    return usable[:: max(len(usable) // SAMPLES, 1)][:SAMPLES]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", list(ops()))
def test_specs_are_those_of_pytorch(op):
    torch.manual_seed(0)
    for sample in first_samples(op):
        args = (sample.input, *sample.args)
        mine = on_meta(args), {key: on_meta(value) for key, value in sample.kwargs.items()}
        if not tensors(args):
            mine[1]["device"] = "meta"
        try:
            expected = tensors(op.op(*args, **sample.kwargs))
        except RuntimeError:
            continue  # PyTorch refuses its own sample
        try:
            got = tensors(find(weft, op.name)(*mine[0], **mine[1]))
        except (NotImplementedError, RuntimeError) as error:
            assert op.name in NEEDS_VALUES and "meta" in str(error), (error, sample)
            continue
        for one, other in zip(got, expected, strict=True):
            assert one.is_meta, sample
            assert name_of(one.dtype) == name_of(other.dtype), sample
            assert tuple(one.shape) == tuple(other.shape), sample
            assert strides_that_count(one) == strides_that_count(other), sample


X = weft.empty(3, 4, device="meta")


@pytest.mark.parametrize(
    "call",
    [
        lambda: X.nonzero(),
        lambda: X[X > 0],
        lambda: X.masked_select(X > 0),
        lambda: X.unique(),
        lambda: weft.bincount(X[0].long()),
        lambda: X[0, 0].item(),
        lambda: bool(X[0, 0]),
        lambda: X.tolist(),
        lambda: weft.equal(X, X),
        lambda: weft.allclose(X, X),
        lambda: X.repeat_interleave(X[0].long(), 1),
        lambda: weft.nn.functional.one_hot(X[0].long()),
        lambda: weft.linalg.lstsq(X.T, weft.empty(4, 2, device="meta"), driver="gelsd"),
    ],
)
def test_operations_that_need_values_say_so(call):
    with pytest.raises((NotImplementedError, RuntimeError), match="meta"):
        call()


def test_sizes_that_arguments_give_need_no_values():
    counts = X[0].long()
    assert X.repeat_interleave(counts, 1, output_size=7).shape == (3, 7)
    assert weft.nn.functional.one_hot(counts, 5).shape == (4, 5)
    assert weft.nonzero_static(X, size=6).shape == (6, 2)
    probabilities, targets = weft.empty(9, 3, 5, device="meta"), weft.empty(3, 4, device="meta").long()
    loss = weft.nn.functional.ctc_loss(probabilities, targets, counts[:3], counts[:3], reduction="none")
    assert loss.is_meta and loss.shape == (3,)


@pytest.mark.parametrize(
    "name", ["svd", "qr", "eigh", "inv", "det", "cholesky", "slogdet", "pinv", "matrix_exp"]
)
def test_gradients_of_library_operations(name):
    x = weft.empty(2, 3, 3, device="meta", requires_grad=True)
    results = tensors(getattr(weft.linalg, name)(x))
    sum(each.sum() for each in results if each.requires_grad).backward()
    assert x.grad.is_meta and x.grad.shape == x.shape


def test_gradients_of_elements_that_values_choose():
    x, source, value = (weft.empty(sizes, device="meta", requires_grad=True) for sizes in ((3, 4), (20,), ()))
    x.masked_scatter(X > 0, source).sum().backward()
    assert source.grad.is_meta and source.grad.shape == (20,)
    x.index_fill(1, X[0].long(), value).sum().backward()
    assert value.grad.is_meta and value.grad.shape == ()


def test_no_memory_is_allocated():
    n = 10**7  # a matrix of 400 TB
    matrix = weft.empty(n, n, device="meta")
    values, vectors = weft.linalg.eigh(matrix)
    assert values.shape == (n,) and vectors.stride() == (1, n)
    assert weft.fft.rfft(matrix).shape == (n, n // 2 + 1)
    assert [each.shape for each in matrix.sort(0)] == [(n, n)] * 2
    assert [each.shape for each in matrix.topk(5)] == [(n, 5)] * 2


def test_attention_of_many_positions_is_one_step():
    """Blocks that fit into the caches would be 65536 for 64 heads of 4096 positions."""
    query, key = (weft.empty(1, 64, 4096, 128, device="meta", requires_grad=True) for _ in range(2))
    steps = []

    class Steps(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            steps.append(func._opname)
            return func(*args, **kwargs or {})

    with Steps():
        weft.nn.functional.scaled_dot_product_attention(query, key, key, is_causal=True).sum().backward()
    operator = "_scaled_dot_product_flash_attention_for_cpu"
    assert steps.count(operator) == steps.count(f"{operator}_backward") == 1
    assert len(steps) < 20
    assert query.grad.shape == query.shape


class Block(weft.nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.norm = weft.nn.RMSNorm(width)
        self.up = weft.nn.Linear(width, inner, bias=False)
        self.down = weft.nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return x + self.down(weft.nn.functional.silu(self.up(self.norm(x))))


def blocks(width, inner, count, device):
    with weft.device(device):
        return weft.nn.Sequential(*[Block(width, inner) for _ in range(count)])


def test_a_large_model_is_built_counted_and_trained_without_memory():
    model = blocks(8192, 57344, 75, "meta")
    assert sum(each.numel() for each in model.parameters()) == 75 * (2 * 8192 * 57344 + 8192)
    optimizer = weft.optim.AdamW(model.parameters())
    out = model(weft.empty(4, 8192, device="meta"))
    out.sum().backward()
    optimizer.step()
    assert out.is_meta and all(each.grad.is_meta for each in model.parameters())


def test_models_are_materialised():
    there = blocks(4, 6, 2, "cpu")
    x = weft.randn(3, 4)
    expected = there(x)
    assigned = blocks(4, 6, 2, "meta")
    assigned.load_state_dict(there.state_dict(), assign=True)
    emptied = blocks(4, 6, 2, "meta").to_empty(device="cpu")
    emptied.load_state_dict(there.state_dict())
    for model in (assigned, emptied):
        assert weft.equal(model(x), expected)
        assert all(type(each) is weft.nn.Parameter and not each.is_meta for each in model.parameters())
    assert weft.nn.utils.skip_init(weft.nn.Linear, 4, 6).weight.device.type == "cpu"
    with pytest.raises(NotImplementedError, match="to_empty"):
        blocks(4, 6, 1, "meta").to("cpu")
