"""Programs that are run in both libraries and must say the same."""

import re
import warnings

import torch
from expected import judge

import weft


def run(program, library, *arguments):
    """What a program returns, as text; or its exception."""
    library.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(program(library, *arguments))
        except Exception as error:
            return error


def in_words(outcome):
    """The text; of an exception the type and the first line of the message."""
    if isinstance(outcome, Exception):
        outcome = f"{type(outcome).__name__}: {(str(outcome).splitlines() or [''])[0]}"
    # Which op computed a value is told by other tests; classes live in weft.nn here and in torch.nn there.
    text = re.sub(r", grad_fn=<\w+>", "", outcome)
    return re.sub(r"(torch|weft)\.nn\.[\w.]*\.", "nn.", text)


def same(program, *arguments, raises=False):
    """Assert that `program(library, *arguments)` says the same for both libraries.

    With `raises`, or as the marks of tests/expected.py say, it is an exception.
    """
    theirs = run(program, torch, *arguments)
    judge(theirs, raises, getattr(program, "__name__", program))
    assert in_words(run(program, weft, *arguments)) == in_words(theirs)


def backward(output):
    """Run backward for the sum of a tensor."""
    output.backward(output.new_ones(output.shape))
