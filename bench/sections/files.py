"""Saving and loading a state_dict of a quarter of a gigabyte: 64 tensors of n floats."""

from bench.cases import Case, Section

SETUP = """
import tempfile
folder = tempfile.TemporaryDirectory()
path = folder.name + "/state.pt"
state = {f"layer{k}": rand(n) for k in range(64)}
torch.save(state, path)
"""
CASES = tuple(
    Case(name, SETUP, stmt, n=2**20, deferrable=False)
    for name, stmt in (
        ("save", "torch.save(state, path)"),
        ("load", "torch.load(path)"),
        ("load, mmap", "torch.load(path, mmap=True)"),
    )
)
SECTION = Section(
    "files", "files of 256 MiB", CASES, floor=1.0, implementations=("torch", "weft"), counted=False
)
