"""First and second derivatives of the ops against finite differences, in float64."""

import functools
import zlib

import numpy as np
import pytest

import weft
from weft.autograd import gradcheck, gradgradcheck
from weft.core.registry import FUNCTIONS

# ---- Sample inputs ---------------------------------------------------------------------------------------------------


class Sample:
    """Values of a shape, drawn for each op: between `low` and `high`, far from each other.

    `make` makes the tensor that is differentiated of them; the op gets what `within` makes of that.
    """

    def __init__(self, *shape, low=0.2, high=0.9, make=None, within=lambda x: x):
        self.shape, self.low, self.high, self.make, self.within = shape, low, high, make, within

    def tensor(self, rng):
        count = int(np.prod(self.shape))
        values = self.low + (self.high - self.low) * (
            rng.permutation(count) + 0.3 + 0.4 * rng.random(count)
        ) / max(count, 1)
        x = weft.from_numpy(values.reshape(self.shape))
        return (self.make(x) if self.make else x).detach().requires_grad_()


def ints(*values):
    return weft.tensor(values)


V = Sample(4)
W = Sample(4, low=1.1, high=2.3)
SIGNED = Sample(4, low=-1.9, high=1.9)
A = Sample(2, 3)
B = Sample(2, 3, low=1.2, high=2.7)
SQUARE = Sample(3, 3, make=lambda x: x + 2 * weft.eye(3, dtype=x.dtype))
POSITIVE = Sample(3, 3, make=lambda x: x @ x.t() + weft.eye(3, dtype=x.dtype))
SYMMETRIC = Sample(3, 3, make=POSITIVE.make, within=lambda x: (x + x.t()) / 2)
LOWER = Sample(3, 3, make=SQUARE.make, within=lambda x: x.tril())
UPPER = Sample(3, 3, make=SQUARE.make, within=lambda x: x.triu())
COMPLEX = Sample(2, 3, 2, make=weft.view_as_complex)
IMAGE = Sample(1, 2, 4, 4)
SIGNAL = Sample(1, 2, 5)
VOLUME = Sample(1, 1, 3, 3, 3)
MASK = weft.tensor([[True, False, True], [False, True, True]])
LOGITS = Sample(3, 4, low=-1.5, high=1.5)
CLASSES = ints(0, 3, 1)
SIGNS = ints(1, -1, 1, -1)

# ---- The table ---------------------------------------------------------------------------------------------------------
# Names of ops, and the arguments of a call. Samples are differentiated, other things passed on.

CALLS: dict[str, list] = {}


def call(names, *args, **kwargs):
    for name in names.split():
        CALLS.setdefault(name, []).append((args, kwargs))


