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

# module torch.nn.intrinsic: quantized tensors are not there yet
from torch.ao.nn.intrinsic.modules.fused import (
    BNReLU2d, BNReLU3d, ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d, ConvReLU1d,
    ConvReLU2d, ConvReLU3d, LinearBn1d, LinearReLU
)

# module torch.nn.intrinsic.modules: quantized tensors are not there yet
from torch.ao.nn.intrinsic.modules.fused import (
    BNReLU2d, BNReLU3d, ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d, ConvReLU1d,
    ConvReLU2d, ConvReLU3d, LinearBn1d, LinearReLU
)

# module torch.nn.intrinsic.modules.fused: quantized tensors are not there yet
from torch.ao.nn.intrinsic.modules.fused import (
    BNReLU2d, BNReLU3d, ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d, ConvReLU1d,
    ConvReLU2d, ConvReLU3d, LinearBn1d, LinearReLU
)

# module torch.nn.intrinsic.qat: quantized tensors are not there yet

# module torch.nn.intrinsic.qat.modules: quantized tensors are not there yet
from torch.ao.nn.intrinsic.qat.modules.conv_fused import (
    ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d, ConvReLU1d, ConvReLU2d,
    ConvReLU3d, freeze_bn_stats, update_bn_stats
)
from torch.ao.nn.intrinsic.qat.modules.linear_fused import LinearBn1d
from torch.ao.nn.intrinsic.qat.modules.linear_relu import LinearReLU

# module torch.nn.intrinsic.qat.modules.conv_fused: quantized tensors are not there yet
from torch.ao.nn.intrinsic.qat.modules.conv_fused import (
    ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d, ConvReLU1d, ConvReLU2d,
    ConvReLU3d, freeze_bn_stats, update_bn_stats
)

# module torch.nn.intrinsic.qat.modules.linear_fused: quantized tensors are not there yet
from torch.ao.nn.intrinsic.qat.modules.linear_fused import LinearBn1d

# module torch.nn.intrinsic.qat.modules.linear_relu: quantized tensors are not there yet
from torch.ao.nn.intrinsic.qat.modules.linear_relu import LinearReLU

# module torch.nn.intrinsic.quantized: quantized tensors are not there yet
from torch.ao.nn.intrinsic.quantized.modules.bn_relu import BNReLU2d, BNReLU3d
from torch.ao.nn.intrinsic.quantized.modules.conv_relu import ConvReLU1d, ConvReLU2d, ConvReLU3d
from torch.ao.nn.intrinsic.quantized.modules.linear_relu import LinearReLU

# module torch.nn.intrinsic.quantized.dynamic: quantized tensors are not there yet

# module torch.nn.intrinsic.quantized.dynamic.modules: quantized tensors are not there yet
from torch.ao.nn.intrinsic.quantized.dynamic.modules.linear_relu import LinearReLU

# module torch.nn.intrinsic.quantized.dynamic.modules.linear_relu: quantized tensors are not there yet
from torch.ao.nn.intrinsic.quantized.dynamic.modules.linear_relu import LinearReLU

# module torch.nn.intrinsic.quantized.modules: quantized tensors are not there yet
from torch.ao.nn.intrinsic.quantized.modules.bn_relu import BNReLU2d, BNReLU3d
from torch.ao.nn.intrinsic.quantized.modules.conv_relu import ConvReLU1d, ConvReLU2d, ConvReLU3d
from torch.ao.nn.intrinsic.quantized.modules.linear_relu import LinearReLU

# module torch.nn.intrinsic.quantized.modules.bn_relu: quantized tensors are not there yet
from torch.ao.nn.intrinsic.quantized.modules.bn_relu import BNReLU2d, BNReLU3d

# module torch.nn.intrinsic.quantized.modules.conv_relu: quantized tensors are not there yet
from torch.ao.nn.intrinsic.quantized.modules.conv_relu import ConvReLU1d, ConvReLU2d, ConvReLU3d

# module torch.nn.intrinsic.quantized.modules.linear_relu: quantized tensors are not there yet
from torch.ao.nn.intrinsic.quantized.modules.linear_relu import LinearReLU

