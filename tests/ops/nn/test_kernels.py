"""PyTorch's kernels by their own names: values as PyTorch's."""

import pickle
import re

import numpy as np
import pytest
import torch
from expressions import check, lines

import weft

# T and I stand for these in the expressions.
OPERANDS = {"T": "torch.tensor([[1., 0.], [2., 3.]])", "I": "torch.tensor([3, 1, 3])"}
EXPRESSIONS = """
torch._softmax(T, 1, False)
torch._softmax(T, 1, True)  # raises
torch._unsafe_masked_index(T, I > 1, [I, I], 7.0)
torch._unsafe_masked_index(T, torch.tensor([[True], [False], [True]]), [I - 4], 7.0)
torch._unsafe_masked_index(T[:0], I > 1, [I, I], 7.0)
torch._unsafe_masked_index_put_accumulate(T, I > 1, [I, I], torch.tensor([1., 2., 3.]))
torch._unsafe_masked_index_put_accumulate(T[:0], I > 1, [I, I], torch.tensor([1., 2., 3.]))
torch._segment_reduce(T[:, 0], 'max', lengths=torch.tensor([1, 1]))
torch._log_softmax(T, 0, False)
torch._softmax_backward_data(T, T.softmax(1), 1, torch.float32)
torch._log_softmax_backward_data(T, T.log_softmax(1), 1, torch.float32)
torch._safe_softmax(torch.tensor([-float('inf')]*2), 0)
torch._safe_softmax(T, 0)
torch._masked_softmax(T, T > 1, 1)
torch._masked_softmax(T, T > 2)
torch._shape_as_tensor(T)
torch._reshape_from_tensor(T, torch.tensor([4, 1]))
torch._dim_arange(T, 0)
torch._cast_Float(I)
torch._cast_Byte(T)
torch._cast_Double(I)
torch._cast_Half(T)
torch._to_cpu([T])
torch._lazy_clone(T)
torch._add_relu(-T, T)
torch._add_relu(T, T, alpha=-2)
torch._add_relu_(T.clone(), T, alpha=-2)
torch._addmm_activation(T[0], T, T)
torch._addmm_activation(T[0], T, T, use_gelu=True).mul(1e6).round()
torch._conj_physical(T * 1j)
torch._conj_copy(T * 1j)
torch._prelu_kernel(-T, T)
torch._saturate_weight_to_fp16(T * 1e5)
torch._test_serialization_subcmul(T, T, 2)
torch._is_all_true(T > 0)
torch._is_any_true(T > 2)
T._is_zerotensor()
torch._debug_has_internal_overlap(T)
torch._debug_has_internal_overlap(T[:1].expand(3, 2))
torch._debug_has_internal_overlap(T.t()[::2])
torch._debug_has_internal_overlap(T.t())
torch._has_compatible_shallow_copy_type(T, T)
torch._aminmax(T)
torch._aminmax(T, 0, True)
torch._logcumsumexp(T, 0)
torch._stack([T, T], 1)
torch._chunk_cat([T, T], 0, 1)
torch._chunk_cat([torch.ones(3, 2), T], 0, 2)
torch._chunk_cat([torch.ones(1, 2, 3), torch.ones(1, 2, 5)], -1, 4)
torch._chunk_cat([torch.ones(1, 2), T], 1, 2)  # raises
torch._chunk_cat([T, T], 2, 2)  # raises
torch.ones(1).addbmm_(torch.ones(2, 3, 2), torch.ones(2, 2, 4), beta=2)
torch.ones(3, 4).addbmm_(torch.ones(2, 3, 2), torch.ones(2, 2, 4))
torch.ones(3, 1).mul(1).addbmm_(T.expand(2, 2, 2), T.expand(2, 2, 2))  # raises
torch.ones(1, requires_grad=True).addbmm_(T.expand(2, 2, 2), T.expand(2, 2, 2))  # raises
torch._compute_linear_combination(T, torch.tensor([[1., 2.]]))
torch._unique(I, True, True)
torch._unique(I)
torch._unique2(I, True, True, True)
torch._unique2(I)
torch._unsafe_index(T, [torch.tensor([1])])
torch._unsafe_index(T, [torch.tensor([1]), torch.tensor([0])])
torch._unsafe_index_put(T, [torch.tensor([1])], torch.ones(1, 2))
torch._index_put_impl_(T.clone(), [torch.tensor([1])], torch.ones(1, 2), True)
torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 2]), 3)
torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 2]), 3, out_int32=True)
torch._convert_indices_from_csr_to_coo(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 1, 2]))
torch._convert_indices_from_csr_to_coo(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 1, 2]), transpose=True)
torch._int_mm(torch.ones(2, 3, dtype=torch.int8), torch.full((3, 2), 100, dtype=torch.int8))
torch._int_mm(T, T)  # raises
torch._euclidean_dist(T, T + 1)
torch._trilinear(torch.ones(2, 3), torch.ones(2, 3), torch.ones(2, 3), [], [], [], [1])
torch._trilinear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(2, 4), [1], [0], [2], [2])
torch._convolution(torch.ones(1, 1, 4), torch.ones(1, 1, 2), None, [1], [0], [1], False, [0], 1, False, False, False, False)
torch._convolution_mode(torch.ones(1, 1, 4), torch.ones(1, 1, 3), None, [1], 'same', [1], 1)
torch._native_batch_norm_legit(T, None, None, True, .1, 1e-5)
torch._native_batch_norm_legit_no_training(T, None, None, torch.zeros(2), torch.ones(2), .1, 1e-5)
torch._batch_norm_impl_index(T, None, None, None, None, True, .1, 1e-5, False)
torch._fused_rms_norm(T, [2], None, 1e-5)
torch._scaled_dot_product_attention_math(T[None], T[None], T[None])[1].mul(1e4).round()
torch._scaled_dot_product_attention_math(T[None], T[None], T[None], is_causal=True, scale=0.5)[1].mul(1e4).round()
torch._scaled_dot_product_attention_math(T[None], T[None], T[None], torch.tensor([[1., 0.], [0., 0.]]))[1].mul(1e4).round()
torch._pack_padded_sequence(torch.arange(6.).view(3, 2), torch.tensor([3, 1]), False)
torch._pack_padded_sequence(torch.arange(12.).view(2, 3, 2), torch.tensor([3, 1]), True)
torch._pack_padded_sequence(torch.arange(6.).view(3, 2), torch.tensor([1, 3]), False)  # raises
torch._pad_packed_sequence(torch.arange(4.), torch.tensor([2, 1, 1]), False, 0., 3)
torch._pad_packed_sequence(torch.arange(8.).view(4, 2), torch.tensor([2, 1, 1]), True, -1., 5)
torch._transform_bias_rescale_qkv(torch.arange(24.).view(1, 2, 12), torch.ones(12), 2)
torch._amp_foreach_non_finite_check_and_unscale_([T.clone()], torch.zeros(1), torch.tensor([.5]))
torch._amp_update_scale_(torch.tensor([4.]), torch.tensor([0], dtype=torch.int32), torch.tensor([0.]), 2., .5, 1)
torch._amp_update_scale_(torch.tensor([4.]), torch.tensor([0], dtype=torch.int32), torch.tensor([0.]), 2., .5, 3)
torch._amp_update_scale_(torch.tensor([4.]), torch.tensor([2], dtype=torch.int32), torch.tensor([1.]), 2., .5, 3)
torch._weight_norm(T, torch.ones(2, 1), 0)
torch._weight_norm(T, torch.ones(1, 2), 1)
torch.norm_except_dim(T, 2, 0)
torch.norm_except_dim(T, 1, 1)
torch.norm_except_dim(T, 2, -1)
torch._assert(True, 'x')
torch._assert(False, 'x')  # raises
torch._assert_async(torch.tensor(0))  # raises
torch._assert_async(torch.tensor(0), 'msg')  # raises
torch._assert_async(torch.tensor(2))
torch._assert_tensor_metadata(T, [2, 2], None, torch.float32)
torch._assert_tensor_metadata(T, [2, 3])  # raises
torch._check(False, lambda: 'no')  # raises
torch._check(False)  # raises
torch._check(3, lambda: 'no')  # raises
torch._check_is_size(-1)  # raises
torch._check_is_size(3, max=2)  # raises
torch._check_value(False, lambda: 'v')  # raises
torch._check_type(False, lambda: 'v')  # raises
torch._check_index(False, lambda: 'v')  # raises
torch._check_not_implemented(False, lambda: 'v')  # raises
torch._check_tensor_all(T > 5, lambda: 'v')  # raises
torch._check_tensor_all(T > -1)
torch._check_with(KeyError, False, lambda: 'k')  # raises
torch.sym_int(2.7)
torch.sym_int(-2.7)
torch.sym_float(2)
torch.sym_max(1, 2.)
torch.sym_max(3, 2.)
torch.sym_min(1, 2.)
torch.sym_not(True)
torch.sym_ite(True, 1, 2)
torch.sym_ite(1, 1, 2)  # raises
torch.sym_sqrt(4)
torch.sym_sum([1, 2, 3])
torch.sym_constrain_range(5, min=2, max=3)  # raises
torch.sym_constrain_range_for_size(5, min=2, max=8)
T.to_dense() is T
T.to_dense(dtype=torch.float64)
T.coalesce()  # raises
T.indices()  # raises
T.values()  # raises
T.crow_indices()  # raises
T.row_indices()  # raises
T._indices()  # raises
T._nnz()  # raises
T.q_scale()  # raises
T.int_repr()  # raises
T.is_sparse, T.is_sparse_csr, T.is_quantized, T.is_nested, T.is_mkldnn, T.is_xla, T.is_mps, T.is_vulkan
T.dequantize()
I.dequantize()
torch.dequantize([T, T])  # raises
T.sspaddmm(T, T)  # raises
torch.smm(T, T)  # raises
torch.spmm(T, T)
torch.dsmm(T, T)
torch.hspmm(T, T)  # raises
T.clone().apply_(lambda x: x + 1)
I.clone().apply_(lambda x: x + .5)
I.clone().map_(I, lambda a, b: a + b)
T.clone().map_(torch.ones(2), lambda a, b: a + b)
T.clone().map2_(T, T, lambda a, b, c: a + b * c)
T.clone().requires_grad_().apply_(lambda x: x)  # raises
T.hash_tensor()
torch.hash_tensor(T, 0)
torch.hash_tensor(T, (0, 1), keepdim=True)
torch.hash_tensor(I)
torch.hash_tensor(torch.tensor([True, False]))
torch.hash_tensor(torch.tensor([-1, 2], dtype=torch.int8))
torch.hash_tensor(torch.tensor([200, 2], dtype=torch.uint8))
torch.hash_tensor(torch.tensor([1.5, 2], dtype=torch.bfloat16))
torch.hash_tensor(torch.tensor([1.5 + 1j, 2]))  # raises
torch.hash_tensor(torch.tensor([]))  # raises
torch.hash_tensor(T, mode=1)  # raises
torch.hash_tensor(torch.tensor(2.), 0, keepdim=True), torch.hash_tensor(torch.tensor(2.), -1)
torch.hash_tensor(torch.tensor(2.), 1)  # raises
torch.hash_tensor(T, (0, 0))  # raises
torch.hash_tensor(torch.ones(0, 2), 1)
torch.hash_tensor(torch.ones(0, 2), 0)  # raises
T.clone().__delitem__(0)  # raises
T.__cuda_array_interface__  # raises
T.module_load(T + 1)
T.volatile
T.resize(4)
T.resize_as(torch.ones(4))
T.reinforce(1)  # raises
T.ipu()  # raises
T.xpu()  # raises
T.mtia()  # raises
T.record_stream(None)  # raises
T.grad_dtype
T._has_symbolic_sizes_strides
T._use_count()
(lambda t: t.const_data_ptr() == t.data_ptr())(T)
T.bool()[0, 0].__nonzero__(), T[0, 0].__long__()
torch.is_distributed(T)
torch.xlogy_(T.clone(), T)
torch.gcd_(I.clone(), I)
torch.lcm_(I.clone(), I * 2)
torch.addmv_(T[0].clone(), T, T[1], beta=2, alpha=3)
torch.kl_div(T.log_softmax(1), T.softmax(1))
torch.kl_div(T.log_softmax(1), T.softmax(1), 2)
torch.kl_div(T.log_softmax(1), T.log_softmax(1), 0, log_target=True)
torch.binary_cross_entropy_with_logits(T, T > 1.0)  # raises
torch.binary_cross_entropy_with_logits(T, (T > 1).float(), None, T, 2)
torch.cosine_embedding_loss(T, T + 1, torch.tensor([1, -1]), 0.1, 0)
torch.hinge_embedding_loss(T, torch.tensor([[1, -1], [1, -1]]), 1.5)
torch.margin_ranking_loss(T[0], T[1], torch.tensor([1, -1]), 0.5, 0)
torch.margin_ranking_loss(T, T[0], torch.tensor(-1), 0.5, 1)
torch.poisson_nll_loss(T, T, True, True, 1e-8, 1)
torch.triplet_margin_loss(T, T + 1, T * 2, 1.0, 2., 1e-6, True, 0).mul(1e4).round()
torch.embedding(T, torch.tensor([1, 0, 1]))
torch.embedding(T, torch.tensor([1, 0, 1]), 0)
torch.embedding_renorm_(T.clone(), torch.tensor([1]), 1.0, 2.0)
torch.embedding_bag(T, torch.tensor([0, 1, 1]), torch.tensor([0, 1]), False, 1)[0]
torch.embedding_bag(T, torch.tensor([0, 1, 1]), torch.tensor([0, 1]))[0]
torch.embedding_bag(T, torch.tensor([0, 1, 1]), torch.tensor([0, 1]), False, 2)[0]
torch.embedding_bag(T, torch.tensor([0, 1, 1]), torch.tensor([0, 1, 3]), False, 1, False, None, True)[1:3]
torch._embedding_bag(T, torch.tensor([0, 1, 1]), torch.tensor([0, 1]))[1:]
torch._embedding_bag(T.t(), torch.tensor([0, 1, 1]), torch.tensor([0, 1]))[1:]
torch._embedding_bag(T, torch.tensor([0, 1, 1]), torch.tensor([0, 1]), padding_idx=1)[1:]
torch._embedding_bag(T, torch.tensor([0, 1, 1]), torch.tensor([0, 1]), False, 1, padding_idx=1)[1:]
torch._embedding_bag(T, torch.tensor([0, 1, 1]), torch.tensor([0, 1, 1]), False, 2)[1:]
torch.native_channel_shuffle(torch.arange(8.).view(1, 4, 2), 2)
torch.Stream().query(), torch.Event().query(), torch.Stream().device
torch.Event().record()  # raises
list(torch.Tag.__members__)
torch.Tag.pointwise
torch.int4, torch.qint8, torch.bit, torch.float4_e2m1fn_x2
torch.int4.itemsize, torch.int4.is_signed, torch.uint4.is_signed, torch.bits16.itemsize, torch.qint32.itemsize
torch.per_tensor_affine, torch.per_channel_affine_float_qparams
isinstance(3, torch.SymInt), isinstance(True, torch.SymBool)
torch.is_autocast_cache_enabled(), torch.clear_autocast_cache()
torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
torch.set_autocast_enabled('cpu', True), torch.margin_ranking_loss(*[T.bfloat16()] * 3).dtype, torch.set_autocast_enabled('cpu', False)
torch.set_autocast_enabled('cpu', True), torch.is_autocast_enabled('cpu'), (T @ T).dtype, torch.set_autocast_enabled('cpu', False)
torch.set_autocast_dtype('cpu', torch.float16), torch.get_autocast_dtype('cpu'), torch.set_autocast_dtype('cpu', torch.bfloat16)
torch.get_autocast_ipu_dtype(), torch.get_autocast_xla_dtype(), torch.is_autocast_ipu_enabled()
torch.get_device_module('cpu') is torch.cpu
torch.get_device_module() is torch.cpu
torch.get_device_module('foo')  # raises
torch.torch is torch
torch.compiled_with_cxx11_abi(), torch.is_vulkan_available(), torch.has_lapack, torch.has_spectral, torch.init_num_threads()
torch.fake_quantize_per_tensor_affine(T * 0.33, 0.1, 2, 0, 15)
torch.fake_quantize_per_tensor_affine(T * 0.33, torch.tensor(0.1), torch.tensor(2), 0, 15)
torch.fake_quantize_per_tensor_affine(T, 0.1, 20, 0, 15)  # raises
torch.fake_quantize_per_tensor_affine(T, 0.1, 2, 15, 0)  # raises
torch.fake_quantize_per_channel_affine(T * 0.33, torch.tensor([0.1, 0.2]), torch.tensor([0, 3], dtype=torch.int32), 0, 0, 15)
torch.fake_quantize_per_channel_affine(T * 0.33, torch.tensor([0.1]), torch.tensor([0], dtype=torch.int32), 0, 0, 15)  # raises
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_like_pytorch(expression):
    check(re.sub(r"\b[TI]\b", lambda match: OPERANDS[match[0]], expression))


def test_fake_quantization_has_the_gradient_of_the_identity_where_nothing_is_clamped():
    gradients = []
    for lib in (weft, torch):
        x = lib.tensor([[-1.0, 0.04, 0.77], [1.2, 5.0, 0.3]], requires_grad=True)
        scale, zero = lib.tensor([0.1, 0.2, 0.3]), lib.tensor([0, 1, 2], dtype=lib.int32)
        result = lib.fake_quantize_per_channel_affine(x, scale, zero, 1, 0, 15)
        (result * lib.arange(6.0).view(2, 3)).sum().backward()
        gradients.append((result.tolist(), x.grad.tolist()))
        x.grad = None
        lib.fake_quantize_per_tensor_affine(x, 0.1, 2, 0, 15).sum().backward()
        gradients[-1] += (x.grad.tolist(),)
    assert gradients[0] == gradients[1]


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_observed_fake_quantization(per_row, symmetric):
    results = []
    for lib in (weft, torch):
        state = [
            lib.tensor([float("inf")]),
            lib.tensor([float("-inf")]),
            lib.tensor([1.0]),
            lib.tensor([0], dtype=lib.int32),
        ]
        if per_row:
            state = [each.repeat(2) for each in state]
        on = lib.tensor([1])
        found = []
        for x in ([[-1.0, 0.3], [2.0, 0.7]], [[-3.0, 0.1], [1.0, 1.5]]):
            result = lib.fused_moving_avg_obs_fake_quant(
                lib.tensor(x), on, on, *state, 0.25, -128, 127, 0, per_row, symmetric
            )
            found += [result.tolist(), *(each.tolist() for each in state)]
        results.append(found)
    assert results[0] == results[1]


def test_dtypes_without_operations():
    with pytest.raises(NotImplementedError, match="torch.int4"):
        weft.zeros(2, dtype=weft.int4)
    assert pickle.loads(pickle.dumps(weft.int4)) is weft.int4


def test_a_layout_that_weft_lacks():
    with pytest.raises(NotImplementedError, match="to_mkldnn"):
        weft.ones(2, 2).to_mkldnn()


def test_derivatives_of_kernels():
    def gradient(lib, call):
        x = lib.tensor([[1.0, -0.5], [2.0, 3.0]], requires_grad=True)
        eval(call, {"torch": lib, "x": x}).sum().backward()
        return x.grad.tolist()

    for call in (
        "torch._softmax(x, 1, False).pow(2)",
        "torch._weight_norm(x, torch.ones(2, 1), 0)",
        "torch.norm_except_dim(x, 2, 0)",
        "torch.hinge_embedding_loss(x, torch.tensor([[1, -1], [1, -1]]), 1.5, 1)",
        "torch.embedding(x, torch.tensor([1, 1, 0]), 0)",
        "torch._safe_softmax(x, 0).pow(2)",
    ):
        np.testing.assert_allclose(gradient(weft, call), gradient(torch, call), rtol=1e-5, err_msg=call)
