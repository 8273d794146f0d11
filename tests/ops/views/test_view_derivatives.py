"""Derivatives of views, joins, copies and indexing: values, first and second derivatives and node names as PyTorch's."""

import numpy as np
import pytest
import torch

import weft

INDEX = {"rows": [2, 0, 2], "columns": [1, 3, 1], "wide": [[0, 2, 1, 0], [2, 2, 0, 1]], "flat": [0, 5, 5, 11]}


def index(lib, name):
    return lib.tensor(INDEX[name])


def written(write):
    """The function that writes into a copy of its first argument."""

    def function(lib, x, *others):
        y = x.clone()
        write(lib, y, *others)
        return y

    return function


def setitem(key):
    return written(lambda lib, y, v: y.__setitem__(key(lib), v))


# name: (function, node name, shape of each input); a shape that ends in "c" is that of a complex input.
X = (3, 4)
VIEWS = {
    "view": (lambda lib, x: x.view(2, 6), X),
    "view_as": (lambda lib, x: x.view_as(lib.empty(6, 2)), X),
    "reshape": (lambda lib, x: x.reshape(12), X),
    "reshape of transposed": (lambda lib, x: x.t().reshape(12), X),
    "flatten": (lambda lib, x: x.flatten(), X),
    "unflatten": (lambda lib, x: x.unflatten(1, (2, 2)), X),
    "ravel": (lambda lib, x: x.ravel(), X),
    "unsqueeze": (lambda lib, x: x.unsqueeze(1), X),
    "squeeze": (lambda lib, x: x.squeeze(), (1, 3, 1)),
    "squeeze dim": (lambda lib, x: x.squeeze(0), (1, 3, 1)),
    "squeeze dims": (lambda lib, x: x.squeeze((0, 2)), (1, 3, 1)),
    "permute": (lambda lib, x: x.permute(2, 0, -2), (2, 3, 4)),
    "transpose": (lambda lib, x: x.transpose(0, -1), (2, 3, 4)),
    "t": (lambda lib, x: x.t(), X),
    "T": (lambda lib, x: x.T, X),
    "mT": (lambda lib, x: x.mT, (2, 3, 4)),
    "H": (lambda lib, x: x.H, (2, 3, "c")),
    "movedim": (lambda lib, x: x.movedim(0, 2), (2, 3, 4)),
    "expand": (lambda lib, x: x.expand(2, 3, 4), (3, 1)),
    "broadcast_to": (lambda lib, x: lib.broadcast_to(x, (3, 4)), (4,)),
    "select": (lambda lib, x: x.select(1, -1), X),
    "narrow": (lambda lib, x: x.narrow(1, 1, 2), X),
    "diagonal": (lambda lib, x: x.diagonal(1, 0, 2), (2, 3, 4)),
    "unfold": (lambda lib, x: x.unfold(1, 3, 1), (2, 5)),
    "unfold apart": (lambda lib, x: x.unfold(0, 2, 3), (6, 2)),
    "as_strided": (lambda lib, x: x.as_strided((2, 2), (4, 2), 1), X),
    "as_strided overlapping": (lambda lib, x: x.as_strided((3, 2, 3), (1, 1, 2), 2), X),
    "as_strided of expanded": (lambda lib, x: x.expand(3, 2, 2).as_strided((3, 2), (1, 1)), (2, 2)),
    "view_as_real": (lambda lib, x: lib.view_as_real(x), (3, "c")),
    "view_as_complex": (lambda lib, x: lib.view_as_complex(x), (3, 2)),
    "real": (lambda lib, x: x.real, (3, "c")),
    "imag": (lambda lib, x: x.imag, (3, "c")),
    "imag of conj": (lambda lib, x: x.conj().imag, (3, "c")),
    "conj": (lambda lib, x: x.conj(), (3, "c")),
    "neg_view": (lambda lib, x: lib._neg_view(x), X),
    "resolve_conj": (lambda lib, x: x.conj().resolve_conj(), (3, "c")),
    "x[...]": (lambda lib, x: x[...], X),
    "x[:]": (lambda lib, x: x[:], X),
    "x[1]": (lambda lib, x: x[1], X),
    "x[-1, 2]": (lambda lib, x: x[-1, 2], X),
    "x[1:]": (lambda lib, x: x[1:], X),
    "x[:, 1]": (lambda lib, x: x[:, 1], X),
    "x[0, ::2]": (lambda lib, x: x[0, ::2], X),
    "x[..., None]": (lambda lib, x: x[..., None], X),
    "x[None, :, 0]": (lambda lib, x: x[None, :, 0], X),
    "x[:, :]": (lambda lib, x: x[:, :], X),
    "split": (lambda lib, x: x.split(2)[1], X),
    "split sizes": (lambda lib, x: x.split([1, 3], 1)[1], X),
    "chunk": (lambda lib, x: x.chunk(2, 1)[0], X),
    "unbind": (lambda lib, x: x.unbind(1)[2], X),
    "iteration": (lambda lib, x: list(x)[1], X),
    "tensor_split": (lambda lib, x: x.tensor_split(2)[1], X),
    "hsplit": (lambda lib, x: x.hsplit(2)[1], X),
    "unsafe_split": (lambda lib, x: lib.unsafe_split(x, 2)[1], X),
    "unsafe_split_with_sizes": (lambda lib, x: lib.unsafe_split_with_sizes(x, [1, 2])[1], X),
    "unsafe_chunk": (lambda lib, x: lib.unsafe_chunk(x, 2, 1)[1], X),
    "meshgrid": (lambda lib, x: lib.meshgrid(x, lib.ones(3).double(), indexing="xy")[0], (2,)),
    "atleast_3d": (lambda lib, x: lib.atleast_3d(x), X),
}
REARRANGED = {
    "cat": (lambda lib, x, y: lib.cat([x, y], 1), (3, 1), (3, 2)),
    "cat with itself": (lambda lib, x: lib.cat([x, x]), X),
    "cat with empty": (lambda lib, x, y: lib.cat([x, y]), (2,), (0,)),
    "cat with constants": (lambda lib, x: lib.cat([lib.ones(1, 4), x]), X),
    "stack": (lambda lib, x, y: lib.stack([x, y], 1), X, X),
    "hstack": (lambda lib, x, y: lib.hstack([x, y]), X, X),
    "dstack": (lambda lib, x, y: lib.dstack([x, y]), X, X),
    "column_stack": (lambda lib, x, y: lib.column_stack([x, y]), (3,), X),
    "repeat": (lambda lib, x: x.repeat(2, 1, 3), X),
    "tile": (lambda lib, x: x.tile(2), X),
    "repeat_interleave": (lambda lib, x: x.repeat_interleave(2, 1), X),
    "repeat_interleave tensor": (lambda lib, x: x.repeat_interleave(lib.tensor([1, 0, 2]), 0), X),
    "flip": (lambda lib, x: x.flip(0, 1), X),
    "rot90": (lambda lib, x: x.rot90(), X),
    "rot90 back": (lambda lib, x: x.rot90(3), X),
    "roll": (lambda lib, x: x.roll(1, 1), X),
    "roll flat": (lambda lib, x: x.roll(5), X),
    "roll two": (lambda lib, x: x.roll((1, 2), (0, 1)), X),
    "cartesian_prod": (lambda lib, x, y: lib.cartesian_prod(x, y), (2,), (3,)),
    "pixel_shuffle": (lambda lib, x: lib.nn.functional.pixel_shuffle(x, 2), (4, 2, 3)),
    "pixel_unshuffle": (lambda lib, x: lib.nn.functional.pixel_unshuffle(x, 2), (1, 4, 6)),
    "channel_shuffle": (lambda lib, x: lib.nn.functional.channel_shuffle(x, 2), (1, 4, 2)),
    "tril": (lambda lib, x: x.tril(1), X),
    "triu": (lambda lib, x: x.triu(), X),
    "tril_": (written(lambda lib, y: y.tril_()), X),
    "diag of vector": (lambda lib, x: x.diag(1), (3,)),
    "diag_embed": (lambda lib, x: x.diag_embed(-1, 0, 2), (2, 3)),
    "diagflat": (lambda lib, x: x.diagflat(), (2, 2)),
    "trace": (lambda lib, x: x.trace(), X),
    "pad": (lambda lib, x: lib.nn.functional.pad(x, (1, -1, 0, 2), value=3.0), X),
    "pad less": (lambda lib, x: lib.nn.functional.pad(x, (-1, -1)), X),
    "pad reflect": (lambda lib, x: lib.nn.functional.pad(x, (1, 2), "reflect"), (2, 4)),
    "pad reflect 2d": (lambda lib, x: lib.nn.functional.pad(x, (1, 2, 1, 0), "reflect"), (1, 3, 4)),
    "pad replicate": (lambda lib, x: lib.nn.functional.pad(x, (1, 2), "replicate"), (2, 4)),
    "pad replicate 3d": (lambda lib, x: lib.nn.functional.pad(x, (1,) * 6, "replicate"), (1, 2, 2, 2)),
}
COPIES = {
    "clone": (lambda lib, x: x.clone(), X),
    "contiguous": (lambda lib, x: x.t().contiguous(), X),
    "to": (lambda lib, x: x.to(lib.float32), X),
    "float": (lambda lib, x: x.float(), X),
    "to complex": (lambda lib, x: x.to(lib.complex128), X),
    "copy": (lambda lib, x: x.to(lib.float64, copy=True), X),
    "channels_last": (lambda lib, x: x.to(memory_format=lib.channels_last), (1, 2, 3, 2)),
    "copy_": (written(lambda lib, y, v: y.copy_(v)), X, (4,)),
    "copy_ into constants": (lambda lib, x: lib.zeros(3, 4).copy_(x), X),
    "fill_": (written(lambda lib, y: y.fill_(2.0)), X),
    "fill_ tensor": (written(lambda lib, y, v: y.fill_(v)), X, ()),
    "zero_": (written(lambda lib, y: y.zero_()), X),
    "masked_fill": (lambda lib, x: x.masked_fill(lib.arange(4) > 1, 2.0), X),
    "masked_fill tensor": (lambda lib, x, v: x.masked_fill(lib.arange(4) > 1, v), X, ()),
    "masked_fill_": (written(lambda lib, y: y.masked_fill_(lib.arange(4) > 1, 2.0)), X),
    "where": (lambda lib, x, y: lib.where(lib.arange(4) > 1, x, y), X, (4,)),
    "where number": (lambda lib, x: lib.where(lib.arange(4) > 1, 1.0, x), X),
    "masked_select": (lambda lib, x: x.masked_select(lib.arange(4) > 1), X),
    "masked_scatter": (lambda lib, x, y: x.masked_scatter(lib.arange(4) > 1, y), X, (2, 5)),
    "masked_scatter_": (written(lambda lib, y, v: y.masked_scatter_(lib.arange(4) > 1, v)), X, (6,)),
    "select_scatter": (lambda lib, x, y: x.select_scatter(y, 1, -1), X, (3,)),
    "slice_scatter": (lambda lib, x, y: x.slice_scatter(y, 1, 1, 4, 2), X, (3, 2)),
    "diagonal_scatter": (lambda lib, x, y: x.diagonal_scatter(y, 1), X, (3,)),
}
INDEXED = {
    "x[index]": (lambda lib, x: x[index(lib, "rows")], X),
    "x[list]": (lambda lib, x: x[[0, 2]], X),
    "x[index, index]": (lambda lib, x: x[index(lib, "rows"), index(lib, "columns")], X),
    "x[:, index]": (lambda lib, x: x[:, index(lib, "wide")], X),
    "x[1:, index]": (lambda lib, x: x[1:, index(lib, "columns")], X),
    "x[mask]": (lambda lib, x: x[x > 0], X),
    "x[mask of rows]": (lambda lib, x: x[lib.arange(3) > 0], X),
    "x[True]": (lambda lib, x: x[True], X),
    "x[0] = v": (setitem(lambda lib: 0), X, (4,)),
    "x[:] = v": (setitem(lambda lib: slice(None)), X, (4,)),
    "x[...] = v": (setitem(lambda lib: ...), X, X),
    "x[1:, ::2] = v": (setitem(lambda lib: (slice(1, None), slice(None, None, 2))), X, (2, 2)),
    "x[index] = v": (setitem(lambda lib: index(lib, "rows")), X, (4,)),
    "x[1:, index] = v": (setitem(lambda lib: (slice(1, None), index(lib, "columns"))), X, (2, 1)),
    "x[mask] = v": (setitem(lambda lib: lib.arange(12).view(3, 4) > 4), X, (7,)),
    "x[mask] = one": (setitem(lambda lib: lib.arange(12).view(3, 4) > 4), X, ()),
    "index_put": (lambda lib, x, v: x.index_put((index(lib, "rows"),), v), X, (3, 4)),
    "index_put add": (
        lambda lib, x, v: x.index_put((index(lib, "rows"), index(lib, "columns")), v, accumulate=True), X, (3,),
    ),
    "index_select": (lambda lib, x: x.index_select(1, index(lib, "columns")), X),
    "gather": (lambda lib, x: x.gather(0, index(lib, "wide")), X),
    "take": (lambda lib, x: x.take(index(lib, "flat")), X),
    "take_along_dim": (lambda lib, x: x.take_along_dim(index(lib, "wide")[:, :1].t(), 1), X),
    "scatter": (lambda lib, x, y: x.scatter(0, index(lib, "wide"), y), X, (2, 4)),
    "scatter number": (lambda lib, x: x.scatter(0, index(lib, "wide"), 2.0), X),
    "scatter_add": (lambda lib, x, y: x.scatter_add(0, index(lib, "wide"), y), X, (2, 4)),
    "index_add": (lambda lib, x, y: x.index_add(0, index(lib, "rows"), y, alpha=1), X, (3, 4)),
    "index_copy": (lambda lib, x, y: x.index_copy(1, index(lib, "columns"), y), X, (3, 3)),
    "index_fill": (lambda lib, x: x.index_fill(1, index(lib, "columns"), 2.0), X),
    "index_fill tensor": (lambda lib, x, v: x.index_fill(1, index(lib, "columns"), v), X, ()),
    "put": (lambda lib, x, y: x.put(index(lib, "flat"), y), X, (4,)),
    "put add": (lambda lib, x, y: x.put(index(lib, "flat"), y, True), X, (4,)),
    "embedding": (lambda lib, x: lib.nn.functional.embedding(index(lib, "wide") % 3, x, padding_idx=0), X),
    "embedding scaled": (
        lambda lib, x: lib.nn.functional.embedding(index(lib, "rows"), x, scale_grad_by_freq=True), X,
    ),
}  # fmt: skip
for reduce in ("sum", "mean", "prod", "amax", "amin"):
    for own in (True, False):
        options = {"reduce": reduce, "include_self": own}
        INDEXED[f"scatter_reduce {reduce} {own}"] = (
            lambda lib, x, y, options=options: x.scatter_reduce(0, index(lib, "wide"), y, **options), X, (2, 4),
        )  # fmt: skip
        if reduce != "sum":
            INDEXED[f"index_reduce {reduce} {own}"] = (
                lambda lib, x, y, options=options: x.index_reduce(1, index(lib, "columns"), y, **options), X, (3, 3),
            )  # fmt: skip
