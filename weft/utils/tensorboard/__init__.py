"""Logs for TensorBoard: `SummaryWriter`. It needs the package tensorboard (`pip install tensorboard`)."""

try:
    import tensorboard as _tensorboard
except ModuleNotFoundError as error:
    if error.name != "tensorboard":
        raise
    raise ModuleNotFoundError(
        "No module named 'tensorboard', which torch.utils.tensorboard needs: pip install tensorboard",
        name="tensorboard",
    ) from None

from tensorboard.summary.writer.record_writer import RecordWriter

from ...compat.missing import module_getattr as _module_getattr
from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]

__getattr__ = _module_getattr(__name__, ("_onnx_graph",))
