import copy
import operator
import pickle
import warnings

import pytest
import torch
from torch.masked import as_masked_tensor as torch_as_masked
from torch.masked import masked_tensor as torch_masked

import weft
import weft.masked.maskedtensor as ours
from weft.masked.maskedtensor import binary, reductions, unary

pytestmark = pytest.mark.filterwarnings("ignore")

SIDES = (torch, weft)


def pair(function):
    """What the function makes of a masked tensor of PyTorch and of one of weft."""
    found = []
    for lib in SIDES:
        try:
            result = function(lib, example(lib))
            found.append(shown(result))
        except RecursionError:
            raise
        except Exception as error:
            found.append(type(error).__name__)
    return found


def shown(result):
    """The text of a result; the elements of masked tensors apart from what is masked out."""
    if isinstance(result, (tuple, list)):
        return [shown(each) for each in result]
    return f"{result} {getattr(result, 'dtype', '')}".replace("weft.", "torch.")


def example(lib, dtype="float32", requires_grad=False):
    data = lib.tensor([[0.25, 0.5, 2.0], [0.75, 1.5, 3.0]]).to(getattr(lib, dtype))
    mask = lib.tensor([[True, False, True], [False, True, True]])
    return lib.masked.masked_tensor(data, mask, requires_grad=requires_grad)


def check(function):
    theirs, own = pair(function)
    assert own == theirs


@pytest.mark.parametrize("name", unary.UNARY_NAMES)
def test_unary(name):
    arguments = {"clamp": (0.5, 1), "clip": (0.5,), "pow": (2,)}.get(name, ())
    check(lambda lib, x: getattr(lib, name)(x, *arguments))
    check(lambda lib, x: getattr(x, name)(*arguments))
    check(lambda lib, x: getattr(x, name)(x))


@pytest.mark.parametrize("name", unary.INPLACE_UNARY_NAMES)
def test_unary_in_place(name):
    arguments = {"clamp_": (0.5, 1), "clip_": (0.5,), "pow_": (2,)}.get(name, ())
    check(lambda lib, x: [getattr(x, name)(*arguments), x])


@pytest.mark.parametrize("name", binary.BINARY_NAMES)
def test_binary(name):
    check(lambda lib, x: getattr(lib, name)(x, x))
    check(lambda lib, x: getattr(lib, name)(x, x.get_data()))
    check(lambda lib, x: getattr(lib, name)(x.long(), x.long()))
    check(lambda lib, x: getattr(lib, name)(x, lib.masked.masked_tensor(x.get_data(), ~x.get_mask())))


OPERATORS = "add sub mul truediv floordiv mod pow matmul and_ or_ eq ne lt le gt ge".split()


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    apply = getattr(operator, name)
    check(lambda lib, x: apply(x, x))
    check(lambda lib, x: apply(x, 2))
    check(lambda lib, x: apply(x, lib.ones(3)))
    if name not in ("floordiv", "mod"):  # PyTorch raises AttributeError for numbers
        check(lambda lib, x: apply(2, x))
    if name not in ("lt", "le", "gt", "ge"):
        check(lambda lib, x: apply(lib.ones(2, 3), x))


@pytest.mark.parametrize("name", reductions.REDUCE_NAMES)
def test_reductions(name):
    check(lambda lib, x: getattr(lib, name)(x))
    check(lambda lib, x: getattr(x, name)(1))
    check(lambda lib, x: getattr(x, name)(dim=0, keepdim=True))
    check(lambda lib, x: getattr(x, name)(1, axis=2))
    if name != "mean":
        check(lambda lib, x: getattr(x.long(), name)(1).dtype if name not in ("var", "std") else None)
    check(lambda lib, x: getattr(lib.masked.masked_tensor(x.get_data(), x.get_mask() & False), name)(1))


def test_hidden_elements_do_not_decide_all():
    check(
        lambda lib, x: lib.masked.masked_tensor(lib.tensor([[True, False]]), lib.tensor([[True, False]])).all(
            1
        )
    )


