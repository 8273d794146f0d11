"""Reverse and forward mode differentiation, `torch.autograd`.

Ops call `core.recording.record` for results that require grad. This package implements the functions behind it.
"""

from __future__ import annotations

from ..compat.missing import module_getattr as _module_getattr
from ..core.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from ..core.recording import tape as _tape
from . import attributes as _attributes  # noqa: F401 (adds the attributes of nodes that users see)
from . import dual as _dual
from . import forward as _forward
from . import forward_inplace as _forward_inplace
from . import graph as _graph
from . import inplace as _inplace
from . import native_engine as _native_engine  # noqa: F401 (the machine code of backward passes)
from . import native_getters as _native_getters  # noqa: F401 (the machine code of Tensor's properties)
from . import recorders as _recorders
from . import stream_order as _stream_order  # noqa: F401 (backward passes on the streams of the forward operations)
from . import tensor as _tensor  # adds the methods of Tensor
from .anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from .backward import backward, grad
from .function import Function, NestedIOFunction
from .grad_mode import _unsafe_preserve_version_counter as _unsafe_preserve_version_counter
from .grad_mode import enforce_grad_layout_policy, is_multithreading_enabled, set_multithreading_enabled
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .graph import Node
from .saved import SavedTensor
from .variable import Variable

# Modules that are loaded when first used.
__getattr__ = _module_getattr(
    __name__,
    ("anomaly_mode", "forward_ad", "functional", "profiler", "profiler_legacy", "profiler_util"),
    {"_calculate_shape": "questions", "kineto_available": "questions", "_profiler_enabled": "profiler"},
)

_dual.reverse_only.update(
    record=_recorders.record,
    start_inplace=_inplace.start_inplace,
    finish_inplace=_inplace.finish_inplace,
    rebase_history=_inplace.rebase_history,
)
_dual.with_tangents.update(
    record=_forward.record,
    start_inplace=_forward_inplace.start_inplace,
    finish_inplace=_forward_inplace.finish_inplace,
    rebase_history=_forward_inplace.rebase_history,
)
vars(_tape).update(_dual.reverse_only)
_tape.recorder = _recorders.recorder
_tape.check_write = _inplace.check_write
_tape.can_record_after = _inplace.can_record_after
_tape.record_after = _inplace.record_after
_tape.can_overwrite = _inplace.can_overwrite
_tape.record_overwrite = _inplace.record_overwrite
_tape.take_grad_fn_of = _forward_inplace.take_grad_fn_of
_tape.rename = _graph.rename
_tape.rename_after = _graph.rename_after
_tape.require_grad = _tensor.require_grad
_tape.renew_leaf = _tensor.renew_leaf
_tape.recorded_view = _inplace.recorded_view
_tape.note_view = _inplace.note_view
