"""Each public function has a rule for the names of its results, or is listed as one whose results have none."""

import pytest

import weft
from weft.core.layout_calls import canonical
from weft.core.registry import FUNCTIONS
from weft.families.calls import elementwise_names
from weft.layouts.named.rules import NAMED
from weft.layouts.named.table import PLAIN_RESULTS, _known_as, _of_operands, _of_results, rules_of

ALL = sorted({canonical(each) for each in (*FUNCTIONS, *vars(weft.Tensor)) if not each.startswith("__")})

# They make tensors of sizes or of data that is no tensor, or take sizes only from a tensor.
CONSTRUCTORS = """
    arange as_tensor bartlett_window blackman_window empty empty_permuted empty_quantized empty_strided eye fft.fftfreq fft.rfftfreq from_dlpack
    from_file from_numpy frombuffer full get_rng_state hamming_window hann_window kaiser_window linspace logspace new new_empty new_empty_strided
    new_full new_ones new_tensor new_zeros ones rand randint randn randperm range scalar_tensor zeros
    BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor
    _empty_affine_quantized _empty_per_channel_affine_quantized _legacy_new _make_subclass _make_wrapper_subclass
"""
# They make tensors of another layout, or take them; those have no names.
OTHER_LAYOUTS = """
    ccol_indices choose_qparams_optimized coalesce col_indices crow_indices hspmm indices int_repr lengths nested.as_nested_tensor
    nested.nested_tensor nested.nested_tensor_from_jagged nested.to_padded_tensor offsets q_per_channel_axis q_per_channel_scales
    q_per_channel_zero_points q_scale q_zero_point qscheme quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic
    resize_as_sparse_ row_indices smm sparse.sampled_addmm sparse.spdiags sparse.spsolve sparse_bsc_tensor sparse_bsr_tensor
    sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor sparse_mask sparse_resize_ sparse_resize_and_clear_ spmm
    sspaddmm to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr values
    _make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor _nested_view_from_buffer
    _coalesced_ _dimI _dimV _indices _nested_tensor_size _nested_tensor_storage_offsets _nested_tensor_strides _nnz _sparse_mask_projection
    _to_sparse _to_sparse_bsc _to_sparse_bsr _to_sparse_csc _to_sparse_csr _values
"""
# Their result is no tensor.
QUESTIONS = """
    allclose backward broadcast_shapes dense_dim device dim dtype element_size get_device grad_dtype grad_fn initial_seed is_anomaly_check_nan_enabled
    is_anomaly_enabled is_coalesced is_complex is_conj is_cpu is_cuda is_distributed is_floating_point is_inference is_ipu is_leaf is_maia
    is_meta is_mkldnn is_mps is_mtia is_neg is_nested is_nonzero is_quantized is_same_size is_signed is_sparse is_sparse_csr is_storage
    is_tensor is_vulkan is_xla is_xpu itemsize layout linalg.LinAlgError manual_seed module_load name nbytes ndim ndimension nelement numel
    output_nr record_stream register_hook register_post_accumulate_grad_hook reinforce requires_grad result_type retain_grad retains_grad
    seed set_default_tensor_type set_rng_state shape size sparse_dim spec storage_type stride sym_constrain_range
    sym_constrain_range_for_size sym_float sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum to_dlpack typename volatile
    SymBool SymFloat SymInt TypedStorage UntypedStorage grad
    _amp_foreach_non_finite_check_and_unscale_ _autograd _backward_hooks _byte_offset _cdata _cufft_get_plan_cache_size
    _debug_has_internal_overlap _fused_sdp_choice _grad_fn _has_compatible_shallow_copy_type _has_symbolic_sizes_strides _is_device_backend_autoload_enabled
    _is_functional_tensor _is_view _is_zerotensor _nnpack_available _post_accumulate_grad_hooks _running_with_deploy _storage _base
    _typed_storage _use_cudnn_ctc_loss _use_count _use_cudnn_rnn_flatten_weight _use_miopen_ctc_loss _version _views _grad _grad_dtype
"""
WITHOUT = {name for group in (CONSTRUCTORS, OTHER_LAYOUTS, QUESTIONS) for name in group.split()}


def is_known(name):
    return (
        rules_of(name) != (None, None)
        or name in NAMED.functions
        or not PLAIN_RESULTS.isdisjoint(_known_as(name))
        or name.endswith("Storage")
        or name.startswith(("_check", "_assert", "_sym_", "_validate", "quantized_"))
    )


def test_every_public_function_has_a_rule():
    assert len(ALL) > 1200
    assert [name for name in ALL if not is_known(name) and name not in WITHOUT] == []


def test_lists_of_functions_without_a_rule_are_short_of_none_that_has_one():
    assert sorted(name for name in WITHOUT if name not in ALL) == []


def test_the_table_names_public_functions_once():
    known = {each for name in (*ALL, *(f"{name}_" for name in ALL)) for each in (name, *_known_as(name))}
    assert sorted(name for name in (*_of_operands, *_of_results, *PLAIN_RESULTS) if name not in known) == []
    assert _of_operands.keys().isdisjoint(_of_results)
    assert PLAIN_RESULTS.isdisjoint(_of_operands.keys() | _of_results.keys())
    assert {"add", "exp", "lt"} <= elementwise_names


@pytest.mark.parametrize("name", sorted(elementwise_names))
def test_forms_of_elementwise_functions_have_the_rule_of_the_function(name):
    assert rules_of(name) == rules_of(f"{name}_") != (None, None)
