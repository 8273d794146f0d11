"""Private names of PyTorch's that libraries use, side by side with PyTorch's."""

import importlib

import pytest
import torch
import torch._dynamo
import torch.nn.modules.module

import weft

# Expressions over `torch` that give the same text in both.
EXPRESSIONS = [
    "torch._utils._get_device_index(3), torch._utils._get_device_index(None, optional=True)",
    "torch._utils._get_device_index('cpu', allow_cpu=True), torch._utils._get_device_index('cuda:1')",
    "torch._utils._get_device_index('cpu')",
    "torch._utils._get_device_index(None)",
    "torch._utils._element_size(torch.float16), torch._utils._element_size(torch.bool)",
    "torch._utils._get_available_device_type(), torch._utils._get_all_device_indices()",
    "torch._utils._rebuild_parameter(torch.ones(2), True, {})",
    "torch._C._get_accelerator(), torch._C._get_default_device(), torch._C._get_privateuse1_backend_name()",
    "torch._C._TensorMeta is type(torch.Tensor), isinstance(torch.Tensor, torch._C._TensorMeta)",
    "torch._C._jit_can_fuse_on_cpu(), torch._C._jit_set_profiling_mode(torch._C._jit_set_profiling_mode(False))",
    "torch._C._nn._parse_to('cpu'), torch._C._nn._parse_to(torch.float32, non_blocking=True)",
    "torch._C._nn._parse_to(torch.ones(1)), torch._C._nn._parse_to(torch.device('cpu'), torch.float64, True)",
    "torch._C._nn._parse_to(memory_format=torch.channels_last)",
    "torch._tensor_str._tensor_str(torch.arange(6.0).reshape(2, 3) / 3, 8)",
    "torch._tensor_str._str(torch.ones(2)), torch._tensor_str._str(torch.ones(2), tensor_contents='...')",
    "torch._tensor_str._add_suffixes('tensor([1, 2]', ['dtype=x', 'a=b'], 7, False)",
    "torch._tensor_str._add_suffixes('tensor([1, 2]', ['dtype=x', 'a=b'], 7, True)",
    "torch.utils.data._utils.worker._generate_state(123, 4), torch.utils.data._utils.worker._generate_state(2**40, 0)",
    "torch.TensorType.__name__, torch.DeviceObjType.__name__, torch.Graph.__name__, torch.ScriptModule.__name__",
    "torch.utils.data.dataloader._MultiProcessingDataLoaderIter.__name__",
    "torch._tensor._rebuild_from_type_v2(torch.ones, torch.Tensor, (2,), {'mark': 3}).mark",
    "optimizer._default_to_fused_or_foreach([torch.ones(1)], False, False)",
    "optimizer._default_to_fused_or_foreach([torch.ones(1)], False, True)",
    "optimizer._get_value(torch.tensor(2.0)), optimizer._get_value(3)",
    "optimizer._get_capturable_supported_devices(supports_xla=False)",
    "optimizer._get_fused_kernels_supported_devices()",
    "optimizer._get_foreach_kernels_supported_devices()",
    "optimizer._get_scalar_dtype(), optimizer._get_scalar_dtype(is_fused=True)",
    "torch.nn.init._no_grad_fill_(torch.ones(2), 3.0), torch.nn.init._no_grad_zero_(torch.ones(2))",
    "torch.manual_seed(0), torch.nn.init._no_grad_uniform_(torch.ones(3), -1, 1)",
    "torch.manual_seed(0), torch.nn.init._no_grad_normal_(torch.ones(3), 0.0, 2.0)",
    "torch.manual_seed(0), torch.nn.init._no_grad_trunc_normal_(torch.ones(3), 0.0, 1.0, -1.0, 1.0)",
    "torch.nn.modules.module._EXTRA_STATE_KEY_SUFFIX",
    "[f(f) is f for f in (torch._dynamo.allow_in_graph, torch._dynamo.forbid_in_graph)]",
    "torch._dynamo.mark_dynamic(torch.ones(2), 0), torch._dynamo.mark_static_address(torch.ones(2))",
    "torch._dynamo.graph_break(), torch._dynamo.is_compiling()",
    "torch._dynamo.eval_frame.OptimizedModule is torch._dynamo.OptimizedModule",
]


def optimizer_of(library):
    """The module, which is no attribute of PyTorch's `torch.optim`."""
    return importlib.import_module(f"{library.__name__}.optim.optimizer")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_private_names_do_what_pytorchs_do(expression):
    def evaluate(library):
        try:
            value = eval(expression, {"torch": library, "optimizer": optimizer_of(library)})
            return repr(value[1:] if "manual_seed" in expression else value)
        except Exception as error:
            return type(error), str(error).splitlines()[0]

    assert evaluate(weft) == evaluate(torch)


@pytest.mark.parametrize("library", [weft, torch])
def test_a_step_is_recorded_if_it_is_to_be_differentiated(library):
    class Own(library.optim.Optimizer):
        @optimizer_of(library)._use_grad_for_differentiable
        def step(self, closure=None):
            return library.is_grad_enabled()

    x = library.ones(2, requires_grad=True)
    assert [Own([x], {"differentiable": flag}).step() for flag in (True, False)] == [True, False]


def test_indices_that_vmap_maps_over():
    """As masks of attention are made: a function of four numbers, mapped over four dimensions."""
    from weft._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    table = weft.arange(6).reshape(2, 3)
    with TransformGetItemToIndex():
        mapped = weft.vmap(weft.vmap(lambda i, j: table[i, j] * 10, (None, 0)), (0, None))(
            weft.arange(2), weft.arange(3)
        )
    assert mapped.tolist() == (table * 10).tolist()
