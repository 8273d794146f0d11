# module torch.quantization: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.stubs import DeQuantStub, QuantStub, QuantWrapper
from torch.ao.quantization.fake_quantize import (
    FakeQuantize, FakeQuantizeBase, FixedQParamsFakeQuantize, FusedMovingAvgObsFakeQuantize,
    default_fake_quant, default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant, default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant, default_fused_wt_fake_quant, default_histogram_fake_quant,
    default_per_channel_weight_fake_quant, default_weight_fake_quant, disable_fake_quant, disable_observer,
    enable_fake_quant, enable_observer
)
from torch.ao.quantization.observer import (
    HistogramObserver, MinMaxObserver, MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver,
    NoopObserver, ObserverBase, PerChannelMinMaxObserver, PlaceholderObserver, RecordingObserver,
    RecordingObserver as default_debug_observer, default_dynamic_quant_observer,
    default_float_qparams_observer, default_histogram_observer, default_observer,
    default_per_channel_weight_observer, PlaceholderObserver as default_placeholder_observer,
    default_weight_observer, get_observer_state_dict, load_observer_state_dict
)
from torch.ao.quantization.qconfig import (
    QConfig, QConfigAny, QConfigDynamic, default_activation_only_qconfig, default_debug_qconfig,
    default_dynamic_qconfig, default_per_channel_qconfig, default_qat_qconfig, default_qat_qconfig_v2,
    default_qconfig, default_weight_only_qconfig, float16_dynamic_qconfig, float16_static_qconfig,
    float_qparams_weight_only_qconfig, get_default_qat_qconfig, get_default_qconfig,
    per_channel_dynamic_qconfig, qconfig_equals
)
from torch.ao.quantization.quant_type import QuantType
from torch.ao.quantization.quantize import (
    add_quant_dequant, convert, prepare, prepare_qat, propagate_qconfig_, quantize, quantize_dynamic,
    quantize_qat, swap_module
)
from torch.ao.quantization.quantize_jit import (
    convert_dynamic_jit, convert_jit, fuse_conv_bn_jit, prepare_dynamic_jit, prepare_jit,
    quantize_dynamic_jit, quantize_jit, script_qconfig, script_qconfig_dict
)
from torch.ao.quantization.fuser_method_mappings import (
    fuse_conv_bn, fuse_conv_bn_relu, fuse_linear_bn, get_fuser_method
)
from torch.ao.quantization.fuse_modules import fuse_modules
from torch.ao.quantization.quantization_mappings import (
    get_default_compare_output_module_list, get_default_dynamic_quant_module_mappings,
    get_default_float_to_quantized_operator_mappings, get_default_qat_module_mappings,
    get_default_qconfig_propagation_list, get_default_static_quant_module_mappings,
    get_dynamic_quant_module_class, get_quantized_operator, get_static_quant_module_class, no_observer_set
)
def default_eval_fn(model, calib_data): ...

# module torch.quantization.fake_quantize: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.fake_quantize import (
    FakeQuantize, FakeQuantizeBase, FixedQParamsFakeQuantize, FusedMovingAvgObsFakeQuantize,
    default_fake_quant, default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant, default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant, default_fused_wt_fake_quant, default_histogram_fake_quant,
    default_per_channel_weight_fake_quant, default_weight_fake_quant, disable_fake_quant, disable_observer,
    enable_fake_quant, enable_observer
)

# module torch.quantization.fuse_modules: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.fuser_method_mappings import fuse_conv_bn, fuse_conv_bn_relu, get_fuser_method
from torch.ao.quantization.fuse_modules import fuse_known_modules, fuse_modules

# module torch.quantization.fuser_method_mappings: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.fuser_method_mappings import (
    fuse_conv_bn, fuse_conv_bn_relu, fuse_linear_bn, get_fuser_method
)

# module torch.quantization.fx: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.fx.convert import convert
from torch.ao.quantization.fx.fuse import fuse
from torch.ao.quantization.fx.prepare import prepare

# module torch.quantization.fx.convert: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.fx.convert import convert

# module torch.quantization.fx.fuse: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.fx.fuse import fuse

# module torch.quantization.fx.fusion_patterns: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.fx.fuse_handler import DefaultFuseHandler, FuseHandler

# module torch.quantization.fx.graph_module: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.fx.graph_module import (
    FusedGraphModule, ObservedGraphModule, ObservedStandaloneGraphModule, QuantizedGraphModule
)

# module torch.quantization.fx.match_utils: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.utils import MatchAllNode

# module torch.quantization.fx.pattern_utils: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.fx.pattern_utils import (
    get_default_fusion_patterns, get_default_output_activation_post_process_map, get_default_quant_patterns
)

# module torch.quantization.fx.prepare: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.fx.prepare import prepare

# module torch.quantization.fx.quantization_patterns: weft has quantized tensors and the eager workflow of quantization, but not this
class BatchNormQuantizeHandler:
    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False): ...
    def is_general_tensor_value_op(self): ...
    def is_custom_module(self): ...
    def is_standalone_module(self): ...
class BinaryOpQuantizeHandler:
    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False): ...
    def is_general_tensor_value_op(self): ...
    def is_custom_module(self): ...
    def is_standalone_module(self): ...
class CatQuantizeHandler:
    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False): ...
    def is_general_tensor_value_op(self): ...
    def is_custom_module(self): ...
    def is_standalone_module(self): ...
