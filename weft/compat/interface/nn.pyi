# module torch.nn.backends: weft has no THNN

# module torch.nn.backends.thnn: weft has no THNN

# module torch.nn.cpp: weft has no modules of C++
class ModuleWrapper(torch.nn.modules.module.Module):
    def __init__(self, cpp_module): ...
    @property
    def training(self): ...
class OrderedDictWrapper:
    def __init__(self, cpp_module, attr): ...
    @property
    def cpp_dict(self): ...
    def items(self): ...
    def keys(self): ...
    def values(self): ...

# module torch.nn.intrinsic: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.modules.fused import (
    BNReLU2d, BNReLU3d, ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d, ConvReLU1d,
    ConvReLU2d, ConvReLU3d, LinearBn1d, LinearReLU
)

# module torch.nn.intrinsic.modules: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.modules.fused import (
    BNReLU2d, BNReLU3d, ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d, ConvReLU1d,
    ConvReLU2d, ConvReLU3d, LinearBn1d, LinearReLU
)

# module torch.nn.intrinsic.modules.fused: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.modules.fused import (
    BNReLU2d, BNReLU3d, ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d, ConvReLU1d,
    ConvReLU2d, ConvReLU3d, LinearBn1d, LinearReLU
)

# module torch.nn.intrinsic.qat: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.qat.modules.conv_fused import (
    ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d, ConvReLU1d, ConvReLU2d,
    ConvReLU3d, freeze_bn_stats, update_bn_stats
)
from torch.ao.nn.intrinsic.qat.modules.linear_fused import LinearBn1d
from torch.ao.nn.intrinsic.qat.modules.linear_relu import LinearReLU

# module torch.nn.intrinsic.qat.modules: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.qat.modules.conv_fused import (
    ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d, ConvReLU1d, ConvReLU2d,
    ConvReLU3d, freeze_bn_stats, update_bn_stats
)
from torch.ao.nn.intrinsic.qat.modules.linear_fused import LinearBn1d
from torch.ao.nn.intrinsic.qat.modules.linear_relu import LinearReLU

# module torch.nn.intrinsic.qat.modules.conv_fused: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.qat.modules.conv_fused import (
    ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d, ConvReLU1d, ConvReLU2d,
    ConvReLU3d, freeze_bn_stats, update_bn_stats
)

# module torch.nn.intrinsic.qat.modules.linear_fused: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.qat.modules.linear_fused import LinearBn1d

# module torch.nn.intrinsic.qat.modules.linear_relu: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.qat.modules.linear_relu import LinearReLU

# module torch.nn.intrinsic.quantized: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.quantized.modules.bn_relu import BNReLU2d, BNReLU3d
from torch.ao.nn.intrinsic.quantized.modules.conv_relu import ConvReLU1d, ConvReLU2d, ConvReLU3d
from torch.ao.nn.intrinsic.quantized.modules.linear_relu import LinearReLU

# module torch.nn.intrinsic.quantized.dynamic: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.quantized.dynamic.modules.linear_relu import LinearReLU

# module torch.nn.intrinsic.quantized.dynamic.modules: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.quantized.dynamic.modules.linear_relu import LinearReLU

# module torch.nn.intrinsic.quantized.dynamic.modules.linear_relu: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.quantized.dynamic.modules.linear_relu import LinearReLU

# module torch.nn.intrinsic.quantized.modules: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.quantized.modules.bn_relu import BNReLU2d, BNReLU3d
from torch.ao.nn.intrinsic.quantized.modules.conv_relu import ConvReLU1d, ConvReLU2d, ConvReLU3d
from torch.ao.nn.intrinsic.quantized.modules.linear_relu import LinearReLU

# module torch.nn.intrinsic.quantized.modules.bn_relu: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.quantized.modules.bn_relu import BNReLU2d, BNReLU3d

# module torch.nn.intrinsic.quantized.modules.conv_relu: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.quantized.modules.conv_relu import ConvReLU1d, ConvReLU2d, ConvReLU3d

# module torch.nn.intrinsic.quantized.modules.linear_relu: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.intrinsic.quantized.modules.linear_relu import LinearReLU

# module torch.nn.qat: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.qat.modules.conv import Conv1d, Conv2d, Conv3d
from torch.ao.nn.qat.modules.embedding_ops import Embedding, EmbeddingBag
from torch.ao.nn.qat.modules.linear import Linear

# module torch.nn.qat.dynamic: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.qat.dynamic.modules.linear import Linear

# module torch.nn.qat.dynamic.modules: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.qat.dynamic.modules.linear import Linear

# module torch.nn.qat.dynamic.modules.linear: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.qat.dynamic.modules.linear import Linear

# module torch.nn.qat.modules: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.qat.modules.conv import Conv1d, Conv2d, Conv3d
from torch.ao.nn.qat.modules.embedding_ops import Embedding, EmbeddingBag
from torch.ao.nn.qat.modules.linear import Linear

