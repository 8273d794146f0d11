# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
# mypy: disable-error-code="overload-overlap, overload-cannot-match, override, misc, no-redef"
from weft.autograd.parameter import Buffer as Buffer
from .parallel.data_parallel import DataParallel as DataParallel
from weft.autograd.parameter import Parameter as Parameter
from weft.autograd.parameter import UninitializedBuffer as UninitializedBuffer
from weft.autograd.parameter import UninitializedParameter as UninitializedParameter
from . import attention as attention
from . import common_types as common_types
from .factory import factory_kwargs as factory_kwargs
from . import functional as functional
from . import grad as grad
from . import init as init
from . import intrinsic as intrinsic
from . import modules as modules
from ..autograd import parameter as parameter
from . import qat as qat
from . import quantizable as quantizable
from . import quantized as quantized
from . import utils as utils
from .modules import *
