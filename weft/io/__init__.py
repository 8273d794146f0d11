"""Common file formats: HDF5, safetensors, .npy and .npz, images, CSV.

Damaged files raise RuntimeError. Content that a tensor cannot represent raises TypeError. Files are replaced atomically.
"""

from . import safetensors
from .csv import load_csv
from .hdf5 import TensorInFile, load_hdf5, save_hdf5
from .images import load_image, save_image
from .npy import load_npy, save_npy
from .npz import load_npz, save_npz

__all__ = [
    "TensorInFile", "load_csv", "load_hdf5", "load_image", "load_npy", "load_npz", "safetensors", "save_hdf5",
    "save_image", "save_npy", "save_npz",
]  # fmt: skip
