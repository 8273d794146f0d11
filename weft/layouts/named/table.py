"""Which rule each public function has. A function and its forms `name_` and `out=` have the same one.

Functions that no row names are elementwise, or their results have no names: PLAIN_RESULTS lists them.
"""

from __future__ import annotations

import functools

from ...families.calls import elementwise_names
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
# fmt: on

_of_operands = {name: rule for rule, names in _OF_OPERANDS for name in names.split()}
_of_results = {name: rule for rule, names in _OF_RESULTS for name in names.split()}


@functools.lru_cache(4096)
def rules_of(name: str) -> tuple[OfOperands | None, OfResults | None]:
    """The rule of a public function, of the one sort or of the other. None twice if its results have no names."""
    for each in _known_as(name):
        if each in _of_operands or each in _of_results:
            return _of_operands.get(each), _of_results.get(each)
        if each in elementwise_names:
            return unifying, None
    return None, unifying_each if name.startswith(("_foreach_", "_to_cpu")) else None


def _known_as(name: str) -> list[str]:
    """The names under which the table may have a function: "linalg.norm_" is in it as "norm", "_conj_copy" as "conj"."""
    plain = name.removesuffix("_")
    last = plain.rpartition(".")[2].lstrip("_")
    return [name, plain, last, last.removesuffix("_copy")]
