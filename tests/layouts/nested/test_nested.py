"""Nested tensors of both layouts against PyTorch: values, gradients, sizes, printing, errors."""

import copy
import pickle
import re
import subprocess
import sys

import pytest
import torch
from oracle import to_torch

import weft

LAYOUTS = ("strided", "jagged")


def parts(t):
    generator = torch.Generator().manual_seed(1)
    tensors = [torch.randn(size, 4, generator=generator) for size in (2, 5, 1)]
    return tensors if t is torch else [weft.from_numpy(each.numpy()) for each in tensors]


def made(t, layout, **options):
    return t.nested.nested_tensor(parts(t), layout=getattr(t, layout), **options)


def plain(value):
    """Tensors as PyTorch's, nested ones as lists of them."""
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if not isinstance(value, (torch.Tensor, weft.Tensor)):
        return value
    if value.is_nested:
        return [str(value.layout), *(plain(each) for each in value.detach().unbind())]
    return value.detach() if isinstance(value, torch.Tensor) else to_torch(value.detach())


def same(got, expected, tolerance=2e-5):
    assert type(got) is type(expected), (got, expected)
    if isinstance(expected, list):
        assert len(got) == len(expected)
        for each in zip(got, expected, strict=True):
            same(*each, tolerance)
    elif isinstance(expected, torch.Tensor):
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)
    else:
        assert got == expected


def weight(t, rows=4, columns=3):
    return t.arange(float(rows * columns)).reshape(rows, columns) / 10 - 0.5


BOTH = {
    "sin": lambda t, n: n.sin(),
    "arithmetic": lambda t, n: (n * 2 + n) / 3 - n * n,
    "gelu": lambda t, n: t.nn.functional.gelu(n),
    "broadcast a scalar": lambda t, n: n * t.tensor(3.0),
    "softmax": lambda t, n: t.softmax(n, -1),
    "softmax of the ragged dim": lambda t, n: t.softmax(n, 1),
    "linear": lambda t, n: t.nn.functional.linear(n, weight(t).t(), t.ones(3)),
    "layer norm": lambda t, n: t.nn.functional.layer_norm(n, (4,), t.ones(4) * 2, t.ones(4)),
    "transpose": lambda t, n: n.transpose(1, 2).contiguous(),
    "unsqueeze": lambda t, n: n.unsqueeze(-1) * 2,
    "reshape": lambda t, n: n.reshape(3, -1, 2, 2),
    "chunk": lambda t, n: n.chunk(2, -1)[1],
    "cat": lambda t, n: t.cat([n, n * 2], -1),
    "sum keepdim": lambda t, n: n.sum(-1, keepdim=True),
    "padded": lambda t, n: t.nested.to_padded_tensor(n, 0.5),
    "larger padded": lambda t, n: n.to_padded_tensor(-1.0, (3, 6, 4)),
    "one component": lambda t, n: n[1],
    "unbind": lambda t, n: n.unbind()[0] * 2,
    "select": lambda t, n: n[1, 2],
    "values": lambda t, n: n.values() * 2,
}
JAGGED = {
    "transpose and sin": lambda t, n: n.transpose(1, 2).sin().transpose(1, 2),
    "exp": lambda t, n: n.exp(),
    "power": lambda t, n: n.abs() ** 1.5,
    "where": lambda t, n: t.where(n > 0, n, -n),
    "clamp": lambda t, n: n.clamp(min=0),
    "broadcast a vector": lambda t, n: n * t.arange(4.0),
    "matmul": lambda t, n: n @ weight(t),
    "sum of the ragged dim": lambda t, n: n.sum(1),
    "sum": lambda t, n: n.sum(),
    "sum of the last dim": lambda t, n: n.sum(-1),
    "sum of batch and ragged dim": lambda t, n: n.sum((0, 1)),
    "mean keepdim": lambda t, n: n.mean(1, keepdim=True),
    "amax": lambda t, n: n.amax(-1),
    "max": lambda t, n: n.max(dim=-1).values,
    "log_softmax": lambda t, n: t.nn.functional.log_softmax(n, -1),
    "rms norm": lambda t, n: t.nn.functional.rms_norm(n, (4,)),
    "unflatten": lambda t, n: n.unflatten(-1, (2, 2)).transpose(1, 2),
    "permute": lambda t, n: n.permute(0, 2, 1),
}
CASES = [(layout, name) for layout in LAYOUTS for name in BOTH] + [("jagged", name) for name in JAGGED]


