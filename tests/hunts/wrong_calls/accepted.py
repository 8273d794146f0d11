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
    Accepted("Parameters of other dtypes are converted.", "allowed", torch="can't be cast"),
    Accepted("Parameters of other dtypes are converted.", "allowed", torch="same dtype"),
    Accepted("A bound may be infinite or NaN.", "allowed", change="inf"),
    Accepted("A bound may be infinite or NaN.", "allowed", change="nan"),
    Accepted("Any strides will do.", "allowed", torch="view size is not compatible"),
    Accepted("Windows of size 0 are empty sums.", "allowed", "*onv*", torch="primitive descriptor"),
    Accepted("Windows of size 0 are empty sums.", "allowed", "*onv*", torch="greater than zero"),
    Accepted("Losses broadcast both ways.", "allowed refused value", "*loss", change="shape"),
    Accepted("Losses promote dtypes.", "value", "*_loss", weft="float"),
    Accepted("Nothing is checked where there are no elements.", "allowed value refused", change="empty"),
    Accepted(
        "Bounds may be a number and a tensor.", "allowed", "clamp* Tensor.clamp* clip*", torch="TypeError"
    ),
    # ---- weft does more ----
    Accepted("More dtypes work.", "allowed", torch="not implemented for"),
    Accepted("More dtypes work.", "allowed", torch="NotImplementedError"),
    Accepted("More dtypes work.", "allowed", "fft.*", torch="Unsupported dtype"),
    Accepted("FFTs of tensors without elements work.", "allowed", "fft.*", torch="MKL FFT error"),
    Accepted("More functions have derivatives.", "allowed", torch="automatic differentiation"),
    Accepted("More functions have derivatives.", "allowed", torch="is not differentiable with respect to"),
    Accepted("More functions have derivatives.", "allowed", torch="derivative for"),
    Accepted("More functions have derivatives.", "value", "special.*", weft="instead of []"),
    Accepted("weft's derivatives handle what PyTorch's refuse in backward.", "allowed", torch="in backward"),
    Accepted(
        "A uint8 mask counts as bool everywhere.", "allowed", "*item__", torch="only supports boolean masks"
    ),
    Accepted("A mask broadcasts, whatever its dims.", "allowed", "*scaled_dot_product*", torch="IndexError"),
    Accepted(
        "One size stands for a sequence of one.", "allowed type", torch="must be tuple of ints, not int"
    ),
    Accepted(
        "Bounds may be a number and a tensor.", "allowed", "clamp* Tensor.clamp* clip*", torch="TypeError"
    ),
    Accepted("None means what leaving the argument out means.", "allowed", torch="NoneType"),
    # ---- Which of several errors is reported, or when ----
    Accepted("With two wrong arguments, either may be reported.", "type", change="; "),
    Accepted("PyTorch's own functions fail inside; weft checks.", "type", torch="AttributeError"),
    Accepted("PyTorch's own functions fail inside; weft checks.", "type", torch="unsupported operand"),
    Accepted("PyTorch's own functions fail inside; weft checks.", "type", torch="index out of range"),
    Accepted("PyTorch's own functions fail inside; weft checks.", "type", torch="Dimension out of range"),
    Accepted("PyTorch's own checks fail; weft has others.", "type allowed", torch="INTERNAL ASSERT"),
    Accepted("PyTorch refuses what it has computed; weft refuses it before.", "type", torch="setStorage"),
    Accepted("A missing derivative is a NotImplementedError.", "type", weft="the derivative of"),
    Accepted("PyTorch checks nothing where there are no elements.", "refused", change="empty"),
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
        "Switches are bools; PyTorch's Python functions take any object.",
        "refused",
        weft="should be of type bool",
    ),
    Accepted(
        "Arguments that are not used are checked, too.",
        "refused",
        "*multi_head_attention_forward",
        weft="must be Tensor",
    ),
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
    Accepted("A probability is in [0, 1].", "refused", weft="probability has to be between 0 and 1"),
    Accepted(
        "Windows that would not fit are refused.",
        "refused",
        "*fractional_max_pool* *unfold *conv*",
        weft="RuntimeError",
    ),
    Accepted(
        "Sizes and dtypes are equal where PyTorch's docs say so.",
        "refused",
        "*batch_norm gradient trapz trapezoid",
    ),
    Accepted("Shapes are sequences of ints.", "refused", "broadcast_shapes roll", weft="must be int"),
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
        "value allowed",
        "*_ *item__",
        change="expanded",
    ),
    Accepted(
        "What a write leaves in elements that share memory is not defined.",
        "value allowed",
        "*_ *item__",
        change="overlapping",
    ),
    Accepted("A NaN or an infinity as a bound or an order has no derivative.", "value", change="nan"),
    Accepted("A NaN or an infinity as a bound or an order has no derivative.", "value", change="inf"),
    Accepted("Orders beyond the range of the dtype overflow at different steps.", "value", change="1e+300"),
    Accepted("Orders beyond the range of the dtype overflow at different steps.", "value", change=str(2**62)),
    Accepted("The first of equal elements is found; PyTorch's mode finds any.", "value", "mode Tensor.mode"),
    Accepted("PyTorch searches in what is not sorted by another path.", "value", "searchsorted bucketize"),
    Accepted("PyTorch's derivative is wrong (docs/differences.md).", "value", "*as_strided_scatter"),
    Accepted("PyTorch rounds the gradient to the integers of the exponent.", "value", "*ldexp*"),
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
