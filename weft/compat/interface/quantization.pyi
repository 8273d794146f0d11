# module torch.quantization: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.stubs import DeQuantStub, QuantStub, QuantWrapper
from torch.ao.quantization.observer import (
    HistogramObserver, ObserverBase, PlaceholderObserver as default_placeholder_observer
)
from torch.ao.quantization.qconfig import QConfig
from torch.ao.quantization.quant_type import QuantType
from torch.ao.quantization.quantize import (
    add_quant_dequant, convert, prepare, prepare_qat, propagate_qconfig_, quantize, quantize_dynamic,
    quantize_qat, swap_module
)
from torch.ao.quantization.fuse_modules import fuse_modules
from torch.ao.quantization.quantization_mappings import (
    get_default_compare_output_module_list, get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings, get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings, get_quantized_operator, get_static_quant_module_class
)
from torch.ao.quantization.fuser_method_mappings import get_fuser_method
from torch.ao.quantization.quantize_jit import quantize_dynamic_jit, quantize_jit
def default_eval_fn(model, calib_data): ...
def default_fake_quant(*args, **keywords): ...
def default_fixed_qparams_range_0to1_fake_quant(*args, **keywords): ...
def default_fixed_qparams_range_neg1to1_fake_quant(*args, **keywords): ...
def default_histogram_fake_quant(*args, **keywords): ...
def default_observer(*args, **keywords): ...
def default_per_channel_weight_fake_quant(*args, **keywords): ...
def default_per_channel_weight_observer(*args, **keywords): ...
def default_weight_fake_quant(*args, **keywords): ...
def default_weight_observer(*args, **keywords): ...

# module torch.quantization.fake_quantize: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.fuse_modules: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.fuser_method_mappings: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.fx: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.fx.convert: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.fx.fuse: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.fx.fusion_patterns: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.fx.graph_module: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.fx.match_utils: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.fx.pattern_utils: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.fx.prepare: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.fx.quantization_patterns: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.fx.quantization_types: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.fx.utils: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.observer: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.qconfig: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.quant_type: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.quantization_mappings: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.quantize: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.quantize_fx: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.quantize_jit: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.stubs: weft has quantized tensors and the eager workflow of quantization, but not this

# module torch.quantization.utils: weft has quantized tensors and the eager workflow of quantization, but not this
