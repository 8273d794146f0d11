"""Summaries: what one event of a log holds, as the protobuf messages that TensorBoard's plugins read."""

from __future__ import annotations

import io
import json
import logging
import math
import os
import tempfile
import wave
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf import struct_pb2
from tensorboard.compat.proto.histogram_pb2 import HistogramProto
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from ...core import dtype as dtypes
from ...core.dtype import DType
from ...core.tensor import Tensor
from ._convert_np import make_np
from ._proto_graph import tensor_shape_proto
from ._utils import _prepare_video, convert_to_HWC

__all__ = [
    *(
        "half_to_int",
        "int_to_half",
        "hparams",
        "scalar",
        "histogram_raw",
        "histogram",
        "make_histogram",
        "image",
    ),
    *("image_boxes", "draw_boxes", "make_image", "video", "make_video", "audio", "custom_scalars", "text"),
    *("tensor_proto", "pr_curve_raw", "pr_curve", "compute_curve", "mesh"),
]

logger = logging.getLogger(__name__)

MAX_BYTES = 1 << 31  # of a protobuf message
MAX_THRESHOLDS = 127  # of a PR curve, as many as the plugin shows


def _metadata(plugin: str, content: bytes = b"") -> SummaryMetadata:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content))


def _of_plugin(tag: str, plugin: str, tensor: TensorProto | None, content: bytes = b"") -> Summary:
    """Return the summary of a tensor that a plugin shows, or only of the plugin's own data."""
    return Summary(value=[Summary.Value(tag=tag, tensor=tensor, metadata=_metadata(plugin, content))])


# ---- Numbers ----------------------------------------------------------------------------------------------------


def scalar(
    name: str,
    tensor: Any,
    collections: Any = None,
    new_style: bool = False,
    double_precision: bool = False,
) -> Summary:
    """A number. `new_style` writes it as a tensor, which may have double precision. `collections` means nothing.

    >>> scalar("loss", 0.5).value[0].simple_value
    0.5
    """
    array = make_np(tensor).squeeze()
    if array.ndim != 0:
        raise AssertionError(
            f"a scalar is one number, and {name!r} has the shape {array.shape}: pass each number"
        )
    number = float(array)
    if not new_style:
        return Summary(value=[Summary.Value(tag=name, simple_value=number)])
    if double_precision:
        return _of_plugin(name, "scalars", TensorProto(double_val=[number], dtype="DT_DOUBLE"))
    return _of_plugin(name, "scalars", TensorProto(float_val=[number], dtype="DT_FLOAT"))


def histogram_raw(
    name: str,
    min: float,
    max: float,
    num: float,
    sum: float,
    sum_squares: float,
    bucket_limits: Sequence[float],
    bucket_counts: Sequence[float],
) -> Summary:
    """A histogram that the caller has computed. `bucket_limits` are the upper ends of the bins."""
    proto = HistogramProto(
        min=min,
        max=max,
        num=num,
        sum=sum,
        sum_squares=sum_squares,
        bucket_limit=bucket_limits,
        bucket=bucket_counts,
    )
    return Summary(value=[Summary.Value(tag=name, histo=proto)])


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Summary:
    """Return the histogram of `values` over `bins`, which is what `np.histogram` takes."""
    proto = make_histogram(make_np(values).astype(float), bins, max_bins)
    return Summary(value=[Summary.Value(tag=name, histo=proto)])


