"""A group of one process in both libraries, for the tests of torch.distributed."""

from contextlib import contextmanager

import torch
import torch.distributed

import weft


@contextmanager
def groups(backend="gloo"):
    """Both libraries with a default group of one process."""
    try:
        for library in (torch, weft):
            store = library.distributed.HashStore()
            library.distributed.init_process_group(backend, store=store, rank=0, world_size=1)
        yield
    finally:
        for library in (torch, weft):
            if library.distributed.is_initialized():
                library.distributed.destroy_process_group()


def outcome(program, library):
    """What a program returns, as text, or the type of its exception."""
    try:
        return repr(program(library)).replace("weft.", "torch.")
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return "RuntimeError" if "RuntimeError" in kinds and "Dist" not in kinds[0] else kinds[0]


def same(program):
    ours, theirs = outcome(program, weft), outcome(program, torch)
    assert ours == theirs, f"weft: {ours}\nPyTorch: {theirs}"
