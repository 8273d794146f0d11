# module torch.optim.adadelta: imported by this module
from torch.optim.optimizer import (
    Optimizer, _default_to_fused_or_foreach, _disable_dynamo_if_unsupported,
    _get_capturable_supported_devices, _get_scalar_dtype, _use_grad_for_differentiable, _view_as_real
)

# module torch.optim.adagrad: imported by this module
from torch.optim.optimizer import (
    Optimizer, _default_to_fused_or_foreach, _get_scalar_dtype, _get_value, _use_grad_for_differentiable,
    _view_as_real
)

# module torch.optim.adam: imported by this module
from torch.optim.optimizer import (
    Optimizer, _default_to_fused_or_foreach, _disable_dynamo_if_unsupported,
    _get_capturable_supported_devices, _get_scalar_dtype, _get_value, _use_grad_for_differentiable,
    _view_as_real
)

# module torch.optim.adamax: imported by this module
from torch.optim.optimizer import (
    Optimizer, _default_to_fused_or_foreach, _disable_dynamo_if_unsupported,
    _get_capturable_supported_devices, _get_scalar_dtype, _get_value, _use_grad_for_differentiable,
    _view_as_real
)

# module torch.optim.asgd: imported by this module
from torch.optim.optimizer import (
    Optimizer, _default_to_fused_or_foreach, _disable_dynamo_if_unsupported,
    _get_capturable_supported_devices, _get_scalar_dtype, _get_value, _use_grad_for_differentiable,
    _view_as_real
)

# module torch.optim.lr_scheduler: imported by this module
from torch.optim.optimizer import Optimizer
from torch import Tensor

# module torch.optim.nadam: imported by this module
from torch.optim.optimizer import (
    Optimizer, _default_to_fused_or_foreach, _disable_dynamo_if_unsupported,
    _get_capturable_supported_devices, _get_scalar_dtype, _get_value, _use_grad_for_differentiable,
    _view_as_real
)

# module torch.optim.optimizer: imported by this module
from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype

# module torch.optim.radam: imported by this module
from torch.optim.optimizer import (
    Optimizer, _default_to_fused_or_foreach, _disable_dynamo_if_unsupported,
    _get_capturable_supported_devices, _get_scalar_dtype, _get_value, _use_grad_for_differentiable,
    _view_as_real
)

# module torch.optim.rmsprop: imported by this module
from torch.optim.optimizer import (
    Optimizer, _default_to_fused_or_foreach, _disable_dynamo_if_unsupported,
    _get_capturable_supported_devices, _get_scalar_dtype, _use_grad_for_differentiable, _view_as_real
)

# module torch.optim.rprop: imported by this module
from torch.optim.optimizer import (
    Optimizer, _default_to_fused_or_foreach, _disable_dynamo_if_unsupported,
    _get_capturable_supported_devices, _get_scalar_dtype, _use_grad_for_differentiable, _view_as_real
)

# module torch.optim.sgd: imported by this module
from torch.optim.optimizer import Optimizer, _default_to_fused_or_foreach, _use_grad_for_differentiable

# module torch.optim.sparse_adam: imported by this module
from torch.optim.optimizer import Optimizer

# module torch.optim.swa_utils: imported by this module
from torch.utils._foreach_utils import (
    _get_foreach_kernels_supported_devices, _group_tensors_by_device_and_dtype
)
