"""Names of dims, by the documentation of PyTorch 1.x; PyTorch 2.13 has no named tensors."""

import copy
import gc
import pickle

import pytest

import weft
from weft.layouts.named import calls


def named(*names, sizes=(2, 3, 4, 5)):
    return (
        weft.arange(float(weft.Size(sizes[: len(names)]).numel())).reshape(sizes[: len(names)]).rename(*names)
    )


X = ("N", "C")

RESULTS = {
    # keeping and elementwise
    "x.exp()": X, "x + 1": X, "2 - x": X, "x * weft.ones(3)": X, "x < x": X, "-x": X, "x.clamp(0, 1)": X, "x.clone()": X,
    "weft.where(x > 0, x, x)": X, "x.double()": X, "x.to(float)": X, "x.type(weft.DoubleTensor)": X, "x.apply_(abs)": X, "x.detach()": X, "x.contiguous()": X, "x.to(weft.int64)": X, "x.data": X,
    "x.softmax('C')": X, "x.cumsum('C')": X, "x.sort('C')[0]": X, "weft.nn.functional.relu(x)": X, "weft.zeros_like(x)": X,
    "weft.nn.functional.dropout(x)": X, "x.masked_fill(x > 0, 1.0)": X, "x.flip('C')": X, "weft.add(x, x, out=weft.zeros(0))": X,
    "x.mul_(2)": X, "x.zero_()": X, "x.add_(weft.ones(3, names=['C']))": X, "weft.ones(3).add(x)": X,
    "x.rename(None) + x": X, "x.rename(None).rename('N', None) + x": X,
    # reductions
    "x.sum('C')": ("N",), "x.sum(0)": ("C",), "x.mean(('N', 'C'))": (), "x.sum()": (), "x.max('C').values": ("N",),
    "x.argmax('N')": ("C",), "x.std('C', keepdim=True)": X, "x.logsumexp('C')": ("N",), "x.norm(2, 'C')": ("N",),
    "x.sum(dim=['N'])": ("C",), "x.median('C').indices": ("N",), "weft.amax(x, 'N')": ("C",),
    # views
    "x.t()": ("C", "N"), "x.T": ("C", "N"), "x.transpose('N', 'C')": ("C", "N"), "x.permute(1, 0)": ("C", "N"), "x[0]": ("C",),
    "x[:, 0]": ("N",), "x[..., 0]": ("N",), "x[:, None]": ("N", None, "C"), "x[1:, ::2]": X, "x.unsqueeze(-1)": ("N", "C", None),
    "x.select('C', 1)": ("N",), "x.narrow('C', 0, 1)": X, "x.split(1, 'C')[0]": X, "x.unbind('N')[1]": ("C",), "x.chunk(2, 'N')[0]": X,
    "x[:1].squeeze()": ("C",), "x.expand(4, 2, 3)": (None, "N", "C"), "x.diagonal()": (None,), "x.movedim('C', 0)": ("C", "N"),
    "x.swapaxes('C', 'N')": ("C", "N"), "next(iter(x))": ("C",), "x.view(6)": (None,), "x.t_()": ("C", "N"),
    # products
    "x @ weft.ones(3, 2)": ("N", None), "x @ named('C', 'D', sizes=(3, 2))": ("N", "D"), "weft.mv(x, weft.ones(3))": ("N",),
    "weft.addmm(weft.ones(2), x, weft.ones(3, 2))": ("N", None), "weft.nn.functional.linear(x, weft.ones(4, 3))": ("N", None),
    "weft.outer(x[0], x[:, 0])": ("C", "N"), "weft.ones(4, 2) @ x": (None, "C"),
    "weft.einsum('ij,jk->ik', x, named('A', 'B', sizes=(3, 2)))": ("N", "B"), "weft.einsum('ij->ji', x)": ("C", "N"),
    "weft.einsum('...j->...', x)": ("N",), "weft.einsum('ij,j', x, weft.ones(3))": ("N",), "x[weft.tensor([0])]": X,
    "weft.tensordot(x, named('A', 'B', sizes=(3, 2)), dims=(['C'], ['A']))": ("N", "B"),
    "weft.addmm(mat1=x, mat2=named('A', 'B', sizes=(3, 4)), input=weft.ones(4))": ("N", "B"),
    "weft.gather(index=weft.zeros(2, 1, dtype=weft.long), dim='C', input=x)": X,
    # joining
    "weft.cat([x, x])": X, "weft.cat([x, weft.ones(2, 3)], 1)": X, "weft.stack([x, x])": (None, "N", "C"),
    # merging and splitting
    "x.flatten(['N', 'C'], 'F')": ("F",), "x.flatten('N', 'C', 'F')": ("F",), "x.flatten()": (None,),
    "x.unflatten('C', (('A', 1), ('B', 3)))": ("N", "A", "B"), "x.unflatten('C', (1, 3))": ("N", None, None),
    # alignment
    "x.align_to('C', 'N')": ("C", "N"), "x.align_to('C', ...)": ("C", "N"), "x.align_to('...', 'H')": ("N", "C", "H"),
    "x[0].align_as(x)": X, "weft.align_tensors(x[0], x)[0]": X,
    # names
    "x.rename('A', ...)": ("A", "C"), "x.rename(C='D')": ("N", "D"), "x.rename(None)": (None, None), "x.rename_('A', 'B')": ("A", "B"),
    "weft.zeros(2, 3).refine_names('N', ...)": ("N", None), "x.refine_names('...', 'C')": X,
    # functions that drop them
    "x.reshape(3, 2)": (None, None), "x.nonzero()": (None, None), "x.diag()": (None,), "x.unique()": (None,),
    "copy.deepcopy(x)": X, "pickle.loads(pickle.dumps(x))": X,
}  # fmt: skip


