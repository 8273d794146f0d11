"""Einstein summation: sums of products, written with one letter for each dimension."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

from ...core.arguments import integer
from ...core.entry import entry, in_front_of
from ...core.registry import add_function
from ...core.tensor import Tensor
from .matmul import bmm

_LETTERS = string.ascii_uppercase + string.ascii_lowercase
_ELLIPSIS = ".."  # stands for the label of the first dim of an ellipsis; its dims are (_ELLIPSIS, 0), (_ELLIPSIS, 1), ...


def _operands_one_by_one(args: tuple) -> tuple:
    """The older form `einsum(equation, [a, b])` as `einsum(equation, a, b)`, which is what handlers get."""
    if len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], (tuple, list)):
        return (args[0], *args[1])
    return args


def _computed(*args: Any) -> Tensor:
    """`einsum`; while modes are on, its list of operands arrives as it was given."""
    args = _operands_one_by_one(args)
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    inputs, output, operands = _from_lists(args) if isinstance(args[0], Tensor) else _from_equation(args)
    for operand in operands:
        if not isinstance(operand, Tensor):
            raise TypeError(
                f"einsum(): argument 'operands' must be tuple of Tensors, not {type(operand).__name__}"
            )
    labels, output = _without_ellipsis(inputs, output, operands)
    terms = [_one_dim_per_label(*pair) for pair in zip(labels, operands, strict=True)]
    sizes = _sizes(terms, operands)
    return _contract([_without_broadcast(term, sizes) for term in terms], output, sizes)


_entry = entry(_computed, "einsum", autocast="lower")


@in_front_of(_entry)
def einsum(*args: Any) -> Tensor:
    """Sums of products of tensors: `einsum("ij,jk->ik", a, b)` is the product of two matrices.

    Each letter is a dimension; letters that the result does not have are summed over, repeated letters of one operand
    are its diagonal, "..." are dims that broadcast. Without "->" the result has the letters that appear once,
    in alphabetical order. Also takes `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    Raises: RuntimeError if the sizes of a letter differ, or the equation does not fit the operands.

    >>> import weft as torch
    >>> torch.einsum("ii", torch.eye(3)), torch.einsum("i,j->ij", torch.ones(2), torch.ones(3)).shape
    (tensor(3.), torch.Size([2, 3]))
    """
    return _entry(*_operands_one_by_one(args))


add_function("einsum", einsum)


# ---- What the caller wrote ---------------------------------------------------------------------------------------------

# Labels of one operand: letters, and _ELLIPSIS at most once.
Labels = tuple[Any, ...]


def _from_equation(args: tuple) -> tuple[list[Labels], Labels | None, tuple]:
    equation, operands = args[0], args[1:]
    if not isinstance(equation, str):
        raise TypeError(
            f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}"
        )
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    left, arrow, right = equation.partition("->")
    inputs = [_parse(part, f"operand {number}") for number, part in enumerate(left.split(","))]
    if len(inputs) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    if len(inputs) > len(operands):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    return inputs, _parse(right, "output") if arrow else None, operands


def _parse(text: str, what: str) -> Labels:
    labels: list[Any] = []
    position = 0
    while position < len(text):
        letter = text[position]
        if letter == ".":
            if _ELLIPSIS in labels:
                raise RuntimeError(
                    f"einsum(): found '.' for {what} for which an ellipsis was already found: {text!r}"
                )
            if text[position : position + 3] != "...":
                raise RuntimeError(
                    f"einsum(): found '.' for {what} that is not part of any ellipsis: {text!r}"
                )
            labels.append(_ELLIPSIS)
            position += 3
            continue
        if letter != " ":
            if letter not in _LETTERS:
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {position} in the equation string, subscripts must be "
                    f"in [a-zA-Z], but found {letter!r} in {text!r}"
                )
            labels.append(letter)
        position += 1
    return tuple(labels)


def _from_lists(args: tuple) -> tuple[list[Labels], Labels | None, tuple]:
    operands, lists = args[0 : len(args) // 2 * 2 : 2], args[1::2]
    output = _from_list(args[-1]) if len(args) % 2 else None
    return [_from_list(subscripts) for subscripts in lists], output, operands


def _from_list(numbers: Any) -> Labels:
    labels = []
    for number in numbers:
        if number is not Ellipsis and not 0 <= integer(number, "einsum", "subscripts") < len(_LETTERS):
            raise ValueError(
                f"einsum(): subscripts in subscript list must be within the range [0, {len(_LETTERS)}), got {number!r}"
            )
        labels.append(_ELLIPSIS if number is Ellipsis else _LETTERS[number])
    return tuple(labels)


def _without_ellipsis(inputs: list[Labels], output: Labels | None, operands) -> tuple[list[Labels], Labels]:
    """Every dim with a label of its own; broadcast dims are numbered from the right."""
    widest = 0
    for k, (labels, operand) in enumerate(zip(inputs, operands, strict=True)):
        named = len(labels) - (_ELLIPSIS in labels)
        hidden = operand.dim() - named
        if hidden < 0 or hidden and _ELLIPSIS not in labels:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions "
                f"({operand.dim()}) for operand {k}" + (" and no ellipsis was given" if hidden > 0 else "")
            )
        widest = max(widest, hidden)
    hidden_labels = tuple((_ELLIPSIS, k) for k in reversed(range(widest)))

    def spelled(labels: Labels, count: int) -> Labels:
        at = labels.index(_ELLIPSIS) if _ELLIPSIS in labels else len(labels)
        dims = hidden_labels[widest - count :] if _ELLIPSIS in labels else ()
        return (*labels[:at], *dims, *labels[at + 1 :])

    spelled_inputs = [
        spelled(labels, operand.dim() - len(labels) + 1)
        for labels, operand in zip(inputs, operands, strict=True)
    ]
    everything = [label for labels in spelled_inputs for label in labels]
    if output is None:
        once = sorted(
            {label for label in everything if isinstance(label, str) and everything.count(label) == 1}
        )
        return spelled_inputs, (*hidden_labels, *once)
    for label in output:
        if label is not _ELLIPSIS and output.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if label is not _ELLIPSIS and label not in everything:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
    return spelled_inputs, spelled(output, widest)


# ---- Terms: a tensor and one label for each of its dims -------------------------------------------------------------------

Term = tuple[Labels, Tensor]


def _one_dim_per_label(labels: Labels, operand: Tensor) -> Term:
    """Take diagonals of repeated labels."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if operand.shape[first] != operand.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand but the sizes don't match, "
                    f"{operand.shape[second]} != {operand.shape[first]}"
                )
            operand = operand.diagonal(0, first, second).movedim(-1, first)
            labels = labels[:second] + labels[second + 1 :]
    return labels, operand


def _sizes(terms: Sequence[Term], operands: Sequence[Tensor]) -> dict[Any, int]:
    """The size of each label; a size of 1 broadcasts."""
    sizes: dict[Any, int] = {}
    for k, (labels, tensor) in enumerate(terms):
        for label, size in zip(labels, tensor.shape, strict=True):
            if sizes.setdefault(label, size) == 1:
                sizes[label] = size
            elif size not in (1, sizes[label]):
                name = label if isinstance(label, str) else "..."
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {size} for operand {k} which does not broadcast with "
                    f"previously seen size {sizes[label]}\neinsum: shapes {[list(operand.shape) for operand in operands]}"
                )
    return sizes


def _without_broadcast(term: Term, sizes: dict[Any, int]) -> Term:
    """Without the dims of size 1 that others broadcast: then equal labels have equal sizes."""
    labels, tensor = term
    single = tuple(dim for dim, label in enumerate(labels) if tensor.shape[dim] != sizes[label])
    if not single:
        return term
    return tuple(label for dim, label in enumerate(labels) if dim not in single), tensor.squeeze(single)


def _contract(terms: list[Term], output: Labels, sizes: dict[Any, int]) -> Tensor:
    # The dims of all terms are in this order: first the dims of the result, then the dims that are summed over.
    order = [*output, *(label for label in sizes if label not in output)]
    terms = [_sorted(term, order) for term in terms]
    while len(terms) > 1:
        i, j = _next_pair(terms, output, sizes)
        right, left = terms.pop(max(i, j)), terms.pop(min(i, j))
        needed = {label for labels, _ in terms for label in labels} | set(output)
        terms.append(_sorted(_product(left, right, needed, order, sizes), order))
    labels, tensor = terms[0]
    return tensor.sum(tuple(range(len(output), len(labels)))) if len(labels) > len(output) else tensor


def _sorted(term: Term, order: list) -> Term:
    labels, tensor = term
    kept = tuple(label for label in order if label in labels)
    return term if kept == labels else (kept, tensor.permute([labels.index(label) for label in kept]))


def _next_pair(terms: list[Term], output: Labels, sizes: dict[Any, int]) -> tuple[int, int]:
    """Which two terms to contract next: of three and more, those that opt_einsum says."""
    if len(terms) == 2:
        return 0, 1
    import opt_einsum

    path = opt_einsum.paths.auto([frozenset(labels) for labels, _ in terms], frozenset(output), sizes)
    return path[0][0], path[0][1]


def _summed(term: Term, needed: set) -> Term:
    labels, tensor = term
    dims = [dim for dim, label in enumerate(labels) if label not in needed]
    if not dims:
        return term
    only_ones = all(tensor.shape[dim] == 1 for dim in dims)
    summed = tensor.squeeze(dims) if only_ones else tensor.sum(dims)
    return tuple(label for label in labels if label in needed), summed


def _product(left: Term, right: Term, needed: set, order: list, sizes: dict[Any, int]) -> Term:
    """Both multiplied, the labels that nobody needs any more summed over: one batched matrix product."""
    # As in PyTorch, a label of size 1 needs no sum. If no other label is summed over, the product is elementwise.
    shared = {x for x in left[0] if x in right[0] and (x in needed or sizes[x] != 1)}
    (a_labels, a), (b_labels, b) = _summed(left, needed | shared), _summed(right, needed | shared)
    summed = [x for x in a_labels if x in shared and x not in needed]
    batch = [x for x in a_labels if x in shared and x in needed]
    a_free = [x for x in a_labels if x not in shared]
    b_free = [x for x in b_labels if x not in shared]
    if not summed:
        labels = tuple(x for x in order if x in a_labels or x in b_labels)
        return labels, _aligned(a, a_labels, labels) * _aligned(b, b_labels, labels)
    if a_free and b_free and order.index(a_free[-1]) > order.index(b_free[-1]):
        # Put the last dim of the result last in the product, so that the result is contiguous.
        a_labels, a, a_free, b_labels, b, b_free = b_labels, b, b_free, a_labels, a, a_free

    def volume(part: list) -> int:
        return math.prod(sizes[label] for label in part)

    a = a.permute([a_labels.index(x) for x in (*batch, *a_free, *summed)])
    b = b.permute([b_labels.index(x) for x in (*batch, *summed, *b_free)])
    product = bmm(
        a.reshape(volume(batch), volume(a_free), volume(summed)),
        b.reshape(volume(batch), volume(summed), volume(b_free)),
    )
    labels = (*batch, *a_free, *b_free)
    return labels, product.reshape([sizes[label] for label in labels])


def _aligned(tensor: Tensor, labels: Labels, order: Labels) -> Tensor:
    """The tensor with one dim for each label in `order`, of size 1 for a label that the tensor does not have."""
    for dim, label in enumerate(order):
        if label not in labels:
            tensor = tensor.unsqueeze(dim)
    return tensor
