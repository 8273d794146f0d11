"""Which rule each public function has. A function and its forms `name_` and `out=` have the same one.

Functions that no row names are elementwise, or their results have no names: the sets below list them. A function that the table lacks
runs on the named tensors: the functions that it calls give the names, and an op raises NotImplementedError.
"""

from __future__ import annotations

import functools

from ...families.calls import elementwise_names
from .. import FUNCTIONS_OF_LAYOUTS
from .contraction import (
    adding_outer,
    adding_product,
    adding_products,
    attending,
    einsum,
    inner,
    multiplying,
    multiplying_all,
    outer,
    projecting,
    tensordot,
)
from .propagation import (
    OfOperands,
    OfResults,
    choosing,
    classifying,
    comparing,
    convolving,
    expanding,
    joining,
    joining_rows,
    keeping,
    keeping_in_first,
    looking_up,
    pairing,
    prepending,
    recurring,
    reducing,
    reducing_by_quantiles,
    replacing,
    reshaping,
    rotating,
    sampling,
    scoring,
    searching,
    selecting,
    stacking,
    swapping,
    unifying,
    unifying_each,
    unifying_two,
    unsqueezing,
    viewing,
)

# fmt: off
_OF_OPERANDS: list[tuple[OfOperands, str]] = [
    (unifying, """addcmul addcdiv masked_fill masked_scatter lerp clamp isclose ldexp prelu angle positive complex polar conj conj_physical real imag
        threshold rrelu hardshrink cross normal poisson binomial bernoulli copy_ type_as frexp float_power add_relu neg_view
        mse_loss l1_loss smooth_l1_loss huber_loss hinge_embedding_loss soft_margin_loss margin_ranking_loss test_serialization_subcmul"""),
    (unifying_two, "binary_cross_entropy binary_cross_entropy_with_logits kl_div poisson_nll_loss gaussian_nll_loss"),
    (keeping, """as_tensor asarray clone lazy_clone contiguous alias detach data requires_grad_ resolve_conj resolve_neg apply_ map_ map2_"""),
    (keeping, """to to_device cpu cuda ipu mtia xpu pin_memory share_memory_ to_mkldnn to_dense dequantize"""),
    (keeping, """type float double half bfloat16 int long short char byte bool cfloat cdouble chalf
        cast_Byte cast_Char cast_Double cast_Float cast_Half cast_Int cast_Long cast_Short saturate_weight_to_fp16"""),
    (keeping, """zeros_like ones_like empty_like full_like rand_like randn_like randint_like fill zero_ fill_diagonal_ embedding_renorm_
        uniform_ exponential_ normal_ cauchy_ geometric_ log_normal_ random_ standard_gamma standard_gamma_grad dirichlet_grad sample_dirichlet
        dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout feature_alpha_dropout native_dropout"""),
    (keeping, """softmax log_softmax softmin safe_softmax masked_softmax gumbel_softmax softmax_backward_data log_softmax_backward_data
        cumsum cumprod cummax cummin logcumsumexp cumulative_trapezoid diff gradient sort argsort msort topk renorm normalize nan_to_num
        flip fliplr flipud roll tril triu bucketize isin matrix_exp matrix_power weight_norm
        fake_quantize_per_tensor_affine fake_quantize_per_channel_affine
        fake_quantize_learnable_per_tensor_affine fake_quantize_learnable_per_channel_affine fused_moving_avg_obs_fake_quant"""),
    (keeping, """split split_with_sizes tensor_split chunk hsplit vsplit dsplit unsafe_split unsafe_split_with_sizes unsafe_chunk narrow slice slice_inverse
        index_select index_fill index_copy index_add index_reduce index_put index_put_impl unsafe_index_put unsafe_masked_index_put_accumulate gather take_along_dim
        scatter scatter_add scatter_reduce put diagonal_scatter select_scatter slice_scatter as_strided_scatter"""),
    (keeping, """relu relu6 gelu silu elu selu celu leaky_relu sigmoid tanh softplus hardtanh hardswish hardsigmoid mish softsign softshrink tanhshrink
        logsigmoid glu prelu_kernel layer_norm batch_norm instance_norm group_norm rms_norm fused_rms_norm local_response_norm"""),
    (keeping, """quantized_batch_norm quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d max_pool1d max_pool2d max_pool3d
        max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices
        avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d max_unpool1d max_unpool2d max_unpool3d
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
        adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices
        fractional_max_pool2d fractional_max_pool3d fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices
        interpolate upsample upsample_bilinear upsample_nearest pad constant_pad_nd pixel_shuffle pixel_unshuffle channel_shuffle"""),
    (keeping, """fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn irfftn hfftn ihfftn fftshift ifftshift"""),
    (choosing, "where"),
    (searching, "searchsorted"),
    (selecting, "masked_select"),
    (joining, "cat"),
    (joining_rows, "hstack vstack dstack column_stack"),
    (stacking, "stack"),
    (multiplying, "matmul mm mv bmm dot vdot int_mm scaled_mm scaled_mm_v2"),
    (multiplying_all, "chain_matmul multi_dot"),
    (adding_product, "addmm addmv baddbmm addmm_activation"),
    (adding_products, "addbmm"),
    (adding_outer, "addr"),
    (outer, "outer"),
    (inner, "inner"),
    (projecting, "linear bilinear"),
    (attending, "scaled_dot_product_attention"),
    (tensordot, "tensordot"),
    (einsum, "einsum"),
    (pairing, "cdist euclidean_dist"),
    (looking_up, "embedding"),
    (convolving, "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc convolution convolution_mode"),
    (sampling, "grid_sample grid_sampler grid_sampler_2d grid_sampler_3d"),
]
_OF_RESULTS: list[tuple[OfResults, str]] = [
    (reducing, """sum nansum mean nanmean prod std var std_mean var_mean all any is_all_true is_any_true amax amin aminmax max min argmax argmin
        median nanmedian mode kthvalue logsumexp count_nonzero norm vector_norm matrix_norm frobenius_norm nuclear_norm dist trapezoid vecdot
        hash_tensor select unbind"""),
    (reducing_by_quantiles, "quantile nanquantile"),
    (scoring, "multilabel_margin_loss multi_margin_loss multilabel_soft_margin_loss"),
    (comparing, "cosine_similarity pairwise_distance cosine_embedding_loss triplet_margin_loss triplet_margin_with_distance_loss"),
    (classifying, "cross_entropy nll_loss"),
    (expanding, "expand expand_as broadcast_to broadcast_tensors repeat tile"),
    (prepending, "atleast_1d atleast_2d atleast_3d"),
    (replacing(0), "unfold view_as_real one_hot vander"),
    (replacing(1), "view_as_complex multinomial stft gru_cell lstm_cell rnn_tanh_cell rnn_relu_cell"),
    (replacing(2), """det logdet slogdet cond matrix_rank inv_ex cholesky cholesky_ex cholesky_inverse cholesky_solve svd svdvals svd_lowrank pca_lowrank
        qr geqrf orgqr ormqr householder_product eig eigh eigvals eigvalsh symeig lobpcg lu lu_factor lu_factor_ex lu_solve lu_unpack
        ldl_factor ldl_factor_ex ldl_solve solve solve_ex solve_triangular triangular_solve lstsq istft"""),
    (swapping, "inverse inv pinverse pinv"),
    (rotating, "rot90"),
    (recurring, "lstm gru rnn_tanh rnn_relu quantized_lstm quantized_gru"),
    (keeping_in_first, """native_batch_norm native_batch_norm_legit native_batch_norm_legit_no_training batch_norm_impl_index native_layer_norm
        native_group_norm weight_norm_interface multi_head_attention_forward"""),
    (unsqueezing, "unsqueeze"),
    (reshaping, "view view_as reshape reshape_as resize resize_as"),
    (viewing, "transpose swapaxes swapdims movedim permute t T mT H mH adjoint squeeze diagonal"),
]
# Functions whose results have dims that no dim of the input is the origin of.
PLAIN_RESULTS = frozenset("""
    affine_grid affine_grid_generator amp_update_scale argwhere as_strided bincount block_diag cartesian_prod chunk_cat combinations
    compute_linear_combination convert_indices_from_coo_to_csr convert_indices_from_csr_to_coo convert_weight_to_int4pack_for_cpu
    corrcoef cov ctc_loss diag diag_embed diagflat dim_arange embedding_bag fold grouped_mm histc histogram histogramdd kron
    linear_cross_entropy meshgrid nonzero nonzero_static norm_except_dim pack_padded_sequence pad_packed_sequence pdist ravel
    repeat_interleave reshape_from_tensor scaled_dot_product_attention_math segment_reduce set_ shape_as_tensor sum_to_size take
    tensorinv tensorsolve trace transform_bias_rescale_qkv tril_indices trilinear triu_indices unique unique2 unique_consecutive
    unravel_index unsafe_index unsafe_masked_index weight_int4pack_mm_for_cpu weight_int8pack_mm
""".split())
# Functions that make tensors of sizes or of data that is no tensor, or take only sizes or a dtype from a tensor.
CONSTRUCTORS = frozenset("""
    arange bartlett_window blackman_window empty empty_permuted empty_quantized empty_strided eye fft.fftfreq fft.rfftfreq from_dlpack
    from_file from_numpy frombuffer full get_rng_state hamming_window hann_window kaiser_window linspace logspace new new_empty new_empty_strided
    new_full new_ones new_tensor new_zeros ones rand randint randn randperm range scalar_tensor zeros
    BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor
    _empty_affine_quantized _empty_per_channel_affine_quantized _legacy_new _make_subclass _make_wrapper_subclass
""".split())
# Functions of tensors of other layouts, besides FUNCTIONS_OF_LAYOUTS, which make such tensors.
OTHER_LAYOUTS = frozenset("""
    ccol_indices coalesce col_indices crow_indices hspmm indices int_repr lengths offsets q_per_channel_axis q_per_channel_scales
    q_per_channel_zero_points q_scale q_zero_point qscheme resize_as_sparse_ row_indices smm sparse_resize_ sparse_resize_and_clear_ spmm
    sspaddmm to_padded_tensor values
    _coalesced_ _dimI _dimV _indices _nested_tensor_size _nested_tensor_storage_offsets _nested_tensor_strides _nnz
    _sparse_mask_projection _to_sparse _to_sparse_bsc _to_sparse_bsr _to_sparse_csc _to_sparse_csr _values
""".split())
# Functions and attributes whose result is no tensor.
QUESTIONS = frozenset("""
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
""".split())
_CHECKS = "_check", "_assert", "_sym_", "_validate"  # how the names of checks begin, whose result is no tensor
# fmt: on