# PyTorch has no derivative of these, or a wrong one: its rows of the softmax of a ragged dim do not sum to 0.
NO_GRADIENT = {
    "softmax of the ragged dim",
    "sum of the ragged dim",
    "mean keepdim",
    "max",
    "sum of batch and ragged dim",
}


@pytest.mark.parametrize(("layout", "name"), CASES)
def test_values_and_gradients(layout, name):
    function = BOTH.get(name) or JAGGED[name]

    def run(t, backward):
        n = made(t, layout, requires_grad=backward)
        result = function(t, n)
        if not backward:
            return result, None
        flat = result.values() if result.is_nested else result
        (flat * flat).sum().backward()
        return result, n.grad

    backward = name not in NO_GRADIENT
    try:
        expected = run(torch, backward)
    except (NotImplementedError, RuntimeError):  # PyTorch lacks the derivative
        backward, expected = False, run(torch, False)
    same(plain(run(weft, backward)), plain(expected))


@pytest.mark.parametrize("name", sorted(NO_GRADIENT))
def test_gradients_that_pytorch_lacks(name):
    tensors = [each.detach().requires_grad_() for each in parts(weft)]
    n = weft.nested.as_nested_tensor(tensors, layout=weft.jagged)
    result = (BOTH.get(name) or JAGGED[name])(weft, n)
    flat = result.values() if result.is_nested else result
    grads = weft.autograd.grad((flat * flat).sum(), tensors)
    lists = [to_torch(each.detach()).requires_grad_() for each in tensors]
    own = {
        "softmax of the ragged dim": lambda: sum((each.softmax(0) ** 2).sum() for each in lists),
        "sum of the ragged dim": lambda: sum((each.sum(0) ** 2).sum() for each in lists),
        "mean keepdim": lambda: sum((each.mean(0) ** 2).sum() for each in lists),
        "max": lambda: sum((each.max(-1).values ** 2).sum() for each in lists),
        "sum of batch and ragged dim": lambda: (sum(each.sum(0) for each in lists) ** 2).sum(),
    }[name]()
    same(plain(list(grads)), plain(list(torch.autograd.grad(own, lists))))


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_attention_without_padding(layout, is_causal):
    n = made(weft, layout, requires_grad=True)
    if layout == "jagged":
        heads = n.unflatten(-1, (2, 2)).transpose(1, 2)
    else:
        heads = weft.nested.as_nested_tensor(
            [each.unflatten(-1, (2, 2)).transpose(0, 1) for each in n.unbind()]
        )
    result = weft.nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=is_causal)
    (result.values() ** 2).sum().backward()
    inputs = [each.requires_grad_() for each in parts(torch)]
    expected = []
    for each in inputs:
        x = each.unflatten(-1, (2, 2)).transpose(0, 1).unsqueeze(0)
        expected.append(torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=is_causal)[0])
    sum((each**2).sum() for each in expected).backward()
    same(plain(result)[1:], plain(expected))
    same(plain(n.grad)[1:], [each.grad for each in inputs])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layers(layout):
    weft.manual_seed(3)
    layer = weft.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    tensors = [each.requires_grad_() for each in parts(weft)]
    result = layer(weft.nested.as_nested_tensor(tensors, layout=getattr(weft, layout)))
    expected = [layer(each.unsqueeze(0)).squeeze(0) for each in tensors]
    same(plain(result)[1:], plain(expected))
    got = weft.autograd.grad((result.values() ** 2).sum(), tensors)
    same(
        plain(list(got)),
        plain(list(weft.autograd.grad(sum((each**2).sum() for each in expected), tensors))),
        2e-5,
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_shape_size_and_printing(layout):
    got, expected = made(weft, layout), made(torch, layout)
    ragged = re.compile(r"\bj\d+")
    assert ragged.sub("j", repr(got)) == ragged.sub("j", repr(expected))
    assert (got.dim(), got.size(0), got.size(2), got.numel()) == (3, 3, 4, 32)
    assert type(got) is weft.Tensor and got.is_nested and got.is_contiguous()
    if layout == "jagged":
        for value in (
            "x.shape",
            "x.size(1)",
            "x.stride()",
            "x.transpose(1, 2).stride()",
            "x.offsets()",
            "x.lengths()",
        ):
            texts = [ragged.sub("j", str(eval(value, {"x": x}))) for x in (got, expected)]
            assert texts[0] == texts[1]
    else:
        with pytest.raises(RuntimeError, match="dimension 1 is irregular"):
            got.size(1)
        assert not hasattr(got, "offsets")


def test_plain_tensors_have_no_offsets_and_may_be_given_some():
    x = weft.ones(2)
    assert not hasattr(x, "offsets")
    x.offsets = 3
    assert x.offsets == 3


def test_ragged_sizes_are_those_of_the_offsets():
    values, offsets = weft.arange(10.0).view(5, 2), weft.tensor([0, 2, 2, 5])
    x = weft.nested.nested_tensor_from_jagged(values, offsets)
    y = weft.nested.nested_tensor_from_jagged(values * 2, offsets)
    assert x.shape == y.shape and (x + y).shape == x.shape
    other = weft.nested.nested_tensor_from_jagged(values, offsets.clone())
    assert x.shape != other.shape
    with pytest.raises(RuntimeError, match="different structures"):
        x + other
    a, b = (made(weft, "strided") for _ in range(2))
    assert a.shape == b.shape and plain(a + b) is not None
    with pytest.raises(TypeError, match="no int"):
        range(x.size(1))


@pytest.mark.parametrize("lengths", [None, [1, 0, 2]])
@pytest.mark.parametrize(
    "function",
    [
        lambda t, x: x * 2,
        lambda t, x: x.unbind(),
        lambda t, x: x.values(),
        lambda t, x: (x.numel(), x.is_contiguous()),
        lambda t, x: x.contiguous().values(),
        lambda t, x: x.clone(),
    ],
)
def test_holes(function, lengths):
    def run(t):
        values = t.arange(10.0).view(5, 2)
        given = None if lengths is None else t.tensor(lengths)
        return function(t, t.nested.nested_tensor_from_jagged(values, t.tensor([0, 2, 2, 5]), given))

    same(plain(run(weft)), plain(run(torch)))


def test_narrow_and_masked_select():
    for t in (weft, torch):
        x = t.arange(24.0).view(2, 4, 3)
        narrow = t.nested.narrow(x, 1, t.tensor([0, 1]), t.tensor([2, 3]), layout=t.jagged)
        select = t.nested.masked_select(x, x > 4)
        found = plain([narrow, narrow.lengths(), select, t.nested.narrow(x, 0, 1, 1)])
        if t is weft:
            got = found
    same(got, found)
    with pytest.raises(RuntimeError, match="at most 4"):
        weft.nested.narrow(weft.ones(2, 4), 1, weft.tensor([0, 3]), weft.tensor([2, 3]), layout=weft.jagged)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operations_in_place_write_into_the_components(layout):
    x = made(weft, layout)
    first = x.unbind()[0]
    before, address = first.clone(), x.values().data_ptr()
    assert x.mul_(2) is x and x.add_(x) is x
    assert weft.equal(first, before * 4) and x.values().data_ptr() == address
    assert weft.equal(x.zero_().values(), weft.zeros_like(x.values()))
    leaf = made(weft, layout, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        leaf.mul_(2)
    saved = (leaf * 1).requires_grad_()
    square = saved * saved
    saved.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.values().sum().backward()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "bool"])
