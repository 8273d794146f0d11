"""The modules of higher floors that lower ones load, when a program first asks for what they do. There are no others."""

from __future__ import annotations

import functools
import importlib
from fnmatch import fnmatch
from types import ModuleType

from .names import ROOT

# Module, or pattern of modules -> who loads it, and when.
_MODULES = {
    "compiler": "nn/module.py, for Module.compile",
    "func.batching": "autograd/backward.py and autograd/gradcheck_properties.py, for batches of gradients",
    "testing.random_tensors": "autograd/gradcheck.py, for the cotangents of gradgradcheck",
    "layouts.leaves": "autograd/gradcheck.py, for inputs that are not strided",
    "devices.*": "core/device.py, for a device of the type",
    "layouts.*.rules": "core/layout_calls.py, for a tensor of the layout",
    "autograd.backward": "ops/nn/recurrent_layer.py, for derivatives of derivatives",
    "layouts.sparse.gradients": "ops/indexing/gather.py, for embeddings with sparse gradients",
    "library.registry.dispatching": "core/subclasses.py, for classes with __torch_dispatch__",
    "distributed._batch_norm": "nn/modules/batchnorm.py, for SyncBatchNorm in a group of several processes",
    "distributed._operators": "library/registry/operators.py, for the operators of torch.ops that are collectives",
    "profiler.operators": "autograd/event_recorder.py, for profiles",
    "nn.init": "core/modes.py, because modes see its functions, too",
}


@functools.cache
def above(name: str) -> ModuleType:
    """The module `name`, without the name of the root.

    Raises: KeyError if the table of this module does not list it.
    """
    if not any(fnmatch(name, pattern) for pattern in _MODULES):
        raise KeyError(name)
    return importlib.import_module(f"{ROOT}.{name}")
