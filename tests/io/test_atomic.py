"""What is left of a save that fails: the file that was there."""

import pytest

pytest.importorskip("resource")

SCRIPT = """
import os
import resource

import weft
from weft.io import *

FORMATS = {
    "h5": (lambda tensor, path: save_hdf5({"t": tensor}, path), lambda path: load_hdf5(path)["t"]),
    "h5.gzip": (
        lambda tensor, path: save_hdf5({"t": tensor}, path, compression="gzip"),
        lambda path: load_hdf5(path)["t"],
    ),
    "safetensors": (
        lambda tensor, path: safetensors.save_file({"t": tensor}, path),
        lambda path: safetensors.load_file(path)["t"],
    ),
    "npy": (save_npy, load_npy),
    "npz": (lambda tensor, path: save_npz({"t": tensor}, path), lambda path: load_npz(path)["t"]),
    "png": (
        lambda tensor, path: save_image(tensor.view(weft.uint8).view(1, -1, 1000), path),
        lambda path: load_image(path).flatten().view(weft.float32),
    ),
}
old = weft.arange(1000.0)
for name, (save, load) in FORMATS.items():
    save(old, "file." + name)
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))  # as if the disk were full
for name, (save, load) in FORMATS.items():
    try:
        save(weft.rand(1_000_000), "file." + name)
    except OSError:
        print(name, weft.equal(load("file." + name), old))
print(sorted(os.listdir()) == sorted("file." + name for name in FORMATS))
"""


def test_a_full_disk_leaves_the_old_file(run):
    done = run("-c", SCRIPT)
    assert done.returncode == 0, done.stderr
    names = ("h5", "h5.gzip", "safetensors", "npy", "npz", "png")
    assert done.stdout.splitlines() == [*(f"{name} True" for name in names), "True"]