@pytest.mark.parametrize("text", RESULTS)
def test_names_of_results(text):
    found = eval(text, {"weft": weft, "x": named(*X), "named": named, "copy": copy, "pickle": pickle})
    assert found.names == RESULTS[text]


@pytest.mark.parametrize(
    "text", [each for each in RESULTS if "'" not in each and "_(" not in each and "align" not in each]
)
def test_values_of_results(text):
    """The values are those of the tensor without names."""
    if "dropout" in text or "pickle" in text or "copy" in text:
        pytest.skip("random, or a copy")
    found = eval(text, {"weft": weft, "x": named(*X), "named": named})
    expected = eval(text, {"weft": weft, "x": named(*X).rename(None), "named": named})
    assert weft.equal(found.rename(None), expected)


ERRORS = {
    "x + weft.ones(2, 3, names=('A', 'C'))": "dim 'N' and dim 'A' are at the same position from the right but do not match.\n  N  C\n  A  C\n  ^",
    "x + x.t()": "at the same position",
    "x + weft.ones(3, 1, 1, names=('C', None, None))": "dim 'C' appears in a different position from the right across both lists",
    "x.sum('Q')": "sum: Name 'Q' not found in Tensor['N', 'C']",
    "x.rename('a', 'a')": "duplicate names. Got names: ['a', 'a']",
    "x.rename('a')": "Number of names (1) and number of dimensions in tensor (2) do not match",
    "x.rename(Q='a')": "Name 'Q' not found",
    "x.rename('a b', 'c')": "Invalid name",
    "x.refine_names('N', 'D')": "cannot coerce Tensor['N', 'C'] to Tensor['N', 'D'] because 'C' is different from 'D'",
    "x.refine_names(..., ...)": "More than one Ellipsis",
    "x.align_to('C')": "Cannot find dim 'N'",
    "weft.zeros(2).align_to('C')": "All input dims must be named",
    "x @ named('C', 'N', sizes=(3, 2))": "duplicate names ['N', 'N']",
    "weft.cat([x, x.rename('N', 'D')])": "names of the tensors do not match",
    "x.flatten(['C', 'N'], 'F')": "must be consecutive",
    "weft.zeros(2, 3, names=('N',))": "Number of names (1)",
}  # fmt: skip


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text):
    with pytest.raises(RuntimeError) as caught:
        eval(text, {"weft": weft, "x": named(*X), "named": named})
    assert ERRORS[text] in str(caught.value)