call(
    "abs absolute angle asin asinh atan acos arccos arcsin arcsinh arctan cos cosh deg2rad digamma erf erfc exp exp2 expm1 frac "
    "i0 lgamma log log10 log1p log2 neg negative positive rad2deg reciprocal relu rsqrt selu sgn sigmoid sin sinc sinh sqrt "
    "square tan tanh erfinv logit trunc floor ceil round fix sign nan_to_num celu rrelu "
    "special.digamma special.entr special.erf special.erfc special.erfcx special.erfinv special.exp2 special.expit "
    "special.expm1 special.gammaln special.i0 special.i0e special.i1 special.i1e special.log1p special.log_ndtr special.logit "
    "special.ndtr special.ndtri special.psi special.sinc atanh arctanh clone ravel real hardshrink",
    V,
)
call("acosh arccosh", W)
call(
    "nn.functional.celu nn.functional.elu nn.functional.gelu nn.functional.hardshrink nn.functional.hardsigmoid "
    "nn.functional.hardswish nn.functional.hardtanh nn.functional.leaky_relu nn.functional.logsigmoid nn.functional.mish "
    "nn.functional.relu nn.functional.relu6 nn.functional.selu nn.functional.sigmoid nn.functional.silu "
    "nn.functional.softplus nn.functional.softshrink nn.functional.softsign nn.functional.tanh nn.functional.tanhshrink "
    "nn.functional.rrelu abs square",
    SIGNED,
)
call("nn.functional.gelu", SIGNED, approximate="tanh")
call("nn.functional.threshold threshold", SIGNED, 0.1, 0.5)
call("nn.functional.glu", SIGNED)
call("nn.functional.prelu prelu", Sample(2, 3, low=-1, high=1), Sample(3))
call(
    "add atan2 arctan2 copysign div divide true_divide fmax fmin hypot logaddexp logaddexp2 maximum minimum mul multiply pow "
    "float_power sub subtract rsub xlogy special.xlogy special.xlog1py fmod remainder dist",
    A,
    B,
)
call("add sub mul div maximum", A, Sample(3, low=1.2, high=2.0))
call("pow", W, 3)
call("pow", 2.5, W)
call("clamp clip", SIGNED, -1.0, 0.7)
call("clamp_max clamp_min", SIGNED, 0.31)
call("lerp", A, B, 0.3)
call("lerp", A, B, Sample(2, 3))
call("addcmul addcdiv", A, B, Sample(2, 3, low=1, high=2), value=0.7)
call("where", MASK, A, B)
call("polygamma special.polygamma", 1, W)
call("mvlgamma special.multigammaln", W, 2)
call(
    "sum mean prod var std amax amin logsumexp cumsum cumprod cummax cummin logcumsumexp softmax log_softmax "
    "nn.functional.softmax nn.functional.log_softmax nn.functional.softmin special.softmax special.log_softmax "
    "special.logsumexp max min median nanmedian mode nansum nanmean sort diff "
    "masked.sum masked.mean masked.prod masked.var masked.std masked.softmax masked.log_softmax masked.logsumexp "
    "masked.amax masked.amin masked.cumsum masked.cumprod masked.softmin",
    A,
    **{"dim": 1},
)
call(
    "sum mean prod var std max min median amax amin nansum nanmean nanmedian norm std_mean var_mean aminmax",
    A,
)
call("aminmax", A, dim=1)
call("norm", A, 3, 1)
call("quantile nanquantile", A, 0.3, dim=1)
call("kthvalue", A, 2, 1)
call("topk", A, 2)
call(
    "msort trapezoid trapz cumulative_trapezoid fliplr flipud t positive squeeze unbind adjoint atleast_3d", A
)
call("renorm", A, 2, 0, 0.8)
call("linalg.vector_norm", A, 3)
call("linalg.matrix_norm frobenius_norm nuclear_norm", A)
call("nn.functional.normalize", A)
call("cat concat concatenate stack hstack vstack dstack column_stack row_stack", [A, B])
call("block_diag", A, B)
call("broadcast_tensors meshgrid cartesian_prod", Sample(3), Sample(3, low=1, high=2))
call("reshape view_copy", A, (3, 2))
call("flatten", IMAGE, 1, 2)
call("unflatten", IMAGE, 1, (1, 2))
call("permute permute_copy", IMAGE, (0, 2, 3, 1))
call("transpose transpose_copy swapaxes swapdims movedim moveaxis", A, 0, 1)
call("unsqueeze unsqueeze_copy", A, 1)
call("select select_copy", A, 1, 2)
call("narrow narrow_copy", A, 1, 1, 2)
call("slice_copy", A, 1, 0, 3, 2)
call("split unsafe_split split_copy tensor_split chunk unsafe_chunk", A, 2, 1)
call("split_with_sizes", A, [1, 2], 1)
call("hsplit", A, 3)
call("vsplit", A, 2)
call("diagonal diag triu tril rot90 diagonal_copy diag_embed trace", SQUARE)
call("diagflat", V)
call("expand_copy broadcast_to", Sample(1, 3), (2, 3))
call("tile", A, (2, 1))
call("repeat_interleave", A, 2, 1)
call("roll", A, 1, 1)
call("flip", A, (0, 1))
call("as_strided as_strided_copy", A, (2, 2), (1, 2), 1)
call("unfold_copy", V, 0, 2, 1)
call("take", A, ints(0, 4, 4))
call("take_along_dim", A, weft.tensor([[0, 2], [1, 1]]), 1)
call("gather", A, 1, weft.tensor([[0, 2], [1, 1]]))
call("index_select", A, 1, ints(0, 2, 2))
call("masked_select", A, MASK)
call("masked_fill", A, MASK, 0.3)
call("masked_scatter", A, MASK, Sample(4))
call("index_add index_copy", A, 1, ints(2, 0), Sample(2, 2))
call("index_fill", A, 1, ints(2, 0), 0.5)
call("index_put", A, (ints(0, 1), ints(2, 0)), Sample(2))
call("index_reduce", A, 1, ints(2, 0), Sample(2, 2), "mean")
call("put", A, ints(0, 4), Sample(2))
call("scatter scatter_add", A, 1, weft.tensor([[0, 2], [1, 2]]), Sample(2, 2))
call("scatter_reduce", A, 1, weft.tensor([[0, 2], [1, 2]]), Sample(2, 2), "sum")
call("scatter_reduce", A, 1, weft.tensor([[0, 2], [1, 2]]), Sample(2, 2), "prod")
call("scatter_reduce", A, 1, weft.tensor([[0, 2], [1, 2]]), Sample(2, 2), "amax")
call("select_scatter", A, Sample(2), 1, 0)
call("slice_scatter", A, Sample(2, 2), 1, 0, 2)
call("diagonal_scatter", SQUARE, Sample(3))
call("as_strided_scatter", A, Sample(2, 2), (2, 2), (3, 1))
call("matmul mm linalg.matmul", A, Sample(3, 2))
call("mv", A, Sample(3))
call("dot inner vdot linalg.vecdot", V, W)
call("outer kron ger", Sample(2), Sample(3))
call("bmm", Sample(2, 2, 3), Sample(2, 3, 2))
call("addmm", Sample(2, 2), A, Sample(3, 2), beta=0.5, alpha=0.7)
call("addmv", Sample(2), A, Sample(3))
call("addr", A, Sample(2), Sample(3))
call("baddbmm", Sample(2, 2, 2), Sample(2, 2, 3), Sample(2, 3, 2))
call("addbmm", Sample(2, 2), Sample(2, 2, 3), Sample(2, 3, 2))
call("einsum", "ij,jk->k", A, Sample(3, 2))
call("tensordot", A, Sample(3, 2), 1)
call("chain_matmul", A, Sample(3, 2), Sample(2, 2))
call("linalg.multi_dot", [A, Sample(3, 2), Sample(2, 2)])
call("cross linalg.cross", Sample(2, 3), Sample(2, 3, low=1, high=2))
call("cdist", A, B)
call("pdist nn.functional.pdist", Sample(3, 2))
call("cov corrcoef", A)
call("vander linalg.vander", Sample(3))
call("combinations", V)
call(
    "det logdet slogdet inverse linalg.det linalg.slogdet linalg.inv linalg.pinv pinverse linalg.matrix_exp matrix_exp "
    "linalg.qr linalg.lu_factor linalg.svdvals linalg.cond",
    SQUARE,
)
call("linalg.cholesky cholesky linalg.eigvalsh", SYMMETRIC)
call("logdet", POSITIVE)
call("linalg.matrix_power matrix_power", SQUARE, 3)
call("linalg.solve", SQUARE, Sample(3, 2))
call("linalg.solve_triangular", LOWER, Sample(3, 2), upper=False)
call("cholesky_solve", Sample(3, 2), LOWER)
call("cholesky_inverse", LOWER)
call("triangular_solve", Sample(3, 2), UPPER)
call("nn.functional.linear_cross_entropy", A, Sample(4, 3), ints(2, 0))
call("linalg.householder_product", Sample(3, 2), Sample(2))
call("linalg.tensorsolve", Sample(2, 2, 4, make=lambda x: x + weft.eye(4).view(2, 2, 4)), Sample(2, 2))
call("linalg.tensorinv", Sample(2, 2, 4, make=lambda x: x + weft.eye(4).view(2, 2, 4)), ind=2)
call(
    "abs angle real imag conj conj_physical exp log sin tanh sqrt reciprocal square sgn view_as_real sum mean prod",
    COMPLEX,
)
call("mul div add sub pow dist", COMPLEX, Sample(2, 3, 2, low=1, high=2, make=weft.view_as_complex))
call("complex polar", A, B)
call("view_as_complex", Sample(3, 2))
call("fft.fft fft.ifft fft.rfft fft.ihfft", V)
call("fft.irfft fft.hfft fft.fft", COMPLEX)
call("fft.fft2 fft.ifft2 fft.rfft2 fft.fftn fft.rfftn fft.fftshift fft.ifftshift", A)
call("nn.functional.linear", A, Sample(4, 3), Sample(4))
call("nn.functional.bilinear bilinear", A, Sample(2, 2), Sample(2, 3, 2), Sample(2))
call("nn.functional.conv1d conv1d", SIGNAL, Sample(2, 2, 3), Sample(2), padding=1)
call("nn.functional.conv2d conv2d", IMAGE, Sample(2, 1, 3, 3), None, stride=2, padding=1, groups=2)
call("nn.functional.conv3d", VOLUME, Sample(1, 1, 2, 2, 2))
call("nn.functional.conv_transpose1d", SIGNAL, Sample(2, 2, 3), stride=2)
call("nn.functional.conv_transpose2d", Sample(1, 2, 2, 2), Sample(2, 1, 2, 2), stride=2)
call("nn.functional.conv_tbc", Sample(4, 1, 2), Sample(2, 2, 2), Sample(2))
call("nn.functional.avg_pool1d nn.functional.max_pool1d", SIGNAL, 2)
call("nn.functional.avg_pool2d nn.functional.max_pool2d", IMAGE, 2)
call("nn.functional.avg_pool3d nn.functional.max_pool3d", VOLUME, 2)
call("nn.functional.lp_pool1d", SIGNAL, 2.0, 2)
call("nn.functional.lp_pool2d", IMAGE, 2.0, 2)
call("nn.functional.adaptive_avg_pool1d nn.functional.adaptive_max_pool1d", SIGNAL, 2)
call("nn.functional.adaptive_avg_pool2d nn.functional.adaptive_max_pool2d", IMAGE, 3)
call("nn.functional.batch_norm", Sample(3, 2), None, None, Sample(2), Sample(2), True)
call("nn.functional.instance_norm", SIGNAL)
call("nn.functional.group_norm", IMAGE, 1, Sample(2), Sample(2))
call("nn.functional.layer_norm", A, (3,), Sample(3), Sample(3))
call("nn.functional.rms_norm", A, (3,), Sample(3))
call("nn.functional.local_response_norm", SIGNAL, 2)
call("nn.functional.pad", SIGNAL, (1, 2), "reflect")
call("nn.functional.pad", SIGNAL, (1, 2), "replicate")
call("nn.functional.pad", SIGNAL, (1, 2), "circular")
call("nn.functional.pad constant_pad_nd", SIGNAL, (1, -1))
call("nn.functional.unfold", IMAGE, 2)
call("nn.functional.fold", Sample(1, 8, 4), (4, 4), 2, stride=2)
call("nn.functional.pixel_shuffle", Sample(1, 4, 2, 2), 2)
call("nn.functional.pixel_unshuffle", IMAGE, 2)
call("nn.functional.channel_shuffle", IMAGE, 2)
call("nn.functional.interpolate", IMAGE, scale_factor=2)
call("nn.functional.interpolate", IMAGE, size=(3, 5), mode="bilinear", align_corners=False)
call("nn.functional.interpolate", IMAGE, size=(3, 5), mode="bicubic", align_corners=False)
call(
    "nn.functional.grid_sample",
    Sample(1, 1, 3, 3),
    Sample(1, 2, 2, 2, low=-0.8, high=0.7),
    align_corners=False,
)
call("nn.functional.affine_grid", Sample(1, 2, 3), (1, 1, 2, 2), align_corners=False)
call("nn.functional.embedding", ints(0, 2, 2), Sample(3, 2))
call("nn.functional.embedding_bag", ints(0, 2, 2), Sample(3, 2), ints(0, 1))
call(
    "nn.functional.cosine_similarity cosine_similarity nn.functional.pairwise_distance pairwise_distance",
    A,
    B,
)
call(
    "nn.functional.mse_loss nn.functional.l1_loss nn.functional.smooth_l1_loss nn.functional.huber_loss", A, B
)
call("nn.functional.binary_cross_entropy nn.functional.binary_cross_entropy_with_logits", A, Sample(2, 3))
call("nn.functional.kl_div nn.functional.poisson_nll_loss", A, Sample(2, 3))
call("nn.functional.gaussian_nll_loss", A, B, Sample(2, 3, low=0.5, high=1))
call("nn.functional.cross_entropy", LOGITS, CLASSES, label_smoothing=0.1)
call("nn.functional.cross_entropy", LOGITS, Sample(3, 4))
call("nn.functional.nll_loss nn.functional.multi_margin_loss", LOGITS, CLASSES)
call("nn.functional.multilabel_soft_margin_loss", LOGITS, weft.ones(3, 4))
call("nn.functional.hinge_embedding_loss nn.functional.soft_margin_loss", SIGNED, SIGNS)
call("nn.functional.margin_ranking_loss", SIGNED, V, SIGNS)
call("nn.functional.cosine_embedding_loss", Sample(4, 2), Sample(4, 2, low=-1, high=1), SIGNS)
call("nn.functional.triplet_margin_loss", A, B, Sample(2, 3, low=-1, high=1))
call(
    "nn.functional.ctc_loss",
    Sample(4, 1, 3, within=lambda x: x.log_softmax(2)),
    weft.tensor([[1, 2]]),
    ints(4),
    ints(2),
)
call(
    "nn.functional.scaled_dot_product_attention",
    Sample(1, 1, 3, 2),
    Sample(1, 1, 3, 2),
    Sample(1, 1, 3, 2),
    is_causal=True,
)

