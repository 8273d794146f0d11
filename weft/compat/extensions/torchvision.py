"""The operators of torchvision's compiled library, registered under `torch.ops.torchvision` when this module is imported."""

from __future__ import annotations

from ...library import Library
from ...library.registry.operators import find
from . import boxes, deformable, regions

_REGION = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_GRAD = "Tensor grad, Tensor rois, {}float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_ALIGN_GRAD, _ARGMAX_GRAD, _MAPPING_GRAD = (
    _GRAD.format(name) for name in ("", "Tensor argmax, ", "Tensor channel_mapping, ")
)
_DEFORMABLE = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, "
    "SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask"
)
_QUANTIZED_REGION = (
    "Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, int rois_zero_point, "
    "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
)

# fmt: off
# Name, arguments and results in torchvision's words, what computes it. Operators on quantized tensors are only declared, because
# torchvision says more about them while it is imported.
OPERATORS = (
    ("nms",                     "Tensor dets, Tensor scores, float iou_threshold",           "Tensor",           boxes.nms),
    ("roi_align",               f"{_REGION}, int sampling_ratio, bool aligned",              "Tensor",           regions.roi_align),
    ("_roi_align_backward",     f"{_ALIGN_GRAD}, {_SIZES}, int sampling_ratio, bool aligned", "Tensor",          regions.roi_align_backward),
    ("roi_pool",                _REGION,                                                     "(Tensor, Tensor)", regions.roi_pool),
    ("_roi_pool_backward",      f"{_ARGMAX_GRAD}, {_SIZES}",                                 "Tensor",           regions.roi_pool_backward),
    ("ps_roi_align",            f"{_REGION}, int sampling_ratio",                            "(Tensor, Tensor)", regions.ps_roi_align),
    ("_ps_roi_align_backward",  f"{_MAPPING_GRAD}, int sampling_ratio, {_SIZES}",            "Tensor",           regions.ps_roi_align_backward),
    ("ps_roi_pool",             _REGION,                                                     "(Tensor, Tensor)", regions.ps_roi_pool),
    ("_ps_roi_pool_backward",   f"{_MAPPING_GRAD}, {_SIZES}",                                "Tensor",           regions.ps_roi_pool_backward),
    ("deform_conv2d",           _DEFORMABLE,                                                 "Tensor",           deformable.deform_conv2d),
    ("_deform_conv2d_backward", f"Tensor grad, {_DEFORMABLE}", "(Tensor, Tensor, Tensor, Tensor, Tensor)",       deformable.deform_conv2d_backward),
    ("box_iou_rotated",         "Tensor boxes1, Tensor boxes2",                              "Tensor",           boxes.box_iou_rotated),
    ("qnms",                    "Tensor dets, Tensor scores, float iou_threshold",           "Tensor",           None),
    ("qroi_align",              f"{_QUANTIZED_REGION}, int sampling_ratio, bool aligned",    "Tensor",           None),
)
# fmt: on


def _cuda_version() -> int:
    """-1: compiled without CUDA."""
    return -1


# Programs define some of the operators themselves, for the case that the compiled library cannot be loaded. Their schemas and
# kernels stay.
_library = Library("torchvision", "FRAGMENT")
registered = []  # the names of the operators that weft computes
for _name, _arguments, _results, _function in OPERATORS:
    _own = find(f"torchvision::{_name}", "")
    if _own is None:
        _library.define(f"{_name}({_arguments}) -> {_results}")
    if _function is not None and (_own is None or not _own.has("CPU")):
        _library.impl(_name, _function, "CPU")
        registered.append(_name)
_library.define("_cuda_version() -> int")
_library.impl("_cuda_version", _cuda_version, "CompositeExplicitAutograd")
