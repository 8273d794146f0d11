"""torch.ops.aten: the file of schemas, and calls by overload beside PyTorch. (`calls.py` compares many more.)"""

import runpy
from pathlib import Path

import pytest
import torch

import weft
from weft._library import aten


def test_the_files_list_schemas_of_pytorch():
    """Functions that were added since it was written may be missing."""
    script = runpy.run_path(str(Path(__file__).with_name("aten.py")))
    listed = {line for name in aten.names() for line in aten.overloads(name)}
    others = {line for lines in aten._listed(script["OTHERS"]).values() for line in lines}
    assert listed <= set(script["schemas"]()) and others <= set(script["others"]())


def test_overloads_have_pytorchs_order():
    for name in aten.names():
        mine, theirs = getattr(weft.ops.aten, name).overloads(), getattr(torch.ops.aten, name).overloads()
        assert mine == [each for each in theirs if each in mine]


def test_schemas_print_as_pytorch_does():
    for name in aten.names()[::5]:
        packet, theirs = getattr(weft.ops.aten, name), getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            mine, other = getattr(packet, overload), getattr(theirs, overload)
            assert str(mine._schema) == str(other._schema)
            assert [str(tag) for tag in mine.tags] == [str(tag) for tag in sorted(other.tags, key=int)]
            assert (repr(mine), str(mine), mine.name()) == (repr(other), str(other), other.name())


CALLS = """
aten.add.Tensor(x, 2, alpha=3)
aten.add.Tensor(x, 1 + x)
aten.add(x, 2)
aten.add(2, x)
aten.add_.Tensor(x.clone(), 1)
aten.add.out(x, x, out=torch.empty(0))
aten.mul.Scalar(x, 2.5)
aten.mul.Scalar(x, torch.tensor(2.0))
aten.relu.default(x - 3)
aten.sin.default(2.0)
aten.sin.default("a")
aten.sin.default(x, 1, 2)
aten.sum.dim_IntList(x, 1)
aten.sum.dim_IntList(x, [0, 1], True, dtype=torch.float64)
aten.sum.dim_IntList(x, (0, 1.0))
aten.max.dim(x, 1)
aten.max.dim_max(x, 0, max=torch.empty(0), max_values=torch.empty(0, dtype=torch.int64))
aten.split.Tensor(x, 1)
aten.cat.default((x, x), 1)
aten.cat.default(x)
aten.cat.default([x, 1])
aten.view.default(x, [3, 2])
aten._unsafe_view.default(x, [3, -1])
aten.slice.Tensor(x, 1, 1)
aten.index.Tensor(x, [None, torch.tensor([0, 2])])
aten.index_put.default(x, [None, torch.tensor([0, 0])], torch.ones(2, 2), True)
aten.native_layer_norm.default(x, [3], None, None, 1e-5)
aten.native_layer_norm_backward.default(x * x, x, [3], x.mean(1, True), x.std(1, keepdim=True), None, None, [True, False, False])
aten._unsafe_masked_index_put_accumulate.default(x, x[0] > 1, [None, torch.tensor([0, 9, 1])], torch.ones(2, 3))
aten._unsafe_masked_index_put_accumulate.default(x[:0], x > 1, [None, torch.tensor([0, 1, 1])], torch.ones(2, 3))
aten._reshape_alias_copy.default(x.t(), [2, 2], [1, 3])
aten._reshape_alias_copy.default(x.t(), [2, 2], [1, 3]).stride()
aten.quantize_per_tensor.tensor_qparams(x, torch.tensor(0.5), torch.tensor(3), torch.quint8)
aten._softmax.default(x, 1, False)
aten._log_softmax.default(x, 0, False)
aten.gelu.default(x, approximate="tanh")
aten.gelu_backward.default(x, x - 2, approximate="tanh")
aten.threshold_backward.default(x, x - 2, 0)
aten.elu.default(x - 3, 0.5, 2, 3)
aten.empty.memory_format([2, 0])
aten.empty.memory_format(2)
aten.ones.default([2], dtype=torch.int32)
aten.ones.default([2], dtype=3)
aten.cumsum.default(x, torch.tensor(1))
aten.cumsum.default(x, 1.0)
aten.threshold.default(x, 1, "a")
aten._to_copy.default(x, dtype=torch.float64)
aten.clone.default(x, memory_format=torch.contiguous_format)
aten.mse_loss.default(x, x * 2, 0)
aten.mse_loss.default(x, x * 2)
aten.mse_loss.default(x, x * 2, 2)
aten.l1_loss.default(x, x * 2, reduction=0)
aten.huber_loss.default(x, x * 2, 2, 0.5)
aten.kl_div.default(x, x + 1)
aten.binary_cross_entropy_with_logits.default(x, x / 6)
aten.mm.default(x, x.t())
aten.addmm.default(torch.ones(2), x, x.t(), beta=2)
aten.convolution.default(x[None, None], torch.ones(1, 1, 2, 2), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
aten.max_pool2d_with_indices.default(x[None, None], [2, 2], [1, 1])
aten.avg_pool2d.default(x[None], [1, 2])
aten.upsample_nearest2d.default(x[None, None], [4, 6])
aten.upsample_bilinear2d.vec(x[None, None], None, False, [2.0, 2.0])
aten.linalg_norm.default(x)
aten.linalg_inv_ex.default(torch.eye(2) * 2)
aten.where.self(x > 2, x, -x)
aten.sort.stable(x, stable=True, dim=1, descending=True)
aten.topk.default(x, 2)
aten.bernoulli_.float(x.clone(), 0.0)
aten._local_scalar_dense.default(x[1, 1])
aten.sym_size.int(x, 1)
aten.equal.default(x, x)
aten.unbind.int(x)
aten.expand.default(x[:1], [4, -1])
aten.var_mean.correction(x, [1], correction=0)
aten.embedding.default(x, torch.tensor([1, 0]))
aten._new_zeros_with_same_feature_meta.default(x, x.t())
aten._new_zeros_with_same_feature_meta.default(x, torch.ones(4, 5).double()[1:, ::2], self_num_batch_dims=1).stride()
aten._new_zeros_with_same_feature_meta.default(x, torch.ones(4, 5)[1:, ::2], self_num_batch_dims=2).storage_offset()
aten._new_zeros_with_same_feature_meta.default(x, torch.ones(2, 2)[1:], self_num_batch_dims=2).untyped_storage().nbytes()
aten.unique_dim.default(x.round(), 0)
aten.unique_dim.default(torch.tensor([[1, 2], [0, 5], [1, 2]]), 0, True, False, True)
aten.unique_dim_consecutive.default(torch.tensor([[1, 1, 2]]), 1)
torch._VF.unique_dim(torch.tensor([3, 1, 3]), 0)
aten.nope
aten.add.nope
aten.add.Tensor(x)
aten.add.overloads()[:4]
aten.relu
aten.relu.default
aten.add.Tensor.tags
""".strip().splitlines()