MOVES = {
    "row": lambda x: x[0],
    "element": lambda x: x[0, 1],
    "columns": lambda x: x[:, 1:],
    "mask": lambda x: x[x.get_mask()],
    "new dimension": lambda x: x[None],
    "t": lambda x: x.t(),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "transpose": lambda x: x.transpose(0, 1),
    "permute": lambda x: x.permute(1, 0),
    "view": lambda x: x.view(3, 2),
    "reshape": lambda x: x.reshape(-1),
    "flatten": lambda x: x.flatten(),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "squeeze": lambda x: x.squeeze(0),
    "expand": lambda x: x.expand(2, 2, 3),
    "broadcast_to": lambda x: x.broadcast_to(2, 2, 3),
    "split": lambda x: x.split(1),
    "chunk": lambda x: x.chunk(2),
    "unbind": lambda x: x.unbind(),
    "narrow": lambda x: x.narrow(1, 0, 2),
    "unfold": lambda x: x.unfold(0, 1, 1),
    "contiguous": lambda x: x.t().contiguous(),
    "clone": lambda x: x.clone(),
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "double": lambda x: x.double(),
    "bool": lambda x: x.bool(),
    "to": lambda x: x.to("cpu"),
    "copies": lambda x: [copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))],
}


@pytest.mark.parametrize("name", MOVES)
def test_views_and_copies(name):
    check(lambda lib, x: MOVES[name](x))