def make_histogram(values: np.ndarray, bins: Any, max_bins: int | None = None) -> HistogramProto:
    """Return the histogram of `values`, without the empty bins at both ends.

    With more than `max_bins` bins, each of equally many neighbours become one.

    >>> histo = make_histogram(np.array([1.0, 2.0, 2.0]), bins=[0, 1, 2, 3, 4])
    >>> histo.bucket_limit, histo.bucket
    ([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])
    """
    if values.size == 0:
        raise ValueError("a histogram needs one value at least, and there is none")
    values = values.reshape(-1)
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        counts, limits = _joined(counts, limits, len(counts) // max_bins)
    filled = np.flatnonzero(counts)
    if not len(filled):
        raise ValueError("the histogram is empty, because no value lies in one of its bins: choose others")
    first, last = filled[0], filled[-1]
    # An empty bin before the first one tells where that begins, because bins are given by their upper ends.
    before = [0.0]
    return HistogramProto(
        min=values.min(),
        max=values.max(),
        num=len(values),
        sum=values.sum(),
        sum_squares=values.dot(values),
        bucket_limit=limits[first : last + 2].tolist(),
        bucket=before + counts[first : last + 1].tolist(),
    )


def _joined(counts: np.ndarray, limits: np.ndarray, factor: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a histogram whose bins are `factor` neighbouring bins each; the last may be fewer."""
    starts = np.arange(0, len(counts), factor)
    return np.add.reduceat(counts, starts), np.append(limits[starts], limits[-1])


def half_to_int(f: float) -> int:
    """Return the bits of `f` as a float16.

    >>> hex(half_to_int(1.5))
    '0x3e00'
    """
    return int(np.float16(f).view(np.uint16))


def int_to_half(i: int) -> float:
    """Return the float16 with the bits `i`.

    >>> int_to_half(0x3E00)
    1.5
    """
    return float(np.uint16(i).view(np.float16))


def _tensor_to_half_val(t: Tensor) -> list[int]:
    """Return the bits of the elements of a float16 or bfloat16 tensor."""
    return [bits & 0xFFFF for bits in t.detach().cpu().contiguous().view(dtypes.int16).flatten().tolist()]


def _tensor_to_complex_val(t: Tensor) -> list[float]:
    """Return the real and the imaginary part of each element."""
    return [part for number in t.flatten().tolist() for part in (number.real, number.imag)]


def _tensor_to_list(t: Tensor) -> list[Any]:
    return t.flatten().tolist()


# For each dtype: its name, the field of TensorProto that has the elements, and the function that gives them.
_TENSOR_TYPE_MAP: dict[DType, tuple[str, str, Callable[[Tensor], list[Any]]]] = {
    dtypes.float16: ("DT_HALF", "half_val", _tensor_to_half_val),
    dtypes.bfloat16: ("DT_BFLOAT16", "half_val", _tensor_to_half_val),
    dtypes.float32: ("DT_FLOAT", "float_val", _tensor_to_list),
    dtypes.float64: ("DT_DOUBLE", "double_val", _tensor_to_list),
    dtypes.int8: ("DT_INT8", "int_val", _tensor_to_list),
    dtypes.int16: ("DT_INT16", "int_val", _tensor_to_list),
    dtypes.int32: ("DT_INT32", "int_val", _tensor_to_list),
    dtypes.int64: ("DT_INT64", "int64_val", _tensor_to_list),
    dtypes.uint8: ("DT_UINT8", "int_val", _tensor_to_list),  # TensorBoard reads narrow integers from int_val
    dtypes.bool_: ("DT_BOOL", "bool_val", _tensor_to_list),
    dtypes.complex64: ("DT_COMPLEX64", "scomplex_val", _tensor_to_complex_val),
    dtypes.complex128: ("DT_COMPLEX128", "dcomplex_val", _tensor_to_complex_val),
}


def tensor_proto(tag: str, tensor: Tensor) -> Summary:
    """All elements of a tensor, with its dtype and shape."""
    if tensor.numel() * tensor.itemsize >= MAX_BYTES:
        raise ValueError(
            f"{tag} has {tensor.numel() * tensor.itemsize} bytes, and a summary takes less than 2 GiB"
        )
    if tensor.dtype not in _TENSOR_TYPE_MAP:
        raise ValueError(
            f"{tag} has unsupported tensor dtype {tensor.dtype}; logs take {[*_TENSOR_TYPE_MAP]}"
        )
    dtype, field, elements = _TENSOR_TYPE_MAP[tensor.dtype]
    values: dict[str, Any] = {field: elements(tensor)}
    proto = TensorProto(dtype=dtype, tensor_shape=tensor_shape_proto(tensor.shape), **values)
    return _of_plugin(tag, "tensor", proto)


# ---- Pictures, films, sounds, texts -------------------------------------------------------------------------------


def _calc_scale_factor(tensor: Any) -> int:
    """Bytes are brightnesses already; other dtypes have brightnesses from 0 to 1."""
    return 1 if tensor.dtype in (np.uint8, dtypes.uint8) else 255


def _brightnesses(pixels: np.ndarray) -> np.ndarray:
    return (pixels.astype(np.float32) * _calc_scale_factor(pixels)).clip(0, 255).astype(np.uint8)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Summary:
    """A picture, or several as one. `dataformats` names the dimensions: HW, CHW or NCHW in any order."""
    pixels = _brightnesses(convert_to_HWC(make_np(tensor), dataformats))
    return Summary(value=[Summary.Value(tag=tag, image=make_image(pixels, rescale))])


def image_boxes(
    tag: str,
    tensor_image: Any,
    tensor_boxes: Any,
    rescale: float = 1,
    dataformats: str = "CHW",
    labels: Sequence[str] | None = None,
) -> Summary:
    """A picture with boxes [N, (left, top, right, bottom)] drawn onto it, and a label in each."""
    boxes = make_np(tensor_boxes)
    pixels = _brightnesses(convert_to_HWC(make_np(tensor_image), dataformats))
    return Summary(value=[Summary.Value(tag=tag, image=make_image(pixels, rescale, boxes, labels))])


def make_image(
    tensor: np.ndarray,
    rescale: float = 1,
    rois: np.ndarray | None = None,
    labels: Sequence[str] | None = None,
) -> Summary.Image:
    """Bytes [H, W, C] as a PNG of `rescale` times the size, with the boxes `rois`. It needs Pillow."""
    from PIL import Image

    height, width, channels = tensor.shape
    # Pillow takes a picture of one channel without a dimension for it.
    picture = Image.fromarray(tensor[:, :, 0] if channels == 1 else tensor)
    if rois is not None:
        picture = draw_boxes(picture, rois, labels)
    size = (int(width * rescale), int(height * rescale))
    png = io.BytesIO()
    picture.resize(size, Image.Resampling.LANCZOS).save(png, format="PNG")
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=png.getvalue())


def draw_boxes(disp_image: Any, boxes: np.ndarray, labels: Sequence[str] | None = None) -> Any:
    """Draws boxes [N, (left, top, right, bottom)] in red onto a picture of Pillow's."""
    for i, box in enumerate(boxes):
        label = None if labels is None else labels[i]
        left, top, right, bottom = box[:4]
        disp_image = _draw_single_box(disp_image, left, top, right, bottom, label, color="Red")
    return disp_image


def _draw_single_box(
    image: Any,
    xmin: float,
    ymin: float,
    xmax: float,
    ymax: float,
    display_str: str | None,
    color: str = "black",
    color_text: str = "black",
    thickness: int = 2,
) -> Any:
    """Draws one box and, above its lower edge, its label on a ground of the same colour."""
    from PIL import ImageDraw, ImageFont

    draw = ImageDraw.Draw(image)
    corners = [(xmin, ymin), (xmin, ymax), (xmax, ymax), (xmax, ymin), (xmin, ymin)]
    draw.line(corners, width=thickness, fill=color)
    if display_str:
        font = ImageFont.load_default()
        left, top, right, bottom = font.getbbox(display_str)
        margin = math.ceil(0.05 * (bottom - top))
        upper = ymax - (bottom - top) - 2 * margin
        draw.rectangle([(xmin, upper), (xmin + right - left, ymax)], fill=color)
        draw.text((xmin + margin, upper + margin), display_str, fill=color_text, font=font)
    return image


def video(tag: str, tensor: Any, fps: float = 4) -> Summary:
    """Films [N, T, C, H, W] side by side as a GIF, which needs the package moviepy; without it the summary is empty."""
    frames = _brightnesses(_prepare_video(make_np(tensor)))
    return Summary(value=[Summary.Value(tag=tag, image=make_video(frames, fps))])


def make_video(tensor: np.ndarray, fps: float) -> Summary.Image | None:
    """Bytes [T, H, W, C] as a GIF, or None without moviepy."""
    try:
        clips = _clips()
    except ImportError as error:
        print(f"add_video needs the package moviepy (pip install moviepy): {error}")
        return None
    _, height, width, channels = tensor.shape
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "video.gif")
        clips(list(tensor), fps=fps).write_gif(path, logger=None)
        with open(path, "rb") as file:
            gif = file.read()
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=gif)


