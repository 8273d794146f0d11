"""What may differ between PyTorch and weft when arguments are wrong. Each entry has a reason; the list only shrinks."""

from __future__ import annotations

from typing import NamedTuple


class Accepted(NamedTuple):
    """A kind of difference: `paths` are patterns, the other strings must be contained in what was said or changed."""

    reason: str
    kinds: str  # of findings, see `verdict.Finding`
    paths: str = "*"
    torch: str = ""
    weft: str = ""
    change: str = ""
    empty: bool = False  # only if a tensor among the arguments has no elements


# Their results depend on what memory happens to hold, are not unique, or magnify rounding errors beyond any tolerance.
UNDEFINED_VALUES = (
    "empty*", "*new_empty*", "*resize*", "*svd*", "*eig*", "*qr", "*lobpcg*", "*geqrf*", "*ldl_factor*", "*pca_lowrank*",
    "*cond", "*solve*", "*inv*", "*lstsq*", "*matrix_exp*", "*det*",
)  # fmt: skip

# Public in PyTorch, not in weft: sparse tensors and a checksum that is not documented.
ABSENT = ("hash_tensor", "Tensor.hash_tensor", "*sparse*")

ACCEPTED = (
    # ---- weft takes what PyTorch refuses ----
    Accepted("Numbers beyond the range of a dtype become infinite.", "allowed", torch="without overflow"),
    Accepted(
        "Tensors may have any strides.",
        "allowed",
        "*take_along_dim kron native_group_norm *conv_tbc",
        torch="view size",
    ),
    Accepted("Tensors may have any strides.", "allowed", "native_group_norm", torch="is_contiguous"),
    Accepted("Windows of size 0 are empty sums.", "allowed", "*onv*", torch="primitive descriptor"),
    Accepted("Windows of size 0 are empty sums.", "allowed", "*onv*", torch="greater than zero"),
    Accepted(
        "A cell state may be of another dtype, as in LSTMCell.",
        "allowed",
        "nn.LSTM",
        torch="primitive descriptor",
    ),
    Accepted(
        "Losses promote dtypes.",
        "allowed",
        "nn.functional.*loss *_with_logits nn.CrossMapLRN2d",
        torch="can't be cast",
    ),
    Accepted("Losses promote dtypes.", "value", "*_loss *_with_logits", weft="float"),
    Accepted(
        "Bounds may be a number and a tensor.", "allowed", "clamp* Tensor.clamp* clip*", torch="TypeError"
    ),
    # ---- weft does more ----
    Accepted("More dtypes work.", "allowed", torch="NotImplementedError"),
    Accepted("More dtypes work.", "allowed", "fft.*", torch="Unsupported dtype"),
    Accepted("More dtypes work.", "allowed", "linalg.vander", torch="supports floating point"),
    Accepted("More dtypes work.", "allowed", "nn.functional.soft_margin_loss", torch="Negation"),
    Accepted("More functions have derivatives.", "allowed", torch="automatic differentiation"),
    Accepted("More functions have derivatives.", "allowed", torch="is not differentiable with respect to"),
    Accepted("More functions have derivatives.", "allowed", torch="Autograd not support dtype"),
    Accepted("More functions have derivatives.", "value", "special.*", weft="instead of []"),
    Accepted("weft's derivatives handle what PyTorch's refuse in backward.", "allowed", torch="in backward"),
    Accepted(
        "A uint8 mask counts as bool everywhere.", "allowed", "*item__", torch="only supports boolean masks"
    ),
    Accepted(
        "One int stands for a list of one in functions, as in methods.",
        "allowed type",
        "*reshape *permute *flip tile *broadcast_to *_copy",
        torch="must be tuple of ints, not int",
    ),
    Accepted(
        "None means what leaving the argument out means.",
        "allowed",
        "*median *logsumexp *squeeze* *scatter *trap* repeat_interleave *prod arange eye constant_pad_nd gradient min max Tensor.min Tensor.max",
        torch="NoneType",
    ),
    Accepted(
        "torch.ctc_loss, which numbers the reductions, is the same function.",
        "allowed",
        "*ctc_loss",
        torch="reduction",
    ),
    Accepted(
        "A number may be an int.", "allowed", "nn.functional.gaussian_nll_loss", torch="TypeError: any()"
    ),
    # ---- Which of several errors is reported, or when ----
    Accepted("With two wrong arguments, either may be reported.", "type", change="; "),
    Accepted(
        "Who catches RuntimeError catches NotImplementedError, too.",
        "type",
        torch="RuntimeError",
        weft="NotImplementedError",
    ),
    Accepted(
        "PyTorch's functions written in Python fail inside; weft checks the type.",
        "type",
        torch="AttributeError",
        weft="TypeError",
    ),
    Accepted(
        "PyTorch's functions written in Python fail inside; weft checks the type.",
        "type",
        "nn.LSTM nn.GRU nn.RNN",
        torch="AttributeError",
        weft="hidden state",
    ),
    Accepted(
        "PyTorch's functions written in Python fail inside; weft checks.", "type", torch="unsupported operand"
    ),
    Accepted(
        "PyTorch's functions written in Python fail inside; weft checks.", "type", torch="index out of range"
    ),
    Accepted(
        "PyTorch's functions written in Python fail inside; weft checks.", "type", torch="division by zero"
    ),
    Accepted(
        "PyTorch's functions written in Python fail inside; weft checks.", "type", torch="could not convert"
    ),
    Accepted(
        "PyTorch asks for the size of a dim before it counts the dims.",
        "type",
        torch="Dimension out of range",
    ),
    Accepted(
        "PyTorch asks for the size of a dim before it counts the dims.",
        "type",
        torch="Dimension specified as",
    ),
    Accepted("PyTorch's own checks fail; weft has others.", "type allowed", torch="INTERNAL ASSERT"),
    Accepted(
        "Empty and missing tensors: what PyTorch checks there varies.",
        "allowed value refused type",
        empty=True,
    ),
    # ---- weft is stricter ----
    Accepted(
        "True is no size and no dimension; PyTorch takes it in some places.",
        "refused type",
        weft="must be int, not bool",
    ),
    Accepted(
        "Switches are bools; PyTorch's Python functions take any object.",
        "refused type",
        weft="must be bool, not",
    ),
    Accepted(
        "Sizes are ints; PyTorch's Python functions take floats that happen to do.",
        "refused type",
        "nn.functional.max_unpool* signal.windows.* nn.functional.fractional*",
        weft="must be int, not",
    ),
    Accepted(
        "The types of all arguments are checked, used or not.",
        "refused type",
        "*multi_head_attention_forward",
        weft="must be",
    ),
    Accepted("None is no dimension.", "refused", "masked.cum*", weft="must be int, not NoneType"),
    Accepted(
        "An index of floats is refused; PyTorch cuts the floats in a list.",
        "refused",
        "*item__",
        weft="must be long, int",
    ),
    Accepted("Modes are in range; PyTorch takes any number.", "refused", "grid_sampler*", weft="expected"),
    Accepted(
        "Sizes and classes are checked; PyTorch reads what is there.",
        "refused value",
        "*ctc_loss native_* lu_unpack",
    ),
    Accepted(
        "Sizes are checked; PyTorch reads what is there.",
        "refused",
        "*mbedding*ag",
        weft="offsets must not fall",
    ),
    Accepted(
        "Sizes are checked; PyTorch reads what is there.",
        "refused",
        "*scaled_dot_product*",
        weft="batch2 tensor",
    ),
    Accepted(
        "Dtypes are checked; PyTorch reads the bytes of one as the other.",
        "refused",
        "linalg.solve_triangular",
        weft="same dtype",
    ),
    Accepted("Dtypes are checked.", "refused", "*_norm", weft="mixed dtype"),
    Accepted("Pivots are checked (docs/differences.md).", "refused", "linalg.ldl_solve", weft="pivots"),
    Accepted(
        "A probability is in [0, 1].",
        "refused",
        "*scaled_dot_product*",
        weft="probability has to be between 0 and 1",
    ),
    Accepted(
        "Windows that would not fit are refused.",
        "refused",
        "*fractional_max_pool* *unfold *conv*",
        weft="RuntimeError",
    ),
    Accepted("Shapes are sequences of ints.", "refused type", "broadcast_shapes"),
    # ---- Undefined ----
    Accepted(
        "PyTorch's attention reads beyond elements that share memory.",
        "value",
        "*scaled_dot_product*",
        change="overlapping",
    ),
    Accepted(
        "Draws follow the memory order of the probabilities.", "value", "*multinomial", change="expanded"
    ),
    Accepted(
        "What a write leaves in elements that share memory is not defined.",
        "value allowed refused",
        "*_ *item__ *_scatter",
        change="expanded",
    ),
    Accepted(
        "What a write leaves in elements that share memory is not defined.",
        "value allowed refused",
        "*_ *item__ *_scatter",
        change="overlapping",
    ),
    Accepted(
        "A NaN or an infinity as an order or a factor has no derivative.",
        "value",
        "*norm* *dist *mm *hardtanh *hardshrink",
        change="nan",
    ),
    Accepted(
        "A NaN or an infinity as an order or a factor has no derivative.",
        "value",
        "*norm* *dist *mm *hardtanh *hardshrink",
        change="inf",
    ),
    Accepted("Orders beyond the range of the dtype overflow at different steps.", "value", change="1e+300"),
    Accepted("Orders beyond the range of the dtype overflow at different steps.", "value", change=str(2**62)),
    Accepted("Orders beyond the range of the dtype overflow at different steps.", "value", change=str(2**31)),
    Accepted("High degrees overflow at different steps.", "value", "special.*polynomial*", change="uint8"),
    Accepted("Of equal elements PyTorch finds any.", "value", "*mode *median *kthvalue *topk *sort"),
    Accepted("PyTorch searches in what is not sorted by another path.", "value", "searchsorted bucketize"),
    Accepted(
        "Whether a pivot of a singular matrix is zero is a matter of rounding.",
        "value refused",
        "lu",
        weft="0",
    ),
    # ---- PyTorch is wrong ----
    Accepted(
        "PyTorch's derivative is wrong (docs/differences.md).",
        "value",
        "*as_strided_scatter nn.CrossMapLRN2d",
    ),
    Accepted("PyTorch's derivative is wrong for no dims.", "value", "std_mean var_mean", change="one less"),
    Accepted("PyTorch rounds the gradient to the integers of the exponent.", "value", "*ldexp*"),
    Accepted("PyTorch's 1 + |input| wraps around in small integers.", "value", "*softsign", change="int"),
    Accepted("PyTorch's Bessel functions have six digits near 5.", "value", "special.bessel_*"),
    # ---- Out of memory ----
    Accepted(
        "A window may need more memory, or less, than PyTorch's.",
        "refused allowed",
        weft="can't allocate memory",
    ),
    Accepted(
        "Sizes and strides of more than 64 bits are refused, whether used or not.", "refused", weft="overflow"
    ),
)