# module torch.nn.qat.modules.conv: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.qat.modules.conv import Conv1d, Conv2d, Conv3d

# module torch.nn.qat.modules.embedding_ops: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.qat.modules.embedding_ops import Embedding, EmbeddingBag

# module torch.nn.qat.modules.linear: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.qat.modules.linear import Linear

# module torch.nn.quantizable: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantizable.modules.rnn import LSTM, LSTMCell
from torch.ao.nn.quantizable.modules.activation import MultiheadAttention

# module torch.nn.quantizable.modules: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantizable.modules.rnn import LSTM, LSTMCell
from torch.ao.nn.quantizable.modules.activation import MultiheadAttention

# module torch.nn.quantizable.modules.activation: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantizable.modules.activation import MultiheadAttention

# module torch.nn.quantizable.modules.rnn: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantizable.modules.rnn import LSTM, LSTMCell

# module torch.nn.quantized: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.modules.batchnorm import BatchNorm2d, BatchNorm3d
from torch.ao.nn.quantized.modules.conv import (
    Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
)
from torch.ao.nn.quantized.modules import DeQuantize, Quantize
from torch.ao.nn.quantized.modules.dropout import Dropout
from torch.ao.nn.quantized.modules.activation import (
    ELU, Hardswish, LeakyReLU, MultiheadAttention, PReLU, ReLU6, Sigmoid, Softmax
)
from torch.ao.nn.quantized.modules.embedding_ops import Embedding, EmbeddingBag
from torch.ao.nn.quantized.modules.functional_modules import FXFloatFunctional, FloatFunctional, QFunctional
from torch.ao.nn.quantized.modules.normalization import (
    GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm
)
from torch.ao.nn.quantized.modules.rnn import LSTM
from torch.ao.nn.quantized.modules.linear import Linear
from torch.nn.modules.pooling import MaxPool2d

# module torch.nn.quantized.dynamic: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.dynamic.modules.conv import (
    Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
)
from torch.ao.nn.quantized.dynamic.modules.rnn import GRU, GRUCell, LSTM, LSTMCell, RNNCell
from torch.ao.nn.quantized.dynamic.modules.linear import Linear

# module torch.nn.quantized.dynamic.modules: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.dynamic.modules.conv import (
    Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
)
from torch.ao.nn.quantized.dynamic.modules.rnn import GRU, GRUCell, LSTM, LSTMCell, RNNCell
from torch.ao.nn.quantized.dynamic.modules.linear import Linear

# module torch.nn.quantized.dynamic.modules.conv: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.dynamic.modules.conv import (
    Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
)

# module torch.nn.quantized.dynamic.modules.linear: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.dynamic.modules.linear import Linear

# module torch.nn.quantized.dynamic.modules.rnn: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.dynamic.modules.rnn import (
    GRU, GRUCell, LSTM, LSTMCell, PackedParameter, RNNBase, RNNCell, RNNCellBase, pack_weight_bias
)

# module torch.nn.quantized.functional: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.functional import (
    adaptive_avg_pool2d, adaptive_avg_pool3d, avg_pool2d, avg_pool3d, celu, clamp, conv1d, conv2d, conv3d,
    elu, hardsigmoid, hardswish, hardtanh, interpolate, leaky_relu, linear, max_pool1d, max_pool2d, threshold,
    upsample, upsample_bilinear, upsample_nearest
)

# module torch.nn.quantized.modules: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.modules.batchnorm import BatchNorm2d, BatchNorm3d
from torch.ao.nn.quantized.modules.conv import (
    Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
)
from torch.ao.nn.quantized.modules import DeQuantize, Quantize
from torch.ao.nn.quantized.modules.dropout import Dropout
from torch.ao.nn.quantized.modules.activation import (
    ELU, Hardswish, LeakyReLU, MultiheadAttention, PReLU, ReLU6, Sigmoid, Softmax
)
from torch.ao.nn.quantized.modules.embedding_ops import Embedding, EmbeddingBag
from torch.ao.nn.quantized.modules.functional_modules import FXFloatFunctional, FloatFunctional, QFunctional
from torch.ao.nn.quantized.modules.normalization import (
    GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm
)
from torch.ao.nn.quantized.modules.rnn import LSTM
from torch.ao.nn.quantized.modules.linear import Linear
from torch.nn.modules.pooling import MaxPool2d

# module torch.nn.quantized.modules.activation: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.modules.activation import (
    ELU, Hardswish, LeakyReLU, MultiheadAttention, PReLU, ReLU6, Sigmoid, Softmax
)

# module torch.nn.quantized.modules.batchnorm: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.modules.batchnorm import BatchNorm2d, BatchNorm3d