def _clips() -> Any:
    """moviepy's class of films that are made of pictures, which version 2 has moved."""
    try:
        from moviepy import ImageSequenceClip
    except ImportError:
        from moviepy.editor import ImageSequenceClip
    return ImageSequenceClip


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Summary:
    """A sound of one channel, with amplitudes from -1 to 1, as a WAV file of 16 bits."""
    samples = make_np(tensor).squeeze()
    if abs(samples).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        samples = samples.clip(-1, 1)
    if samples.ndim != 1:
        raise AssertionError(f"a sound has one dimension, and {tag!r} has the shape {samples.shape}")
    samples = (samples * np.iinfo(np.int16).max).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(samples.itemsize)
        out.setframerate(sample_rate)
        out.writeframes(samples.tobytes())
    sound = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(samples),
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return Summary(value=[Summary.Value(tag=tag, audio=sound)])


def text(tag: str, text: str) -> Summary:
    """A text, which TensorBoard shows as Markdown."""
    content = TextPluginData(version=0).SerializeToString()
    proto = TensorProto(
        dtype="DT_STRING", string_val=[text.encode("utf-8")], tensor_shape=tensor_shape_proto([1])
    )
    return _of_plugin(f"{tag}/text_summary", "text", proto, content)


# ---- Charts, curves, meshes ---------------------------------------------------------------------------------------