FUNCTIONS = {
    "cat": lambda lib, x: lib.cat([x, x]),
    "stack": lambda lib, x: lib.stack([x, x], 1),
    "hstack": lambda lib, x: lib.hstack([x, x]),
    "where": lambda lib, x: lib.where(x.get_mask(), x, lib.masked.masked_tensor(x.get_data(), ~x.get_mask())),
    "where of a number": lambda lib, x: lib.where(x.get_mask(), x, 0),
    "where of a plain tensor": lambda lib, x: lib.where(x.get_data() > 1, x.get_data(), x),
    "softmax": lambda lib, x: lib.softmax(x, 1),
    "functional softmax": lambda lib, x: lib.nn.functional.softmax(x, dim=0),
    "log_softmax": lambda lib, x: lib.log_softmax(x, 1),
    "ones_like": lambda lib, x: lib.ones_like(x),
    "zeros_like": lambda lib, x: lib.zeros_like(x),
    "linear": lambda lib, x: lib.nn.functional.linear(x, lib.ones(1, 3)),
    "relu": lambda lib, x: lib.relu(x),
    "max": lambda lib, x: x.max(),
    "cumsum": lambda lib, x: x.cumsum(0),
    "float_power": lambda lib, x: lib.float_power(x, 2),
    "exp2": lambda lib, x: lib.special.exp2(x),
    "rsub": lambda lib, x: 1 - x,
    "kwargs": lambda lib, x: lib.add(x, x, alpha=2),
    "decimals": lambda lib, x: lib.round(x, decimals=1),
    "tensor bounds": lambda lib, x: x.clamp(min=lib.ones(2, 3)),
    "to_tensor": lambda lib, x: x.to_tensor(7),
    "get_data": lambda lib, x: x.get_data(),
    "get_mask": lambda lib, x: x.get_mask(),
    "unary": lambda lib, x: lib.masked.MaskedTensor.unary(lib.exp, lib.ones(2), lib.tensor([True, False])),
    "item": lambda lib, x: x[0, 0].item(),
    "masked item": lambda lib, x: x[0, 1].item(),
    "tolist": lambda lib, x: x.tolist(),
    "numpy": lambda lib, x: x.numpy(),
    "truth": lambda lib, x: bool(x),
    "copy_": lambda lib, x: x.copy_(x),
    "fill_": lambda lib, x: x.fill_(1),
    "metadata": lambda lib, x: [x.shape, x.stride(), x.numel(), len(x), x.dim(), x.is_leaf, x.requires_grad, x.is_sparse],
    "masked sum": lambda lib, x: lib.masked.sum(x, 1),
    "masked amax": lambda lib, x: lib.masked.amax(x, 1),
    "masked logaddexp": lambda lib, x: lib.masked.logaddexp(x, x),
    "is_masked_tensor": lambda lib, x: [lib.masked.is_masked_tensor(each) for each in (x, x.get_data(), 3)],
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    check(FUNCTIONS[name])


BAD = {
    "list of data": lambda lib: ([1.0], lib.tensor([True])),
    "list of masks": lambda lib: (lib.ones(1), [True]),
    "dtype of the mask": lambda lib: (lib.ones(1), lib.ones(1)),
    "dims": lambda lib: (lib.ones(1, 1), lib.ones(1).bool()),
    "sizes": lambda lib: (lib.ones(2, 3), lib.ones(3, 2).bool()),
    "complex": lambda lib: (lib.ones(1).to(lib.complex64), lib.ones(1).bool()),
    "bfloat16": lambda lib: (lib.ones(1).to(lib.bfloat16), lib.ones(1).bool()),
    "masked data": lambda lib: (example(lib), lib.ones(2, 3).bool()),
}


@pytest.mark.parametrize("name", BAD)
def test_constructors_check_data_and_mask(name):
    messages = []
    for lib in SIDES:
        for make in (lib.masked.masked_tensor, lib.masked.as_masked_tensor):
            with pytest.raises((TypeError, ValueError)) as caught:
                make(*BAD[name](lib))
            messages.append((caught.type, str(caught.value).replace("weft.", "torch.")))
    assert messages[:2] == messages[2:]


@pytest.mark.parametrize(
    "data, mask",
    [
        (3.0, True),
        (3, False),
        ([1.0, 1e10], [True, False]),
        ([10**12, 1], [True, False]),
        ([True, False], [True, False]),
        ([float("nan"), float("-inf")], [True, True]),
        ([[[1, 2], [3, 4]]], [[[True, False], [False, False]]]),
    ],
)
def test_repr(data, mask):
    theirs, own = (repr(lib.masked.masked_tensor(lib.tensor(data), lib.tensor(mask))) for lib in SIDES)
    assert own == theirs


# ---- Gradients ---------------------------------------------------------------------------------------------------

DIFFERENTIABLE = {
    "sum": lambda lib, x: x.sum(),
    "rows": lambda lib, x: x.sum(1).sum(),
    "mean": lambda lib, x: x.mean(1).sum(),
    "prod": lambda lib, x: x.prod(1).sum(),
    "amax": lambda lib, x: x.amax(0).sum(),
    "var": lambda lib, x: x.var(1).sum(),
    "std": lambda lib, x: x.std(),
    "exp": lambda lib, x: x.exp().sum(),
    "log": lambda lib, x: x.log().sum(),
    "product": lambda lib, x: (x * x).sum(),
    "quotient": lambda lib, x: (2 / x).sum(),
    "plain factor": lambda lib, x: (x * lib.arange(3.0)).sum(),
    "square of sums": lambda lib, x: (x.sum(0) * x.sum(0)).sum(),
    "softmax": lambda lib, x: lib.softmax(x, 1).amax(1).sum(),
    "row": lambda lib, x: x[0].sum(),
    "view": lambda lib, x: x.view(3, 2).sum(1).prod(),
    "expand": lambda lib, x: x.expand(2, 2, 3).sum(),
    "cat": lambda lib, x: (lib.cat([x, x]) * 3).sum(),
    "stack": lambda lib, x: lib.stack([x, x]).sum(),
    "contiguous": lambda lib, x: x.t().contiguous().sum(),
    "double": lambda lib, x: x.double().sum(),
    "where": lambda lib, x: lib.where(
        x.get_mask(), x, lib.masked.masked_tensor(x.get_data().detach(), ~x.get_mask())
    ).sum(),
    "to_tensor": lambda lib, x: (x.to_tensor(1) * lib.arange(3.0)).sum(),
    "get_data": lambda lib, x: x.get_data().sum(),
    "in place": lambda lib, x: (x + 0).mul_(2).sum(),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name):
    found = []
    for lib in SIDES:
        x = example(lib, requires_grad=True)
        DIFFERENTIABLE[name](lib, x).backward()
        first = shown(x.grad)
        DIFFERENTIABLE[name](lib, x).backward()
        found.append((first, shown(x.grad)))
    assert found[0] == found[1]


def test_given_gradients_are_masked():
    for gradient in (lambda lib: lib.ones(2, 3), lambda lib: lib.ones_like(example(lib))):
        found = []
        for lib in SIDES:
            x = example(lib, requires_grad=True)
            y = x * x
            y.backward(gradient(lib))
            found.append(shown(x.grad))
        assert found[0] == found[1]


def test_second_derivatives():
    found = []
    for lib in SIDES:
        x = example(lib, requires_grad=True)
        (first,) = lib.autograd.grad((x * x * x).sum(), x, create_graph=True)
        found.append([shown(first.detach()), shown(lib.autograd.grad(first.sum(), x)[0])])
    assert found[0] == found[1]


def test_gradients_of_plain_tensors_are_masked_and_skip_what_is_not_a_number():
    x, divisor = weft.ones(2, requires_grad=True), weft.tensor([0.0, 1.0])
    weft.masked.as_masked_tensor(x / divisor, divisor != 0).sum().backward()
    theirs, their_divisor = torch.ones(2, requires_grad=True), torch.tensor([0.0, 1.0])
    torch_as_masked(theirs / their_divisor, their_divisor != 0).sum().backward()
    assert shown(x.grad) == shown(theirs.grad)
    # Summed over a broadcast dimension: 0 / 0 is masked out.
    x = weft.ones(3, requires_grad=True)
    divisor = weft.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, 1.0]])
    weft.masked.as_masked_tensor(x / divisor, divisor != 0).sum().backward()
    assert x.grad.get_mask().tolist() == [False, True, True]
    assert x.grad.to_tensor(-1).tolist() == [-1, 1, 1.5]


