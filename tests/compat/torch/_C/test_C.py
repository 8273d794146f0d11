"""Names of torch._C that libraries touch."""

import pytest
import torch

import weft


@pytest.mark.parametrize(
    "text",
    [
        "str(C._dispatch_keys(x))",
        "C._dispatch_has_kernel('aten::add.Tensor')",
        "C._dispatch_has_kernel('aten::nope')",
        "C._dispatch_has_kernel_for_dispatch_key('aten::add.Tensor', 'CPU')",
        "str(C._parse_dispatch_key('CPU')), C._parse_dispatch_key('Nope')",
        "C._dispatch_key_name(C.DispatchKey.CPU), int(C.DispatchKey.AutogradCPU), repr(C.DispatchKey.Meta)",
        "[str(each) for each in C._jit_get_schemas_for_operator('aten::relu')][:2]",
        "str(C._get_schema('aten::add', 'Tensor'))",
        "C._get_tracing_state(), C._is_torch_function_enabled(), C._is_alias_of(x, x[0]), C.is_grad_enabled()",
        "C._VariableFunctions.add(x, 1).tolist(), hasattr(C._VariableFunctions, 'nope')",
        "[isinstance(each, torch.StorageBase) for each in (x.untyped_storage(), x, torch.FloatStorage(2))], C.StorageBase is torch.StorageBase",
        "isinstance(x.untyped_storage(), torch.storage._StorageBase)",
        "isinstance(x, C.TensorBase), isinstance(x, C.Graph), isinstance(3, C.Value)",
        "C._functorch.is_batchedtensor(x), C._functorch.maybe_get_level(x), C._functorch.peek_interpreter_stack()",
        "C._log_api_usage_once('x'), C._has_torch_function_unary(x), C._GLIBCXX_USE_CXX11_ABI",
        "C.DispatchKeySet(C.DispatchKey.CPU).has(C.DispatchKey.CPU), (C.DispatchKeySet(C.DispatchKey.CPU) | C.DispatchKeySet(C.DispatchKey.Meta))",
        "str(C.ListType.ofInts()), str(C.OptionalType.ofTensor()), C.TensorType.get() == C.TensorType.get(), C.IntType.get().kind()",
        "C.IntType.get().isSubtypeOf(C.OptionalType(C.IntType.get())), C.ListType(C.StringType.get()).getElementType()",
        "torch.Tag.core, torch.DispatchKey.CPU, str(torch.Tag.pointwise), int(torch.Tag.view_copy)",
    ],
)
def test_as_pytorch(text):
    def outcome(lib):
        return repr(eval(text, {"torch": lib, "C": lib._C, "x": lib.ones(2)}))

    assert outcome(weft) == outcome(torch)


def test_parts_of_torchscript_cannot_be_made():
    with pytest.raises(NotImplementedError, match="TorchScript"):
        weft._C.Graph()
    assert "aten::relu" in weft._C._dispatch_get_all_op_names()
    assert weft._C._get_cpu_capability() == weft.backends.cpu.get_cpu_capability()


def test_programs_may_log_and_ask_whether_they_are_traced():
    for module in (weft, torch):
        assert module._C._log_api_usage_once("mylib.thing") is None
        assert module._C._get_tracing_state() is None
