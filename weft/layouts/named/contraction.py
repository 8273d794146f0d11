"""The names of products: the dims that are summed over lose theirs, and names of batch dims are unified."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .propagation import Call, tensors_in
from .tensors import Names, dim_of, names_of, shown
from .unification import unified


def product_names(left: Names, right: Names, function: str) -> Names:
    """Return the names of `left @ right`.

    Raises: RuntimeError if names of batch dims do not fit, or if a name stands twice in the result.
    """
    batch = unified(left[:-2], right[:-2], function)
    _check_contracted(batch, left, right, function)
    rows = left[-2:-1] if len(left) > 1 else ()
    columns = right[-1:] if len(right) > 1 else ()
    return _checked((*batch, *rows, *columns), left, right, function)


def _check_contracted(batch: Names, left: Names, right: Names, function: str) -> None:
    """Raises: RuntimeError if one operand has the name of a batch dim of the other at one of its matrix dims and not in its batch."""
    for own, other in ((left, right), (right, left)):
        for name in own[:-2]:
            if name is not None and name in other[-2:] and name not in other[:-2] and len(other) == len(own):
                raise RuntimeError(
                    f"{function}: Misaligned dims when multiplying Tensor{shown(left)} with Tensor{shown(right)}: '{name}' is a dim of the "
                    f"batch in one and of the matrices in the other. Write other.align_to(...)."
                )


def _checked(result: Names, left: Names, right: Names, function: str) -> Names:
    for name in result:
        if name is not None and result.count(name) > 1:
            raise RuntimeError(
                f"{function}: Matrix multiplying Tensor{shown(left)} with Tensor{shown(right)} produced output tensor with duplicate "
                f"names {shown(result)}: write other.rename(...) to give the dims different names."
            )
    return result


def multiplying(call: Call) -> Names:
    """Compute matmul, mm, bmm, mv, dot."""
    operands = list(call.operands())
    if len(operands) == 1:  # array @ tensor
        return ()
    return product_names(names_of(operands[0]), names_of(operands[1]), call.name)


def multiplying_all(call: Call) -> Names:
    """Compute chain_matmul, linalg.multi_dot."""
    several = [names_of(each) for each in call.operands()]
    return functools.reduce(lambda left, right: product_names(left, right, call.name), several)


def adding_product(call: Call) -> Names:
    """Return, for addmm, addmv and baddbmm, the names of the product, unified with those of the input."""
    product = product_names(call.names_at(1), call.names_at(2), call.name)
    return unified(product, call.names, call.name)


def adding_products(call: Call) -> Names:
    """addbmm: the products of the batch are added up."""
    product = product_names(call.names_at(1)[1:], call.names_at(2)[1:], call.name)
    return unified(product, call.names, call.name)


def adding_outer(call: Call) -> Names:
    """Compute addr."""
    left, right = call.names_at(1), call.names_at(2)
    return unified(_checked((*left, *right), left, right, call.name), call.names, call.name)


def outer(call: Call) -> Names:
    left, right = list(call.operands())[:2]
    left_names, right_names = names_of(left), names_of(right)
    return _checked((*left_names, *right_names), left_names, right_names, call.name)


def inner(call: Call) -> Names:
    """The last dims are summed over."""
    left, right = (names_of(each) for each in call.operands())
    if not left or not right:
        return left or right
    return _checked((*left[:-1], *right[:-1]), left, right, call.name)


def projecting(call: Call) -> Names:
    """linear, bilinear: the last dim of the input becomes the first dim of the weight."""
    weight = names_of(call.argument("weight"))
    return _checked(
        (*call.names[:-1], *weight[:1]) if len(weight) > 1 else call.names[:-1], call.names, weight, call.name
    )


def attending(call: Call) -> Names:
    """scaled_dot_product_attention: rows are those of the queries, columns those of the values."""
    operands = list(call.operands())
    return product_names(names_of(operands[0]), names_of(operands[2]), call.name)


def tensordot(call: Call) -> Names:
    left, right = call.names_at(0), call.names_at(1)
    dims = call.argument("dims", default=2)
    if isinstance(dims, int):
        dims = range(len(left) - dims, len(left)), range(dims)
    sides = []
    for names, summed in zip((left, right), dims, strict=True):
        gone = {dim % len(names) for dim in ((summed,) if isinstance(summed, int) else summed)}
        sides.append([name for place, name in enumerate(names) if place not in gone])
    return _checked((*sides[0], *sides[1]), left, right, call.name)


def named_dims(operands: Sequence[Any], dims: Any) -> Any:
    """Return the `dims` of `tensordot` with the numbers of dims in place of their names: a list for each operand."""
    if not isinstance(dims, (tuple, list)) or len(dims) != 2:
        return dims
    return tuple(
        [dim_of(dim, names, "tensordot") if isinstance(dim, str) else dim for dim in side]
        if isinstance(side, (tuple, list))
        else side
        for names, side in zip(map(names_of, operands), dims, strict=True)
    )


def einsum(call: Call) -> Names:
    """A letter of the result has the names of all dims that it stands for, unified, and so has `...`."""
    equation, *operands = call.argument("*args")
    if not isinstance(equation, str):
        return ()
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow:
        letters = sorted(set(inputs) - set(",."))
        output = "..." * ("..." in inputs) + "".join(each for each in letters if inputs.count(each) == 1)
    kept = _split(output)
    known: dict[str, Names] = {}
    for term, operand in zip(terms, tensors_in(operands), strict=False):
        for letter, names in _letters(term, names_of(operand)):
            if letter in kept:
                known[letter] = unified(known.get(letter, ()), names, call.name)
    result = tuple(name for letter in kept for name in known.get(letter, ()))
    several = [names_of(each) for each in tensors_in(operands)]
    return _checked(result, several[0], several[-1], call.name)


def _letters(term: str, names: Names) -> list[tuple[str, Names]]:
    symbols = _split(term)
    rest = len(names) - (len(symbols) - ("..." in symbols))
    result, place = [], 0
    for symbol in symbols:
        size = rest if symbol == "..." else 1
        result.append((symbol, names[place : place + size]))
        place += size
    return result


def _split(term: str) -> list[str]:
    before, dots, after = term.partition("...")
    return [*before, *([dots] if dots else []), *after]
