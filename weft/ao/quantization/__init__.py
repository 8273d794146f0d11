"""`torch.ao.quantization`: observers, and the steps from a model of floats to a model of quantized layers."""

from ...compat.missing import module_getattr
from .fake_quantize import (
    FakeQuantize,
    FakeQuantizeBase,
    default_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    disable_fake_quant,
    disable_observer,
    enable_fake_quant,
    enable_observer,
)
from .fuse_modules import fuse_known_modules, fuse_modules
from .observer import (
    FixedQParamsObserver,
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    NoopObserver,
    ObserverBase,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    UniformQuantizationObserverBase,
    default_dynamic_quant_observer,
    default_histogram_observer,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_weight_observer,
)
from .qconfig import (
    QConfig,
    default_dynamic_qconfig,
    default_per_channel_qconfig,
    default_qat_qconfig,
    default_qconfig,
    float16_dynamic_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
    per_channel_dynamic_qconfig,
)
from .quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    get_static_quant_module_class,
)
from .quantize import (
    add_quant_dequant,
    convert,
    prepare,
    propagate_qconfig_,
    quantize,
    quantize_dynamic,
    swap_module,
)
from .stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = [name for name in dir() if not name.startswith("_") and name not in ("module_getattr",)]
_MODULES = "fake_quantize observer qconfig quantization_mappings stubs".split()
__getattr__ = module_getattr(__name__, _MODULES)
