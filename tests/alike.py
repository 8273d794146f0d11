"""Programs that are run in both libraries and must say the same."""

import re
import warnings

import torch

import weft


def said(program, library, *arguments):
    """What a program returns, as text; or the type of its exception and the first line of the message."""
    library.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            text = repr(program(library, *arguments))
        except Exception as error:
            text = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    # Which op computed a value is told by other tests; classes live in weft.nn here and in torch.nn there.
    text = re.sub(r", grad_fn=<\w+>", "", text)
    return re.sub(r"(torch|weft)\.nn\.[\w.]*\.", "nn.", text)


def same(program, *arguments):
    """Assert that `program(library, *arguments)` says the same for both libraries."""
    theirs = said(program, torch, *arguments)
    assert said(program, weft, *arguments) == theirs


def backward(output):
    """Run backward for the sum of a tensor."""
    output.backward(output.new_ones(output.shape))