def custom_scalars(layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> Summary:
    """Which scalars are drawn into one chart: `{category: {title: ["Multiline", tags]}}`.

    `["Margin", [value, lower, upper]]` draws a line in its margin.
    """
    categories = [
        layout_pb2.Category(title=title, chart=[_chart(name, *chart) for name, chart in charts.items()])
        for title, charts in layout.items()
    ]
    content = layout_pb2.Layout(category=categories).SerializeToString()
    proto = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=TensorShapeProto())
    return _of_plugin("custom_scalars__config__", "custom_scalars", proto)


def _chart(title: str, kind: str, tags: Sequence[str]) -> layout_pb2.Chart:
    if kind != "Margin":
        return layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags))
    if len(tags) != 3:
        raise AssertionError(
            f"the chart {title!r} takes three tags (value, lower, upper), and got {len(tags)}"
        )
    value, lower, upper = tags
    series = layout_pb2.MarginChartContent.Series(value=value, lower=lower, upper=upper)
    return layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series]))


def pr_curve_raw(
    tag: str,
    tp: np.ndarray,
    fp: np.ndarray,
    tn: np.ndarray,
    fn: np.ndarray,
    precision: np.ndarray,
    recall: np.ndarray,
    num_thresholds: int = 127,
    weights: float | None = None,
) -> Summary:
    """A PR curve that the caller has computed: an array of `num_thresholds` numbers for each count."""
    return _curve(tag, np.stack((tp, fp, tn, fn, precision, recall)), num_thresholds)


def pr_curve(
    tag: str, labels: np.ndarray, predictions: np.ndarray, num_thresholds: int = 127, weights: Any = None
) -> Summary:
    """Return the PR curve of `predictions` (probabilities) of `labels` (0 or 1)."""
    num_thresholds = min(num_thresholds, MAX_THRESHOLDS)
    return _curve(tag, compute_curve(labels, predictions, num_thresholds, weights), num_thresholds)


def _curve(tag: str, data: np.ndarray, num_thresholds: int) -> Summary:
    version = PrCurvePluginData(version=0, num_thresholds=min(num_thresholds, MAX_THRESHOLDS))
    proto = TensorProto(
        dtype="DT_FLOAT", float_val=data.reshape(-1).tolist(), tensor_shape=tensor_shape_proto(data.shape)
    )
    return _of_plugin(tag, "pr_curves", proto, version.SerializeToString())


def compute_curve(
    labels: np.ndarray, predictions: np.ndarray, num_thresholds: int | None = None, weights: Any = None
) -> np.ndarray:
    """True and false positives, true and false negatives, precision and recall [6, num_thresholds].

    Threshold i of n is i / (n - 1).

    >>> compute_curve(np.array([0, 1]), np.array([0.2, 0.9]), 3)[0]
    array([1., 1., 0.])
    """
    assert num_thresholds is not None, "compute_curve needs num_thresholds"
    weights = 1.0 if weights is None else weights
    bins = np.floor(predictions * (num_thresholds - 1)).astype(np.int32)
    positive = labels.astype(float)

    def counts_from(amounts: np.ndarray) -> np.ndarray:
        """Return the weight of the predictions at or above each threshold."""
        counts, _ = np.histogram(bins, num_thresholds, (0, num_thresholds - 1), weights=amounts)
        return counts[::-1].cumsum()[::-1]

    tp, fp = counts_from(positive * weights), counts_from((1.0 - positive) * weights)
    tn, fn = fp[0] - fp, tp[0] - tp
    least = 1e-7  # avoids 0 / 0 where there are no positives
    return np.stack((tp, fp, tn, fn, tp / np.maximum(least, tp + fp), tp / np.maximum(least, tp + fn)))


def mesh(
    tag: str,
    vertices: Tensor,
    colors: Tensor | None,
    faces: Tensor | None,
    config_dict: Mapping[str, Any] | None,
    display_name: str | None = None,
    description: str | None = None,
) -> Summary:
    """Points [B, N, 3] with their colours [B, N, 3] and triangles [B, F, 3]."""
    from tensorboard.plugins.mesh import metadata
    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

    given = [
        (tensor, kind)
        for tensor, kind in (
            (vertices, MeshPluginData.VERTEX),
            (faces, MeshPluginData.FACE),
            (colors, MeshPluginData.COLOR),
        )
        if tensor is not None
    ]
    components = metadata.get_components_bitmask([kind for _, kind in given])
    config = _get_json_config(config_dict)
    return Summary(
        value=[
            _get_tensor_summary(tag, display_name, description, tensor, kind, components, config)
            for tensor, kind in given
        ]
    )