class ConvReluQuantizeHandler:
    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False): ...
    def is_general_tensor_value_op(self): ...
    def is_custom_module(self): ...
    def is_standalone_module(self): ...
class CopyNodeQuantizeHandler:
    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False): ...
    def is_general_tensor_value_op(self): ...
    def is_custom_module(self): ...
    def is_standalone_module(self): ...
class CustomModuleQuantizeHandler:
    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False): ...
    def is_general_tensor_value_op(self): ...
    def is_custom_module(self): ...
    def is_standalone_module(self): ...
class DefaultNodeQuantizeHandler:
    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False): ...
    def is_general_tensor_value_op(self): ...
    def is_custom_module(self): ...
    def is_standalone_module(self): ...
class EmbeddingQuantizeHandler:
    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False): ...
    def is_general_tensor_value_op(self): ...
    def is_custom_module(self): ...
    def is_standalone_module(self): ...
class FixedQParamsOpQuantizeHandler:
    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False): ...
    def is_general_tensor_value_op(self): ...
    def is_custom_module(self): ...
    def is_standalone_module(self): ...
class GeneralTensorShapeOpQuantizeHandler:
    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False): ...
    def is_general_tensor_value_op(self): ...
    def is_custom_module(self): ...
    def is_standalone_module(self): ...
class LinearReLUQuantizeHandler:
    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False): ...
    def is_general_tensor_value_op(self): ...
    def is_custom_module(self): ...
    def is_standalone_module(self): ...
class QuantizeHandler:
    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False): ...
    def is_general_tensor_value_op(self): ...
    def is_custom_module(self): ...
    def is_standalone_module(self): ...
class RNNDynamicQuantizeHandler:
    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False): ...
    def is_general_tensor_value_op(self): ...
    def is_custom_module(self): ...
    def is_standalone_module(self): ...
class StandaloneModuleQuantizeHandler:
    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False): ...
    def is_general_tensor_value_op(self): ...
    def is_custom_module(self): ...
    def is_standalone_module(self): ...

# module torch.quantization.fx.quantization_types: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.utils import Pattern

# module torch.quantization.fx.utils: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.fx.utils import (
    all_node_args_have_no_tensors, assert_and_get_unique_device, create_getattr_from_value,
    get_custom_module_class_keys, get_linear_prepack_op_for_dtype, get_new_attr_name_with_prefix,
    get_non_observable_arg_indexes_and_types, get_qconv_prepack_op, graph_module_from_producer_nodes,
    maybe_get_next_module
)

# module torch.quantization.observer: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.observer import (
    HistogramObserver, MinMaxObserver, MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver,
    NoopObserver, ObserverBase, PerChannelMinMaxObserver, PlaceholderObserver, RecordingObserver,
    RecordingObserver as default_debug_observer, default_dynamic_quant_observer,
    default_float_qparams_observer, default_histogram_observer, default_observer,
    default_per_channel_weight_observer, PlaceholderObserver as default_placeholder_observer,
    default_weight_observer, get_observer_state_dict, load_observer_state_dict
)

# module torch.quantization.qconfig: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.qconfig import (
    QConfig, QConfigAny, QConfigDynamic, default_activation_only_qconfig, default_debug_qconfig,
    default_dynamic_qconfig, default_per_channel_qconfig, default_qat_qconfig, default_qat_qconfig_v2,
    default_qconfig, default_weight_only_qconfig, float16_dynamic_qconfig, float16_static_qconfig,
    float_qparams_weight_only_qconfig, get_default_qat_qconfig, get_default_qconfig,
    per_channel_dynamic_qconfig, qconfig_equals
)

# module torch.quantization.quant_type: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.quant_type import QuantType

# module torch.quantization.quantization_mappings: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.quantization_mappings import (
    get_default_compare_output_module_list, get_default_dynamic_quant_module_mappings,
    get_default_float_to_quantized_operator_mappings, get_default_qat_module_mappings,
    get_default_qconfig_propagation_list, get_default_static_quant_module_mappings,
    get_dynamic_quant_module_class, get_quantized_operator, get_static_quant_module_class, no_observer_set
)

# module torch.quantization.quantize: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.quantize import (
    add_quant_dequant, convert, prepare, prepare_qat, propagate_qconfig_, quantize, quantize_dynamic,
    quantize_qat, swap_module
)

# module torch.quantization.quantize_fx: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.fx.graph_module import ObservedGraphModule
from torch.ao.quantization.fx.tracer import QuantizationTracer, ScopeContextManager
from torch.ao.quantization.quantize_fx import convert_fx, fuse_fx, prepare_fx, prepare_qat_fx

# module torch.quantization.quantize_jit: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.quantize_jit import (
    convert_dynamic_jit, convert_jit, fuse_conv_bn_jit, prepare_dynamic_jit, prepare_jit,
    quantize_dynamic_jit, quantize_jit, script_qconfig, script_qconfig_dict
)

# module torch.quantization.stubs: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.stubs import DeQuantStub, QuantStub, QuantWrapper

# module torch.quantization.utils: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.quantization.utils import (
    activation_dtype, activation_is_int8_quantized, activation_is_statically_quantized, calculate_qmin_qmax,
    check_min_max_valid, get_combined_dict, get_qconfig_dtypes, get_qparam_dict, get_quant_type,
    get_swapped_custom_module_class, getattr_from_fqn, is_per_channel, is_per_tensor, weight_dtype,
    weight_is_quantized, weight_is_statically_quantized
)
