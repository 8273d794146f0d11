# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .conv import Conv1d as Conv1d
from .conv import Conv2d as Conv2d
from .conv import Conv3d as Conv3d
from .embedding_ops import Embedding as Embedding
from .embedding_ops import EmbeddingBag as EmbeddingBag
from .linear import Linear as Linear
from . import conv as conv
from . import embedding_ops as embedding_ops
from . import linear as linear