# They have no second derivative, as in PyTorch.
ONCE = {"nn.functional.ctc_loss", "nn.functional.pdist", "pdist"}
# Steps: their derivative is zero.
ZERO = {"ceil", "fix", "floor", "round", "sign", "trunc"}

CASES = [
    pytest.param(name, args, kwargs, id=f"{name}-{k}" if k else name)
    for name, calls in CALLS.items()
    for k, (args, kwargs) in enumerate(calls)
]


def prepared(name, args):
    """What makes the arguments of the op of the tensors that are differentiated, and these."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    tensors = []

    def place(value):
        if isinstance(value, list):
            parts = [place(each) for each in value]
            return lambda given: [part(given) for part in parts]
        if not isinstance(value, Sample):
            return lambda given: value
        position = len(tensors)
        tensors.append(value.tensor(rng))
        return lambda given: value.within(given[position])

    places = [place(each) for each in args]
    return lambda given: [put(given) for put in places], tensors


def floats(result):
    """The results that are differentiable."""
    if isinstance(result, weft.Tensor):
        return result
    return tuple(
        each
        for each in result
        if isinstance(each, weft.Tensor) and (each.is_floating_point() or each.is_complex())
    )


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_derivatives(name, args, kwargs):
    arguments, tensors = prepared(name, args)
    op = functools.reduce(getattr, name.split("."), weft)

    def function(*given):
        return floats(op(*arguments(given), **kwargs))

    fast = sum(x.numel() for x in tensors) > 6
    assert gradcheck(
        function, tensors, fast_mode=fast, atol=2e-5, check_forward_ad=name != "nn.functional.ctc_loss"
    )
    if name not in ONCE | ZERO:
        assert gradgradcheck(function, tensors, fast_mode=True, atol=5e-5, check_fwd_over_rev=True)


def test_the_table_is_long_and_of_ops():
    assert len(CALLS) > 400
    assert not [name for name in CALLS if name not in FUNCTIONS]


def test_forward_mode_says_where_it_cannot_go():
    probabilities = weft.zeros(4, 1, 3).log_softmax(2)
    with pytest.raises(NotImplementedError, match="the derivative of ctc_loss_backward is not implemented"):
        weft.func.jvp(
            lambda x: weft.nn.functional.ctc_loss(x, weft.tensor([[1, 2]]), ints(4), ints(2)),
            (probabilities,),
            (weft.ones(4, 1, 3),),
        )
