"""Files that other programs read and write too: HDF5, safetensors, NumPy's, images, CSV.

What is damaged raises RuntimeError, what tensors cannot hold TypeError; files are replaced whole or not at all.
"""

from . import safetensors
from .csv import load_csv
from .hdf5 import TensorInFile, load_hdf5, save_hdf5
from .images import load_image, save_image
from .npy import load_npy, save_npy
from .npz import load_npz, save_npz

__all__ = [
    "TensorInFile",
    "load_csv",
    "load_hdf5",
    "load_image",
    "load_npy",
    "load_npz",
    "safetensors",
    "save_hdf5",
    "save_image",
    "save_npy",
    "save_npz",
]