_of_operands = {name: rule for rule, names in _OF_OPERANDS for name in names.split()}
_of_results = {name: rule for rule, names in _OF_RESULTS for name in names.split()}
_without_names = PLAIN_RESULTS | CONSTRUCTORS | OTHER_LAYOUTS | QUESTIONS | FUNCTIONS_OF_LAYOUTS


@functools.lru_cache(4096)
def rules_of(name: str) -> tuple[OfOperands | None, OfResults | None] | None:
    """The rule of a public function, of the one sort or of the other; None twice if its results have no names.

    Returns None for a function that is not in the table.
    """
    for each in _known_as(name):
        if each in _of_operands or each in _of_results:
            return _of_operands.get(each), _of_results.get(each)
        if each in elementwise_names:
            return unifying, None
    if name.startswith(("_foreach_", "_to_cpu")):
        return None, unifying_each
    if not _without_names.isdisjoint(_known_as(name)) or name.startswith(_CHECKS) or name.endswith("Storage"):
        return None, None
    return None


def _known_as(name: str) -> list[str]:
    """The names under which the table may have a function: "linalg.norm_" is in it as "norm", "_conj_copy" as "conj"."""
    plain = name.removesuffix("_")
    last = plain.rpartition(".")[2].lstrip("_")
    return [name, plain, last, last.removesuffix("_copy")]