def test_copies_and_files(layout, dtype, tmp_path):
    x, y = (made(t, layout, dtype=getattr(t, dtype)) for t in (weft, torch))
    expected = plain(y)
    for found in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone(), x.detach()):
        same(plain(found), expected)
    weft.save({"x": x}, tmp_path / "weft")
    torch.save({"x": y}, tmp_path / "torch")
    same(plain(torch.load(tmp_path / "weft", weights_only=False)["x"]), expected)
    for name in ("weft", "torch"):
        same(plain(weft.load(tmp_path / name)["x"]), expected)


def test_files_of_transposed_tensors_and_of_holes(tmp_path):
    for t in (weft, torch):
        values = t.arange(10.0).view(5, 2)
        holes = t.nested.nested_tensor_from_jagged(values, t.tensor([0, 2, 2, 5]), t.tensor([1, 0, 2]))
        tensors = [made(t, "strided").transpose(1, 2), made(t, "jagged").transpose(1, 2), holes]
        t.save(tensors, tmp_path / t.__name__)
        expected = plain(tensors)
    same(plain(weft.load(tmp_path / "torch")), expected)
    same(plain(torch.load(tmp_path / "weft", weights_only=False)), expected)


@pytest.mark.parametrize(
    ("offsets", "lengths"), [([0, 2, 9], None), ([0, -1, 5], None), ([0, 2, 5], [3, 9]), ([0, 2, 5], [1])]
)
def test_a_file_reads_nothing_outside_of_its_values(offsets, lengths):
    from weft.serialization.nested import rebuild_jagged_tensor

    given = None if lengths is None else weft.tensor(lengths)
    with pytest.raises(ValueError, match="jagged"):
        rebuild_jagged_tensor({"values": weft.zeros(5), "offsets": weft.tensor(offsets), "lengths": given})


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [([[6]], [[1]], [0]), ([[2]], [[5]], [0]), ([[1]], [[1]], [5]), ([[1]], [[1]], [-1])],
)
def test_views_of_a_buffer_stay_within_it(size, stride, offset):
    with pytest.raises(RuntimeError, match="outside of the buffer"):
        weft._nested_view_from_buffer(
            weft.zeros(5), weft.tensor(size), weft.tensor(stride), weft.tensor(offset)
        )


