"""Loading of data: datasets, samplers, and the DataLoader that makes batches of both."""

from ...compat.missing import module_getattr as _module_getattr
from . import _utils
from ._utils.collate import default_collate, default_convert
from ._utils.worker import get_worker_info
from .dataloader import DataLoader, _DatasetKind
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler",
    "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "_DatasetKind", "default_collate",
    "default_convert", "get_worker_info", "random_split",
]  # fmt: skip

# Data pipes are loaded when first used.
_PIPES = {
    **dict.fromkeys(("DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"), "datapipes.datapipe"),
    **dict.fromkeys(
        (
            "argument_validation",
            "functional_datapipe",
            "guaranteed_datapipes_determinism",
            "non_deterministic",
            "runtime_validation",
            "runtime_validation_disabled",
        ),
        "datapipes._decorator",
    ),
}
__all__ += _PIPES

__getattr__ = _module_getattr(
    __name__, ("backward_compatibility", "datapipes", "graph", "graph_settings"), _PIPES
)