@pytest.mark.parametrize("make", ["zeros", "ones", "empty", "rand", "randn"])
def test_factories(make):
    assert getattr(weft, make)(2, 3, names=("N", None)).names == ("N", None)
    assert weft.full((2,), 3.0, names=["a"]).names == ("a",) and weft.tensor([1.0], names=["a"]).names == (
        "a",
    )


def test_a_gradient_has_no_names_and_the_right_values():
    x = named(*X).requires_grad_()
    (x * 2).sum("C").pow(2).sum().backward()
    assert x.grad.names == (None, None) and x.grad.tolist() == [[24.0] * 3, [96.0] * 3]
    y = named(*X).requires_grad_() * 1
    y.mul_(3)
    assert y.names == X and y.grad_fn.name() == "MulBackward0"


def test_a_write_into_a_view_reaches_the_tensor():
    x = named(*X)
    x.select("C", 1).zero_()
    x[0] = 7
    assert x.rename(None).tolist() == [[7, 7, 7], [3, 0, 5]]


def test_printing():
    x = weft.zeros(2, names=["a"], requires_grad=True)
    assert repr(x) == "tensor([0., 0.], requires_grad=True, names=('a',))"
    assert repr(x.rename(None)) == "tensor([0., 0.], grad_fn=<AliasBackward0>)" or "names" not in repr(
        x.rename(None)
    )


def test_sizes_by_name():
    x = named(*X)
    assert (x.size("C"), x.stride("N"), x.has_names(), weft.ones(2).has_names()) == (3, 3, True, False)
    x.names = ["a", None]
    assert x.names == ("a", None)


def test_layers():
    x = weft.randn(4, 3, 8, 8, names=("N", "C", "H", "W"))
    assert weft.nn.ReLU()(x).names == x.names
    assert weft.nn.MaxPool2d(2)(x).names == x.names
    assert weft.nn.Linear(8, 2)(x).names == ("N", "C", "H", None)


def test_the_cells_of_an_image():
    image, batch = weft.randn(3, 5, 5), weft.randn(2, 3, 5, 5)
    weights = weft.tensor([0.2126, 0.7152, 0.0722], names=["channels"])
    image = image.refine_names(..., "channels", "rows", "columns")
    assert batch.refine_names(..., "channels", "rows", "columns").names == (
        None,
        "channels",
        "rows",
        "columns",
    )
    gray = (image * weights.align_as(image)).sum("channels")
    assert gray.names == ("rows", "columns") and gray.rename(None).names == (None, None)


@pytest.mark.parametrize("written", ["base", "named"])
@pytest.mark.parametrize("read", ["base", "named"])
@pytest.mark.parametrize("view", [lambda y: y.rename("A", "B"), lambda y: y.refine_names("A", "B").T.T])
def test_writes_into_a_tensor_and_its_named_view_have_gradients(written, read, view):
    leaf = weft.ones(2, 3, requires_grad=True)
    base = leaf * 1
    both = {"base": base, "named": view(base)}
    both[written].mul_(3)
    both[written].mul_(2)
    both[read].sum().backward()
    assert leaf.grad.tolist() == [[6.0] * 3] * 2 and both["named"].names == ("A", "B")


def test_a_named_view_of_a_leaf_is_no_leaf():
    leaf = weft.ones(2, 3, requires_grad=True)
    view = leaf.rename("A", "B")
    assert not view.is_leaf and view._is_view()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view.mul_(2)


def row(x):
    return x.select("N", 0)