def test_large_gradients_keep_their_mask():
    x = weft.ones(200, 200, requires_grad=True)
    mask = weft.ones(200, 200).tril().bool()
    weft.masked.as_masked_tensor((x * 2).exp(), mask).sum().backward()
    assert weft.equal(x.grad.get_mask(), mask)


def test_steps_without_a_rule_for_masks_say_so():
    x = weft.ones(3, requires_grad=True)
    masked = weft.masked.as_masked_tensor(x.cumsum(0), weft.tensor([True, False, True]))
    with pytest.raises(TypeError, match="to_tensor"):
        masked.sum().backward()


def test_retained_gradients():
    found = []
    for lib in SIDES:
        y = example(lib, requires_grad=True) + 1
        y.retain_grad()
        (y * y).sum().backward()
        found.append(shown(y.grad))
    assert found[0] == found[1]


@pytest.mark.parametrize("layout", ["strided", "sparse_coo", "sparse_csr"])
def test_where_of_a_mask(layout):
    found = []
    for lib in SIDES:
        data = lib.arange(12.0).reshape(3, 4) % 5
        mask = data + lib.eye(3, 4) > 2
        if layout != "strided":
            data, mask = (each.to_sparse(layout=getattr(lib, layout)) for each in (data, mask))
        found.append(shown(lib.masked._where(mask, data, lib.tensor(9.0))))
    assert found[0] == found[1]


def test_where_of_a_hybrid_mask():
    found = []
    for lib in SIDES:
        mask = lib.tensor([[True, False], [False, False], [False, True]]).to_sparse(1)
        data = lib.tensor([[0.0, 1], [3, 4], [5, 6]]).to_sparse(1)
        found.append(shown(lib.masked._where(mask, data, lib.tensor(9.0))))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "argmin"])
def test_input_with_what_a_reduction_ignores(name):
    found = []
    for lib in SIDES:
        data = lib.tensor([1.0, 2, 3], requires_grad=True)
        filled = lib.masked._combine_input_and_mask(
            getattr(lib.masked, name), data, lib.tensor([True, False, True])
        )
        x = example(lib, requires_grad=True)
        of_masked = lib.masked._combine_input_and_mask(getattr(lib.masked, name), x, None)
        of_masked.square().sum().backward()
        found.append(shown([filled.detach(), of_masked.detach(), x.grad]))
    assert found[0] == found[1]


def test_dims_in_order():
    for lib in SIDES:
        canonical = lib.masked._canonical_dim
        assert canonical(None, 3) == canonical((), 3) == (0, 1, 2)
        assert canonical((-1, 0), 3) == (0, 2)
        with pytest.raises(IndexError):
            canonical(3, 3)
        with pytest.raises(RuntimeError):
            canonical((0, 0), 3)


def test_integers_do_not_require_gradients():
    for lib in SIDES:
        with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
            example(lib, "int64", requires_grad=True)


# ---- Warnings and names ------------------------------------------------------------------------------------------


def test_warnings():
    found = []
    for lib, make in ((torch, torch_masked), (weft, weft.masked.masked_tensor)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            x = make(lib.ones(2, requires_grad=True), lib.tensor([True, False]))
            with pytest.raises(TypeError, match="Multiple dispatch failed"):
                x.relu()
        found.append([(each.category, str(each.message)) for each in seen])
    assert found[0] == found[1]


def test_warnings_point_to_the_caller():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        weft.masked.masked_tensor(weft.ones(2), weft.tensor([True, False]))
    assert seen[0].filename == __file__


def test_names():
    for name in torch.masked.__all__:
        assert getattr(weft.masked, name).__name__ == getattr(torch.masked, name).__name__
    for name in ours.__all__:
        theirs, own = getattr(torch.masked, name), getattr(ours, name)
        assert own.__module__.replace("weft", "torch") == theirs.__module__
    assert unary.UNARY_NAMES == torch.masked.maskedtensor.unary.UNARY_NAMES
    assert binary.BINARY_NAMES == torch.masked.maskedtensor.binary.BINARY_NAMES
    for name in ("NATIVE_UNARY_FNS", "NATIVE_INPLACE_UNARY_FNS"):
        theirs = getattr(torch.masked.maskedtensor.unary, name)
        assert sorted(map(str, getattr(unary, name))) == sorted(map(str, theirs))