ERRORS = [
    ("strided", lambda t, n: n + t.nested.nested_tensor([t.ones(2)])),
    ("strided", lambda t, n: n.transpose(0, 1)),
    ("strided", lambda t, n: n[3]),
    ("strided", lambda t, n: n.sum(-1)),
    ("strided", lambda t, n: n.sum(1)),
    ("strided", lambda t, n: n @ weight(t)),
    ("strided", lambda t, n: n.to_padded_tensor(0.0, (3, 4, 4))),
    ("strided", lambda t, n: t.nested.nested_tensor([t.ones(2), t.ones(2, 2)])),
    ("jagged", lambda t, n: n + made(t, "jagged")),
    ("jagged", lambda t, n: n.transpose(0, 1)),
    ("jagged", lambda t, n: n[3]),
    ("jagged", lambda t, n: n.sum(0)),
    ("jagged", lambda t, n: n.expand(3, 2, 4)),
    ("jagged", lambda t, n: n.view(2, -1, 4)),
    ("jagged", lambda t, n: n.tolist()),
    ("jagged", lambda t, n: t.nested.nested_tensor([], layout=t.jagged)),
    ("jagged", lambda t, n: t.nested.nested_tensor([t.ones(2), t.ones(2).double()], layout=t.jagged)),
    ("jagged", lambda t, n: t.nested.nested_tensor([t.ones(2, 3), t.ones(3, 2)], layout=t.jagged)),
    ("jagged", lambda t, n: t.nested.nested_tensor_from_jagged(t.ones(3))),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors(case):
    layout, function = ERRORS[case]
    with pytest.raises(Exception) as expected:
        function(torch, made(torch, layout))
    with pytest.raises(expected.type):
        function(weft, made(weft, layout))


def test_padding_of_holes():
    offsets, lengths = weft.tensor([0, 2, 2, 5]), weft.tensor([1, 0, 2])
    x = weft.nested.nested_tensor_from_jagged(weft.arange(1.0, 6.0), offsets, lengths)
    assert x.to_padded_tensor(0.0).tolist() == [[1, 0], [0, 0], [3, 4]]
    assert (
        x.sum().item() == 8
        and x.sum(1).tolist() == [1, 0, 7]
        and (x * x).contiguous().values().tolist() == [1, 9, 16]
    )


def test_a_function_without_a_rule_names_itself():
    with pytest.raises(
        NotImplementedError, match="^torch.as_strided is not implemented for nested tensors: write"
    ):
        made(weft, "jagged").as_strided((1,), (1,))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_comparison_and_normalizing(layout):
    x, y = made(weft, layout), made(weft, layout)
    assert weft.equal(x, y) and weft.allclose(x, y) and not weft.equal(x, y * 2)
    assert not weft.equal(x, weft.nested.nested_tensor(parts(weft)[:2], layout=getattr(weft, layout)))
    if layout == "jagged":
        found = weft.nn.functional.normalize(x, dim=-1)
        same(plain(found)[1:], [torch.nn.functional.normalize(each, dim=-1) for each in parts(torch)])


def test_import_loads_no_layout():
    program = "import sys, weft, weft.nn; print([name for name in sys.modules if name.startswith('weft.layouts.nested')])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout.strip() == "[]", found.stderr


MORE = {
    "sum axis": lambda t, n: n.sum(axis=-1, keepdims=True),
    "named arguments": lambda t, n: t.chunk(input=n, chunks=2, dim=-1),
    "new dim": lambda t, n: n[..., None],
    "to itself": lambda t, n: [n.to("cpu") is n, n.float() is n, n.double().dtype == t.float64],
    "result_type": lambda t, n: str(t.result_type(n, 1)).split(".")[1],
    "bytes": lambda t, n: n.untyped_storage().nbytes(),
}
MORE_JAGGED = {
    "chunk of the batch": lambda t, n: n.chunk(2),
    "chunk of each component": lambda t, n: n.chunk(3),
    "movedim": lambda t, n: n.movedim(1, 2),
    "view_as": lambda t, n: n.view_as(n * 2),
    "compared sizes": lambda t, n: [n.shape[1] > 1, n.shape[1] >= 0, n.shape[1] < 1],
}


@pytest.mark.parametrize(
    ("layout", "name"),
    [(layout, name) for layout in LAYOUTS for name in MORE] + [("jagged", name) for name in MORE_JAGGED],
)
def test_more_forms_of_calls(layout, name):
    function = MORE.get(name) or MORE_JAGGED[name]
    same(plain(function(weft, made(weft, layout))), plain(function(torch, made(torch, layout))))


OF_COMPONENTS = {
    "mean": (lambda t, n: n.mean(1), lambda t, c: c.mean(0)),
    "var": (lambda t, n: n.var(-1, False, True), lambda t, c: c.var(-1, False, True)),
    "norm": (lambda t, n: n.norm(p=1, dim=-1), lambda t, c: c.norm(p=1, dim=-1)),
    "vector_norm": (
        lambda t, n: t.linalg.vector_norm(n, dim=-1),
        lambda t, c: t.linalg.vector_norm(c, dim=-1),
    ),
    "several dims": (lambda t, n: n.amax((1, 2)), lambda t, c: c.amax((0, 1))),
    "a column of each": (lambda t, n: n[:, :, [0, 2]], lambda t, c: c[:, [0, 2]]),
    "where a mask is true": (lambda t, n: n[n > 0], lambda t, c: c[c > 0]),
    "bmm": (lambda t, n: t.bmm(n, t.ones(3, 4, 2)), lambda t, c: c @ t.ones(4, 2)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OF_COMPONENTS)
def test_functions_of_each_component(layout, name):
    """PyTorch lacks these, or some of them in one layout."""
    nested, component = OF_COMPONENTS[name]
    got = nested(weft, made(weft, layout)).unbind()
    same(plain(list(got)), [component(torch, each) for each in parts(torch)])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_components_by_position(layout):
    x, own = made(weft, layout), parts(torch)
    for index, chosen in (([2, 0], [2, 0]), ([True, False, True], [0, 2]), (slice(None, None, 2), [0, 2])):
        same(plain(list(x[index].unbind())), [own[k] for k in chosen])
    same(plain(list(x[weft.tensor([1, 1])].unbind())), [own[1], own[1]])
    same(plain(list(x.split([1, 2])[1].unbind())), own[1:])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_writes_into_components(layout):
    x, own = made(weft, layout), parts(torch)
    x[0] = 5.0
    x[:, 0, 1] = 7.0
    x[1, 2] = weft.arange(4.0)
    x[x > 4.0] = -1.0
    own[0][:] = 5.0
    own[1][2] = torch.arange(4.0)
    for each in own:
        each[0, 1] = 7.0
        each[each > 4.0] = -1.0
    same(plain(list(x.unbind())), own)
    with pytest.raises(RuntimeError, match="no_grad"):
        x.requires_grad_()[0] = 1.0


def test_extrema_of_empty_components():
    offsets, found = [0, 2, 2, 5], []
    for t in (weft, torch):
        x = t.nested.nested_tensor_from_jagged(t.arange(15.0).reshape(5, 3), t.tensor(offsets))
        found.append(
            [plain(f(x)) for f in (lambda x: x.amax(1), lambda x: tuple(x.min(1)), lambda x: x.argmax(1))]
        )
    same(*found)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda n: n.to_sparse(), NotImplementedError, "to_padded_tensor"),
        (lambda n: n.resize_(3), NotImplementedError, "resize_"),
        (lambda n: n.nonzero(), NotImplementedError, "nonzero is not implemented for nested"),
        (lambda n: weft.tril(n), NotImplementedError, "tril is not implemented for nested"),
        (lambda n: n.split(2, 1), RuntimeError, "split|different numbers"),
        (lambda n: n.chunk(0, -1), RuntimeError, "greater than 0"),
        (lambda n: n.unbind(5), RuntimeError, "dimension 0"),
        (lambda n: n[None], RuntimeError, "dim=0"),
        (lambda n: n.T, ValueError, "batch dimension"),
        (lambda n: n.permute(0, 1), ValueError, "number of dimensions"),
        (lambda n: n.sum(-1, True, 3), TypeError, "at most"),
        (lambda n: weft.nested.nested_tensor_from_jagged(5), TypeError, "must be Tensor"),
        (lambda n: weft.nested.to_padded_tensor([n], 0.0), TypeError, "must be Tensor"),
        (lambda n: weft.nested.nested_tensor([weft.eye(2).to_sparse()]), RuntimeError, "plain tensors"),
        (lambda n: n.shape[1] > 2, NotImplementedError, "ragged dim"),
        (lambda n: n.shape[1] + 1, NotImplementedError, "ragged dim"),
    ],
)
def test_more_errors(layout, call, error, text):
    with pytest.raises(error, match=text):
        call(made(weft, layout))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("averaged", [True, False])