CASES = {**VIEWS, **REARRANGED, **COPIES, **INDEXED}


def inputs_for(name, shapes):
    rng = np.random.default_rng(len(name))
    for shape in shapes:
        if shape and shape[-1] == "c":
            yield rng.normal(size=shape[:-1]) + 1j * rng.normal(size=shape[:-1])
        else:
            yield np.array(rng.normal(size=shape))


def leaf(lib, values):
    return lib.from_numpy(values.copy()).requires_grad_()


def plain(tensor):
    return np.array(tensor.detach().resolve_conj().resolve_neg().numpy())


def derivatives(lib, function, values, twice):
    """The result, its derivatives, and their derivatives with respect to the cotangent and the inputs."""
    inputs = [leaf(lib, each) for each in values]
    result = function(lib, *inputs)
    dtype = "complex128" if result.is_complex() else "float64"
    ct = leaf(lib, np.array(np.cos(np.arange(result.numel()).reshape(tuple(result.shape)))).astype(dtype))
    first = lib.autograd.grad(result, inputs, ct.to(result.dtype), create_graph=True)
    differentiable = [each for each in first if each.requires_grad]
    if not (differentiable and twice):
        return result, first
    weights = [lib.from_numpy(np.array(np.sin(1 + plain(each)))) for each in differentiable]
    options = {"allow_unused": True, "materialize_grads": True}
    return result, [*first, *lib.autograd.grad(differentiable, [ct, *inputs], weights, **options)]


# PyTorch's second derivative forgets the scale.
ONCE = {"embedding scaled"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_values_derivatives_and_name(name):
    function, *shapes = CASES[name]
    values = list(inputs_for(name, shapes))
    expected, expected_grads = derivatives(torch, function, values, name not in ONCE)
    got, grads = derivatives(weft, function, values, name not in ONCE)
    np.testing.assert_allclose(plain(got), plain(expected), 1e-6)
    for one, other in zip(grads, expected_grads, strict=True):
        np.testing.assert_allclose(plain(one), plain(other), 1e-6, 1e-12)
    assert got.grad_fn.name() == type(expected.grad_fn).__name__
    assert got._is_view() == expected._is_view() or name.startswith("repeat_interleave")
