"""`torch.distributed.checkpoint.format_utils`: between the folder of a checkpoint and a file of `torch.save`."""

from __future__ import annotations

import os

from ...serialization import load as load_file
from ...serialization import save as save_file
from .filesystem import FileSystemWriter
from .state_dict_loader import _load_state_dict_from_keys
from .state_dict_saver import _save_state_dict

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike, torch_save_path: str | os.PathLike) -> None:
    """Write what a checkpoint holds into one file of `torch.save`."""
    save_file(_load_state_dict_from_keys(checkpoint_id=dcp_checkpoint_dir), torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike, dcp_checkpoint_dir: str | os.PathLike) -> None:
    """Write what a file of `torch.save` holds into a checkpoint. The file is trusted."""
    _save_state_dict(load_file(torch_save_path, weights_only=False), FileSystemWriter(dcp_checkpoint_dir))