def test_weights_of_attention_are_padded(layout, averaged):
    found = []
    for t in (weft, torch):
        layer = t.nn.MultiheadAttention(4, 2, batch_first=True).eval()
        with t.no_grad():
            for each in layer.parameters():
                each.copy_(t.arange(float(each.numel())).view(each.shape).sin())
            x = made(t, layout if t is weft else "strided")  # PyTorch has it for strided ones only
            found.append(layer(x, x, x, average_attn_weights=averaged)[1])
    same(to_torch(found[0]), found[1])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_components_and_bools(layout):
    x = made(weft, layout)
    for none in (x[[]], x[3:]):
        assert none.shape[0] == 0 and none.unbind() == () and none.numel() == 0
    flags = weft.nested.nested_tensor(
        [weft.ones(0, 2) > 0, weft.ones(1, 2) > 0], layout=getattr(weft, layout)
    )
    assert [each.tolist() for each in flags.amax(1).unbind()] == [[False, False], [True, True]]


def test_a_ragged_size_is_part_of_a_size():
    def sizes(t):
        shape = made(t, "jagged").shape
        size = t.Size(list(shape))
        return (
            size == shape,
            size[1] is shape[1] or size[1] == shape[1],
            size[::2],
            type(size + (3,)).__name__,
        )

    assert plain(sizes(weft)) == plain(sizes(torch))