def _get_json_config(config_dict: Mapping[str, Any] | None) -> str:
    return json.dumps(config_dict or {}, sort_keys=True)


def _get_tensor_summary(
    name: str,
    display_name: str | None,
    description: str | None,
    tensor: Tensor,
    content_type: int,
    components: int,
    json_config: str,
) -> Summary.Value:
    """One of the tensors of a mesh."""
    from tensorboard.plugins.mesh import metadata

    proto = TensorProto(
        dtype="DT_FLOAT",
        float_val=tensor.reshape(-1).tolist(),
        tensor_shape=tensor_shape_proto(tensor.shape),
    )
    tensor_metadata = metadata.create_summary_metadata(
        name, display_name, content_type, components, tensor.shape, description, json_config=json_config
    )
    tag = metadata.get_instance_name(name, content_type)
    return Summary.Value(tag=tag, tensor=proto, metadata=tensor_metadata)


# ---- Hyperparameters ----------------------------------------------------------------------------------------------


def hparams(
    hparam_dict: dict[str, Any] | None = None,
    metric_dict: dict[str, Any] | None = None,
    hparam_domain_discrete: dict[str, list[Any]] | None = None,
) -> tuple[Summary, Summary, Summary]:
    """Return the summaries of a run with hyperparameters: the experiment, the start of the run, and its end.

    `hparam_domain_discrete` lists the values that a hyperparameter may have.
    """
    from tensorboard.plugins.hparams import metadata
    from tensorboard.plugins.hparams.api_pb2 import Experiment, HParamInfo, MetricInfo, MetricName, Status
    from tensorboard.plugins.hparams.plugin_data_pb2 import (
        HParamsPluginData,
        SessionEndInfo,
        SessionStartInfo,
    )

    domains = hparam_domain_discrete or {}
    _require_dict("hparam_dict", hparam_dict)
    _require_dict("metric_dict", metric_dict)
    _require_dict("hparam_domain_discrete", domains)
    assert hparam_dict is not None and metric_dict is not None
    for name, domain in domains.items():
        _check_domain(name, domain, hparam_dict)

    def summary(tag: str, **content: Any) -> Summary:
        data = HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **content)
        return _of_plugin(tag, metadata.PLUGIN_NAME, None, data.SerializeToString())

    values = {name: _hparam(value) for name, value in hparam_dict.items() if value is not None}
    infos = [
        HParamInfo(
            name=name, type=_hparam_type(value), domain_discrete=_domain(hparam_dict[name], domains.get(name))
        )
        for name, value in values.items()
    ]
    metrics = [MetricInfo(name=MetricName(tag=name)) for name in metric_dict]
    return (
        summary(metadata.EXPERIMENT_TAG, experiment=Experiment(hparam_infos=infos, metric_infos=metrics)),
        summary(metadata.SESSION_START_INFO_TAG, session_start_info=SessionStartInfo(hparams=values)),
        summary(
            metadata.SESSION_END_INFO_TAG,
            session_end_info=SessionEndInfo(status=Status.Value("STATUS_SUCCESS")),
        ),
    )


def _require_dict(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        message = f"parameter: {name} should be a dictionary, nothing logged; it is of type {type(value)}"
        logger.warning(message)
        raise TypeError(message)


def _check_domain(name: str, domain: Any, hparam_dict: Mapping[str, Any]) -> None:
    kind = type(hparam_dict.get(name))
    if (
        name not in hparam_dict
        or not isinstance(domain, list)
        or not all(type(each) is kind for each in domain)
    ):
        message = f"hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}]; it is {domain!r}"
        logger.warning(message)
        raise TypeError(message)


def _hparam(value: Any) -> struct_pb2.Value:
    if isinstance(value, (int, float)):  # bools as well
        return struct_pb2.Value(number_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, Tensor):
        return struct_pb2.Value(number_value=float(make_np(value).reshape(-1)[0]))
    raise ValueError(
        f"a hyperparameter is an int, float, str, bool or tensor, and this is of type {type(value)}"
    )


def _hparam_type(value: struct_pb2.Value) -> int:
    from tensorboard.plugins.hparams.api_pb2 import DataType

    return DataType.Value("DATA_TYPE_STRING" if value.HasField("string_value") else "DATA_TYPE_FLOAT64")


def _domain(value: Any, domain: list[Any] | None) -> struct_pb2.ListValue | None:
    """Return the values that a hyperparameter may have. Tensors have none."""
    if domain is None or isinstance(value, Tensor):
        return None
    return struct_pb2.ListValue(values=[_hparam(each) for each in domain])