VIEWS = {
    "select": row, "index": lambda x: x[0], "rename": lambda x: x.rename(None), "T": lambda x: x.T, "align_to": lambda x: x.align_to("C", "N"),
    "flatten": lambda x: x.flatten(["N", "C"], "F"), "view": lambda x: x.view(6), "diagonal": lambda x: x.diagonal(), "squeeze": lambda x: x.squeeze(),
    "unflatten": lambda x: x.unflatten("C", (("A", 1), ("B", 3))), "of a view": lambda x: row(x.T),
}  # fmt: skip
WRITES = {
    "the view": lambda base, view: view.mul_(2),
    "the base": lambda base, view: base.mul_(3),
    "both": lambda base, view: (view.mul_(2), base.mul_(3), view.add_(1)),
    "zeros": lambda base, view: view.zero_(),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_writes_into_a_named_tensor_and_its_views_have_gradients(view, write):
    """The gradient is that of the same program with a view of a tensor without names."""
    gradients = []
    for is_named in (True, False):
        leaf = named(*X).rename(None).requires_grad_()
        base = leaf * 1
        if is_named:
            base = (leaf.rename(*X)) * 1
            seen = VIEWS[view](base)
        else:
            named_view = VIEWS[view](base.detach().rename(*X))
            seen = base.as_strided(named_view.shape, named_view.stride(), named_view.storage_offset())
        WRITES[write](base, seen)
        (base.rename(None).sum() * 5 + (seen.rename(None) ** 2).sum()).backward()
        gradients.append(leaf.grad.tolist())
    assert gradients[0] == gradients[1]


def test_an_operand_that_stands_twice_has_one_history():
    x = named(*X).requires_grad_()
    y = x * 1
    y.mul_(y)
    y.sum().backward()
    assert y.names == X and x.grad.tolist() == (2 * x.detach().rename(None)).tolist()


def test_in_place_views_rename():
    x = weft.zeros(2, 1, 3, names=("a", "b", "c"))
    assert x.squeeze_().names == ("a", "c") and x.unsqueeze_(0).names == (None, "a", "c")
    assert x.transpose_("a", "c").names == (None, "c", "a") and x.t_ is not None


def test_conjugates_are_views():
    x = weft.ones(2, dtype=weft.complex64).rename("N")
    y = x.conj()
    assert y.is_conj() and y.names == ("N",) and y.data_ptr() == x.data_ptr() and y.imag.is_neg()
    x.mul_(1j)
    assert y.tolist() == [-1j, -1j] and (y * 1).names == ("N",) and y.resolve_conj().is_conj() is False


def test_modes_see_names():
    class Mode(weft.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **kwargs or {})

    x = named(*X)
    with Mode():
        assert x.names == X and (x + 1).names == X and x.T.names == ("C", "N") and x.sum("C").names == ("N",)
        x.names = ("A", "B")
        assert x.names == ("A", "B")


def test_cotangents_lose_their_names_with_a_warning():
    x = named(*X).requires_grad_()
    with pytest.warns(UserWarning, match="Autograd was passed a named grad tensor with dims"):
        (x * 2).backward(named(*X))
    assert x.grad.names == (None, None)
    assert weft.autograd.grad(x, x, weft.ones(2, 3))[0].names == (None, None)
    y = x * 2
    y.register_hook(lambda ct: ct * x.detach())
    with pytest.warns(UserWarning, match="named grad tensor"):
        assert weft.autograd.grad(y.sum(), x)[0].names == (None, None)


@pytest.mark.parametrize("make", [lambda x: x, lambda x: {"a": [x]}, weft.nn.Parameter])
def test_files_keep_names(make, tmp_path):
    x = make(named(*X).select("C", 1))
    weft.save(x, tmp_path / "x.pt")
    found = weft.load(tmp_path / "x.pt", weights_only=True)
    found, x = (found["a"][0], x["a"][0]) if isinstance(x, dict) else (found, x)
    assert type(found) is type(x) and found.names == ("N",) and weft.equal(found, x)


def test_pytorch_reads_files_without_the_names(tmp_path):
    torch = pytest.importorskip("torch")
    weft.save({"x": named("N", None)}, tmp_path / "x.pt")
    found = torch.load(tmp_path / "x.pt", weights_only=True)["x"]
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_files_with_wrong_names_are_refused(tmp_path):
    from weft.serialization.rebuild import rebuild_tensor_v2

    storage = weft.zeros(6)._typed_storage()
    for flag in ("names=N", "names=N,N", "names=N,a b"):
        with pytest.raises(RuntimeError):
            rebuild_tensor_v2(storage, 0, (2, 3), (3, 1), False, {}, {flag: True})
    with pytest.raises(TypeError):
        rebuild_tensor_v2(storage, 0, (2, 3), (3, 1), False, {}, {"names=N,C": "True"})


FACTORIES = """
    zeros(2) ones(2) empty(2) full((2,),1) rand(2) randn(2) randint(3,(2,)) randperm(2) arange(2) arange(0.0,2.0,1.0) linspace(0,1,2) logspace(0,1,2)
    tensor([1,2]) empty_strided((2,),(1,))
"""


@pytest.mark.parametrize("call", FACTORIES.split())
def test_names_in_factories(call):
    """A busy process replays calls of constructors, so that names have to be part of the keys."""

    def make(names):
        return eval(f"weft.{call[:-1]}, names=names)", {"weft": weft, "names": names})

    for turn in range(60):
        assert make(["N"]).names == ("N",) and make(("C",)).names == ("C",) and make(None).names == (None,), (
            turn
        )
    with pytest.raises(TypeError, match="must be tuple of names, not str"):
        make("N")
    for wrong in (["N", "C"], [], ["1"], ["é"]):
        with pytest.raises(RuntimeError):
            make(wrong)


def test_names_of_a_matrix_factory():
    assert weft.eye(2, 3, names=X).names == X
    with pytest.raises(RuntimeError, match="duplicate"):
        weft.eye(2, names=("N", "N"))


@pytest.mark.parametrize(
    "call", ["x + x", "x.sum('C')", "x.sort('C')", "x.T", "x[0]", "x.unbind('N')", "x.mul(2).t_()"]
)
def test_memory_of_a_call_is_free_when_its_result_is(call):
    """Nothing waits for the garbage collector."""
    names = {"x": named(*X)}
    eval(call, names)  # caches keep what they learn of the first call
    gc.disable()
    try:
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(20):
            eval(call, names)
        assert len(gc.get_objects()) - before < 20
    finally:
        gc.enable()


def test_tangents_go_through_names():
    x = weft.arange(3.0)

    def cube(x):
        y = x.rename("C").pow(3) * 1
        y.mul_(2)
        return y

    value, tangent = weft.func.jvp(cube, (x,), (weft.ones(3),))
    assert value.names == ("C",) and tangent.tolist() == [0, 6, 24]
    assert weft.func.jacfwd(lambda x: cube(x).rename(None))(x).tolist() == [[0, 0, 0], [0, 6, 0], [0, 0, 24]]
    assert weft.func.hessian(lambda x: cube(x).sum("C"))(x).tolist() == [[0, 0, 0], [0, 12, 0], [0, 0, 24]]
    with pytest.warns(UserWarning, match="named grad tensor"):
        _, tangent = weft.func.jvp(lambda x: x.sum("C"), (named(*X),), (named(*X),))
    assert tangent.tolist() == [3, 12]


def test_subclasses_keep_names():
    class Image(weft.Tensor):
        pass

    x = named(*X).as_subclass(Image)
    assert type(x) is type(x + 1) is type(x.T) is Image and x.names == (x + 1).names == X
    assert x.T.names == ("C", "N") and type(copy.deepcopy(x)) is Image


def test_a_function_without_a_rule_keeps_names_or_refuses_them(monkeypatch):
    """A composed function keeps names by the functions that it calls. An op has no plan for a named tensor."""
    composed, ops = ("trapezoid", "nn.functional.softmin"), ("nansum", "transpose", "cumsum", "sort")
    rules_of = calls.rules_of
    monkeypatch.setattr(calls, "rules_of", lambda name: None if name in composed + ops else rules_of(name))
    x = named("N", "C")
    assert weft.trapezoid(x, dim=1).names == ("N",)
    assert weft.nn.functional.softmin(x, 1).names == X
    for name, dims in {"nansum": (0,), "transpose": (0, 1), "cumsum": (0,), "sort": (0,)}.items():
        with pytest.raises(
            RuntimeError, match=f"torch.{name} is not implemented for named tensors: write x.rename"
        ):
            getattr(weft, name)(x, *dims)


def test_shifts_in_place_keep_names():
    x = weft.ones(2, dtype=weft.int64, names=["N"])
    x <<= 2
    x >>= 1
    assert x.names == ("N",) and x.tolist() == [2, 2]


def test_functions_that_call_functions():
    x = named(*X)
    assert weft.cond(weft.tensor(True), lambda x: x.sum("C"), lambda x: x.sum("C") + 1, (x,)).names == ("N",)
    assert weft.compile(lambda x, dim: x.sum(dim))(x, "N").names == ("C",)
    y = x.clone().requires_grad_()
    weft.utils.checkpoint.checkpoint(lambda x: (x * 2).sum("C"), y, use_reentrant=False).sum().backward()
    assert y.grad.tolist() == [[2] * 3] * 2
    assert weft.func.grad(lambda x: x.sum("C").pow(2).sum())(x).tolist() == [[6] * 3, [24] * 3]
    with pytest.raises(NotImplementedError, match=r"write x.rename\(None\)"):
        weft.vmap(lambda x: x * 2)(x)
    with pytest.raises(NotImplementedError, match=r"write x.rename\(None\)"):
        weft.vmap(lambda row: row + x[0])(weft.ones(2, 3))
    assert weft.vmap(lambda row: row.rename("C").sum("C"))(weft.ones(2, 3)).tolist() == [3, 3]


def test_batches_of_named_samples():
    loader = weft.utils.data.DataLoader([named(*X), named(*X)], batch_size=2)
    assert [batch.names for batch in loader] == [(None, "N", "C")]


CELLS = """
weights_named = torch.tensor([0.2126, 0.7152, 0.0722], names=['channels'])
print(weights_named.names)  # ('channels',)
img_named = img_t.refine_names(..., 'channels', 'rows', 'columns')
batch_named = batch_t.refine_names(..., 'channels', 'rows', 'columns')
print(img_named.shape, img_named.names)  # torch.Size([3, 5, 5]) ('channels', 'rows', 'columns')
weights_aligned = weights_named.align_as(img_named)
print(weights_aligned.shape, weights_aligned.names)  # torch.Size([3, 1, 1]) ('channels', 'rows', 'columns')
gray_named = (img_named * weights_aligned).sum('channels')
print(gray_named.shape, gray_named.names)  # torch.Size([5, 5]) ('rows', 'columns')
gray_plain = gray_named.rename(None)
print(gray_plain.shape, gray_plain.names)  # torch.Size([5, 5]) (None, None)
"""


def test_the_cells_print_what_they_show(capsys):
    exec(CELLS, {"torch": weft, "img_t": weft.randn(3, 5, 5), "batch_t": weft.randn(2, 3, 5, 5)})
    expected = [line.partition("# ")[2] for line in CELLS.splitlines() if "# " in line]
    assert capsys.readouterr().out.splitlines() == expected


def test_files_keep_dims_without_names(tmp_path):
    weft.save(named(None, "C"), tmp_path / "x.pt")
    assert weft.load(tmp_path / "x.pt").names == (None, "C")
