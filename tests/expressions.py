"""One expression, evaluated with PyTorch and with weft: the same tensor, value or error."""

import warnings

import numpy as np
import torch
from expected import is_raising, judge

import weft


def evaluate(library, expression, **names):
    """The value, or the exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(expression, {"torch": library, "np": np, "nan": np.nan, "inf": np.inf, **names})
    except Exception as error:
        return error


def facts(value):
    """All that must agree, as plain Python."""
    if isinstance(value, Exception):
        return type(value)
    if isinstance(value, (tuple, list)):
        return [facts(each) for each in value]
    if isinstance(value, (torch.Tensor, weft.Tensor)):
        metadata = (
            str(value.dtype),
            tuple(value.shape),
            tuple(value.stride()),
            value.requires_grad,
            str(value.device),
        )
        return (*metadata, repr(value.tolist()) if not value.is_meta else None)
    return repr(value)


def check(expression, **names):
    """Metadata and values agree bit by bit; of errors, which the expression must say it expects, the type."""
    expected = evaluate(torch, expression, **names)
    judge(expected, is_raising(expression), expression)
    got = evaluate(weft, expression, **names)
    assert facts(got) == facts(expected), f"{expression}: {got!r} instead of {expected!r}"


def lines(text):
    return [line for line in text.strip().splitlines() if line]