def outcome(lib, text):
    x = lib.arange(6.0).reshape(2, 3)
    try:
        return repr(eval(text, {"torch": lib, "aten": lib.ops.aten, "x": x}))
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


@pytest.mark.parametrize("text", CALLS)
def test_calls(text):
    assert outcome(weft, text) == outcome(torch, text)


def test_operators_have_gradients():
    for lib in (torch, weft):
        x = lib.ones(2, requires_grad=True)
        lib.ops.aten.mul.Tensor(x, lib.ops.aten.sin.default(x)).sum().backward()
        assert x.grad.tolist() == pytest.approx([1.3817733] * 2)
    with pytest.raises(NotImplementedError, match="kernels"):
        weft.library.Library("aten", "IMPL").impl("add.Tensor", lambda a, b: a, "CPU")


@pytest.mark.parametrize("name", ["gelu_backward", "silu_backward", "threshold_backward"])
def test_operators_for_gradients_are_recorded_around_vmap(name):
    ct, x = (weft.linspace(-1, 2, 6).view(2, 3) + k for k in (0.5, 0.0))
    ct, x = ct.requires_grad_(), x.requires_grad_()
    options = (0.5,) if name == "threshold_backward" else ()

    def operator(ct, x):
        return getattr(weft.ops.aten, name)(ct, x, *options)

    found = weft.autograd.grad(weft.vmap(operator)(ct, x).sum(), (ct, x), materialize_grads=True)
    expected = weft.autograd.grad(operator(ct, x).sum(), (ct, x), materialize_grads=True)
    assert all(weft.allclose(one, other) for one, other in zip(found, expected))


@pytest.mark.parametrize("causal", [False, True])
def test_scores_of_attention_are_summed_block_by_block(monkeypatch, causal):
    from weft.library.registry import aten_functions

    weft.manual_seed(0)
    query, key = weft.randn(2, 3, 33, 8), weft.randn(2, 3, 41, 8)
    attend = weft.ops.aten._scaled_dot_product_flash_attention_for_cpu
    mask = None if causal else weft.randn(2, 1, 33, 41)
    whole = attend(query, key, key, 0.0, causal, attn_mask=mask)[1]
    monkeypatch.setattr(aten_functions, "_SCORES", 500)  # two rows at a time
    weft.testing.assert_close(attend(query, key, key, 0.0, causal, attn_mask=mask)[1], whole)