# module torch.nn.qat: quantized tensors are not there yet
from torch.ao.nn.qat.modules.conv import Conv1d, Conv2d, Conv3d
from torch.ao.nn.qat.modules.embedding_ops import Embedding, EmbeddingBag
from torch.ao.nn.qat.modules.linear import Linear

# module torch.nn.qat.dynamic: quantized tensors are not there yet

# module torch.nn.qat.dynamic.modules: quantized tensors are not there yet
from torch.ao.nn.qat.dynamic.modules.linear import Linear

# module torch.nn.qat.dynamic.modules.linear: quantized tensors are not there yet

# module torch.nn.qat.modules: quantized tensors are not there yet
from torch.ao.nn.qat.modules.conv import Conv1d, Conv2d, Conv3d
from torch.ao.nn.qat.modules.embedding_ops import Embedding, EmbeddingBag
from torch.ao.nn.qat.modules.linear import Linear

# module torch.nn.qat.modules.conv: quantized tensors are not there yet

# module torch.nn.qat.modules.embedding_ops: quantized tensors are not there yet
from torch.ao.nn.qat.modules.embedding_ops import Embedding, EmbeddingBag

# module torch.nn.qat.modules.linear: quantized tensors are not there yet

# module torch.nn.quantizable: quantized tensors are not there yet

# module torch.nn.quantizable.modules: quantized tensors are not there yet
from torch.ao.nn.quantizable.modules.rnn import LSTM, LSTMCell
from torch.ao.nn.quantizable.modules.activation import MultiheadAttention

# module torch.nn.quantizable.modules.activation: quantized tensors are not there yet

# module torch.nn.quantizable.modules.rnn: quantized tensors are not there yet

# module torch.nn.quantized: quantized tensors are not there yet
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

# module torch.nn.quantized.dynamic: quantized tensors are not there yet

# module torch.nn.quantized.dynamic.modules: quantized tensors are not there yet
from torch.ao.nn.quantized.dynamic.modules.conv import (
    Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
)
from torch.ao.nn.quantized.dynamic.modules.rnn import GRU, GRUCell, LSTM, LSTMCell, RNNCell
from torch.ao.nn.quantized.dynamic.modules.linear import Linear

# module torch.nn.quantized.dynamic.modules.conv: quantized tensors are not there yet
from torch.ao.nn.quantized.dynamic.modules.conv import (
    Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
)

# module torch.nn.quantized.dynamic.modules.linear: quantized tensors are not there yet

# module torch.nn.quantized.dynamic.modules.rnn: quantized tensors are not there yet
from torch.ao.nn.quantized.dynamic.modules.rnn import (
    GRU, GRUCell, LSTM, LSTMCell, PackedParameter, RNNBase, RNNCell, RNNCellBase, pack_weight_bias
)

# module torch.nn.quantized.functional: quantized tensors are not there yet

# module torch.nn.quantized.modules: quantized tensors are not there yet
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

# module torch.nn.quantized.modules.activation: quantized tensors are not there yet

# module torch.nn.quantized.modules.batchnorm: quantized tensors are not there yet

# module torch.nn.quantized.modules.conv: quantized tensors are not there yet
from torch.ao.nn.quantized.modules.conv import (
    Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
)

# module torch.nn.quantized.modules.dropout: quantized tensors are not there yet
from torch.ao.nn.quantized.modules.dropout import Dropout

# module torch.nn.quantized.modules.embedding_ops: quantized tensors are not there yet
from torch.ao.nn.quantized.modules.embedding_ops import Embedding, EmbeddingBag, EmbeddingPackedParams

# module torch.nn.quantized.modules.functional_modules: quantized tensors are not there yet
from torch.ao.nn.quantized.modules.functional_modules import FXFloatFunctional, FloatFunctional, QFunctional

# module torch.nn.quantized.modules.linear: quantized tensors are not there yet
from torch.ao.nn.quantized.modules.linear import Linear, LinearPackedParams

# module torch.nn.quantized.modules.normalization: quantized tensors are not there yet
from torch.ao.nn.quantized.modules.normalization import (
    GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm
)

# module torch.nn.quantized.modules.rnn: quantized tensors are not there yet

# module torch.nn.quantized.modules.utils: quantized tensors are not there yet

# module torch.nn.modules.linear_cross_entropy: weft has one implementation of linear_cross_entropy, which is not in parts
