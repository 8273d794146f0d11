"""The files that TensorBoard's projector reads: points, their labels and their pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from tensorboard.compat import tf
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo

from ._convert_np import make_np
from ._utils import make_grid

_HAS_GFILE_JOIN = hasattr(tf.io.gfile, "join")  # TensorFlow has it, and what stands in for TensorFlow has not


def _gfile_join(a: str, b: str) -> str:
    """Return a path of TensorFlow's file systems, which may be remote."""
    if _HAS_GFILE_JOIN:
        return tf.io.gfile.join(a, b)
    return tf.io.gfile.get_filesystem(a).join(a, b)


def make_tsv(metadata: Sequence[Any], save_path: str, metadata_header: Sequence[Any] | None = None) -> None:
    """Writes the labels of points, a line for each. With a header each label is a row of as many columns."""
    if not metadata_header:
        lines = [str(label) for label in metadata]
    else:
        if len(metadata_header) != len(metadata[0]):
            raise AssertionError(
                f"metadata_header names {len(metadata_header)} columns, and metadata has {len(metadata[0])}"
            )
        lines = ["\t".join(str(cell) for cell in row) for row in [metadata_header, *metadata]]
    _write(save_path, "metadata.tsv", "\n".join(lines) + "\n")


def make_sprite(label_img: Any, save_path: str) -> None:
    """Writes the pictures [N, C, H, W] of points as one picture, which is square unless they are taller than wide."""
    from PIL import Image

    columns = math.ceil(math.sqrt(len(label_img)))
    grid = make_grid(make_np(label_img), ncols=columns).transpose(1, 2, 0)
    height, width, _ = grid.shape
    square = np.zeros((max(height, width), width, 3))  # the projector takes square pictures
    square[:height] = grid
    picture = Image.fromarray(np.uint8((square * 255).clip(0, 255)))
    with tf.io.gfile.GFile(_gfile_join(save_path, "sprite.png"), "wb") as file:
        picture.save(file, format="PNG")


def get_embedding_info(
    metadata: Any, label_img: Any, subdir: str, global_step: int, tag: str
) -> EmbeddingInfo:
    """Return what the projector's configuration says of one embedding: its name and its files."""
    info = EmbeddingInfo(
        tensor_name=f"{tag}:{str(global_step).zfill(5)}", tensor_path=_gfile_join(subdir, "tensors.tsv")
    )
    if metadata is not None:
        info.metadata_path = _gfile_join(subdir, "metadata.tsv")
    if label_img is not None:
        info.sprite.image_path = _gfile_join(subdir, "sprite.png")
        info.sprite.single_image_dim.extend([label_img.shape[3], label_img.shape[2]])
    return info


def write_pbtxt(save_path: str, contents: str) -> None:
    """Writes the projector's configuration."""
    _write(save_path, "projector_config.pbtxt", contents)


def make_mat(matlist: Any, save_path: str) -> None:
    """Writes points [N, D], a line for each."""
    lines = ["\t".join(str(number) for number in row.tolist()) + "\n" for row in matlist]
    _write(save_path, "tensors.tsv", "".join(lines))


def _write(folder: str, name: str, text: str) -> None:
    with tf.io.gfile.GFile(_gfile_join(folder, name), "wb") as file:
        file.write(text.encode("utf-8"))
