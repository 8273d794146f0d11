"""`torch.distributed.checkpoint`: state dicts in folders, in PyTorch's layout."""

from ...compat.missing import module_getattr
from .api import CheckpointException
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import async_save, save, save_state_dict
from .storage import StorageReader, StorageWriter

__getattr__ = module_getattr(__name__, ("format_utils", "state_dict", "stateful", "utils", "planner_helpers"))