# module torch.nn.quantized.modules.conv: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.modules.conv import (
    Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
)

# module torch.nn.quantized.modules.dropout: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.modules.dropout import Dropout

# module torch.nn.quantized.modules.embedding_ops: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.modules.embedding_ops import Embedding, EmbeddingBag, EmbeddingPackedParams

# module torch.nn.quantized.modules.functional_modules: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.modules.functional_modules import FXFloatFunctional, FloatFunctional, QFunctional

# module torch.nn.quantized.modules.linear: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.modules.linear import Linear, LinearPackedParams

# module torch.nn.quantized.modules.normalization: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.modules.normalization import (
    GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm
)

# module torch.nn.quantized.modules.rnn: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.modules.rnn import LSTM

# module torch.nn.quantized.modules.utils: weft has quantized tensors and the eager workflow of quantization, but not this
from torch.ao.nn.quantized.modules.utils import WeightedQuantizedModule

# module torch.nn.modules.linear_cross_entropy: weft has one implementation of linear_cross_entropy, which is not in parts

# module torch.nn.attention: imported by this module
from torch.backends.cuda import SDPAParams, can_use_efficient_attention, can_use_flash_attention

# module torch.nn.attention.bias: imported by this module
from torch.backends.cuda import (
    SDPAParams, can_use_efficient_attention, can_use_flash_attention, is_flash_attention_available
)

# module torch.nn.attention.flex_attention: imported by this module
from torch.utils._pytree import GetAttrKey, TreeSpec, tree_flatten, tree_map_only, tree_unflatten

# module torch.nn.functional: imported by this module
from torch import Tensor, sym_int as _sym_int
from torch._jit_internal import unused as _jit_unused, _overload, boolean_dispatch
from torch.nn.modules.utils import _pair, _single, _triple
from torch.overrides import handle_torch_function

# module torch.nn.grad: imported by this module
from torch.nn.modules.utils import _pair, _single, _triple

# module torch.nn.modules.activation: imported by this module
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from torch.nn.init import constant_, xavier_normal_, xavier_uniform_

# module torch.nn.modules.batchnorm: imported by this module
from torch.nn.parameter import Parameter

# module torch.nn.modules.container: imported by this module
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter
from torch._jit_internal import _copy_to_script_wrapper

# module torch.nn.modules.conv: imported by this module
from torch.nn.modules.utils import _pair, _single, _triple

# module torch.nn.modules.module: imported by this module
from torch.utils.hooks import BackwardHook, RemovableHandle
from torch.nn.parameter import Buffer, Parameter
from torch import Tensor, device, dtype
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

# module torch.nn.modules.normalization: imported by this module
from torch import Size

# module torch.nn.modules.padding: imported by this module
from torch.nn.modules.utils import _pair, _quadruple

# module torch.nn.modules.pooling: imported by this module
from torch.nn.modules.utils import _pair, _single, _triple

# module torch.nn.modules.transformer: imported by this module
from torch.nn.init import xavier_uniform_

# module torch.nn.parallel: imported by this module
from torch.nn.parallel.distributed import DistributedDataParallel

# module torch.nn.parallel.comm: imported by this module
from torch._utils import (
    _flatten_dense_tensors, _get_device_index, _reorder_tensors_as, _take_tensors, _unflatten_dense_tensors
)

# module torch.nn.parallel.data_parallel: imported by this module
from torch._utils import _get_all_device_indices, _get_available_device_type, _get_device_index

# module torch.nn.parallel.distributed: imported by this module
from torch.autograd.function import Function
from torch.distributed.distributed_c10d import ReduceOp, _rank_not_in_group
from torch.autograd.variable import Variable
from torch._utils import _get_device_index
from torch.nn.parallel.scatter_gather import gather, scatter_kwargs
from torch.utils._pytree import tree_flatten, tree_unflatten

# module torch.nn.parallel.parallel_apply: imported by this module
from torch._utils import ExceptionWrapper

# module torch.nn.parallel.replicate: imported by this module
from torch._utils import _get_device_index

# module torch.nn.parallel.scatter_gather: imported by this module
from torch.nn.parallel._functions import Gather, Scatter

# module torch.nn.parameter: imported by this module
from torch._C import _disabled_torch_function_impl

# module torch.nn.utils.clip_grad: imported by this module
from torch.utils._foreach_utils import (
    _device_has_foreach_support, _group_tensors_by_device_and_dtype, _has_foreach_support
)

# module torch.nn.utils.parametrize: imported by this module
from torch.__future__ import get_swap_module_params_on_conversion
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

# module torch.nn.utils.stateless: imported by this module
from torch.nn.utils._named_member_accessor import NamedMemberAccessor

# module torch.nn.utils.weight_norm: imported by this module
from torch.nn.parameter import UninitializedParameter
from torch import _weight_norm, norm_except_dim
