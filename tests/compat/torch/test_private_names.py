"""Private names of PyTorch's that libraries use, side by side with PyTorch's."""

import importlib

import pytest
import torch
import torch._dynamo
import torch._inductor.utils
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
    "torch._C._dispatch_isTensorSubclassLike(torch.ones(1)), torch._C._debug_only_are_vmap_fallback_warnings_enabled()",
    "torch._C._TensorMeta is type(torch.Tensor), isinstance(torch.Tensor, torch._C._TensorMeta)",
    "torch._C._jit_can_fuse_on_cpu(), torch._C._jit_set_profiling_mode(torch._C._jit_set_profiling_mode(False))",
    "torch._C._nn._parse_to('cpu'), torch._C._nn._parse_to(torch.float32, non_blocking=True)",
    "torch._C._nn._parse_to(torch.ones(1)), torch._C._nn._parse_to(torch.device('cpu'), torch.float64, True)",
    "torch._C._nn._parse_to(memory_format=torch.channels_last)",
    "torch._C._nn.gelu_(torch.ones(2)), torch._C._nn.mse_loss(torch.ones(2), torch.zeros(2), 2)",
    "torch._C._nn.replication_pad1d(torch.arange(3.0)[None], (1, 2))",
    "torch.functional.F.relu(torch.tensor([-1.0, 1]))",
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
    *(
        f"torch._prims_common.elementwise_dtypes({operands}, type_promotion_kind="
        f"torch._prims_common.ELEMENTWISE_TYPE_PROMOTION_KIND.{kind})"
        for kind in (
            "DEFAULT",
            "NO_OPMATH",
            "INT_TO_FLOAT",
            "ALWAYS_BOOL",
            "COMPLEX_TO_FLOAT",
            "BOOL_TO_LONG",
        )
        for operands in (
            "torch.ones(2, dtype=torch.half), 2.0",
            "torch.ones(2, dtype=torch.int8), 3, None",
            "torch.ones(2, dtype=torch.bool), True",
            "torch.ones(2, dtype=torch.cfloat), torch.ones((), dtype=torch.double)",
        )
    ),
    "torch._prims_common.elementwise_dtypes('a', type_promotion_kind=torch._prims_common.ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)",
    "[torch._prims_common.dtype_to_type(d) for d in (torch.bool, torch.uint8, torch.bfloat16, torch.cdouble)]",
    "[torch._prims_common.corresponding_complex_dtype(d) for d in (torch.half, torch.bfloat16, torch.double)]",
    "[torch._prims_common.type_to_dtype(kind) for kind in (bool, int, float, complex)]",
    "torch._refs.sinc(torch.tensor([0.0, 0.5])), torch._refs.expand(torch.ones(1), 3), torch._refs.T(torch.ones(2, 3)).shape",
    "torch._refs.nn.functional.relu(torch.tensor([-1.0, 1.0])), torch._refs.special.bessel_j0(torch.zeros(2))",
    "torch._refs._conversions.half(torch.ones(2)), torch._refs.linalg.norm(torch.ones(4))",
    "torch._utils_internal.get_file_path_2('a', 'b'), torch._utils_internal.justknobs_check('x', False)",
    "bool(torch._utils._is_privateuse1_backend_available())",
    "torch._inductor.utils.GPU_TYPES, torch._inductor.utils.is_gpu('xpu'), torch._inductor.utils.is_gpu('cpu')",
    "sorted(torch.autograd.gradcheck._iter_tensors([torch.ones(1), [torch.zeros(1)], 'a', 3]), key=float)",
    "torch.autograd._calculate_shape(torch.ones(2), torch.ones(3, 2), True)",
    "torch._C._len_torch_function_stack(), torch._C.has_lapack, torch._C._jit_set_num_profiled_runs(1)",
    "torch._C._get_torch_function_state() == torch._C._TorchFunctionState.ENABLED",
    "torch.cuda.jiterator._create_jit_fn('template <typename T> T f(T x) { return x; }')(torch.ones(1))",
    "torch.storage._dtype_to_storage_type_map()[torch.float32], torch.storage._storage_type_to_dtype_map()['LongStorage']",
    "torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL",
    "torch.autograd.function._nested_map(lambda x: isinstance(x, int), str)([1, (None, {'a': 2}), (3,)])",
    "torch.autograd.function._nested_map(torch.is_tensor, torch.neg)(torch.return_types.max((torch.ones(1), torch.ones(1))))",
    "torch.autograd.function._nested_map(torch.is_tensor, torch.neg, 'Tensors')([1])",
    "torch.autograd.function._nested_map(torch.is_tensor, torch.neg)({1: 'a'})",
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


def test_resizing_as_before_0_4():
    found = []
    for library in (weft, torch):
        resize = importlib.import_module(f"{library.__name__}.autograd._functions").Resize
        x = library.arange(6.0, requires_grad=True)
        y = resize.apply(x, (2, 3))
        y.square().sum().backward()
        with pytest.raises(RuntimeError, match=r"requested resize to 2x4 \(8 elements in total\)"):
            resize.apply(x, (2, 4))
        found.append((y.tolist(), x.grad.tolist()))
    assert found[0] == found[1]
