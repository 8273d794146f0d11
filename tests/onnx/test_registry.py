import pytest
import torch
import torch.onnx.symbolic_helper

import weft
import weft.onnx.symbolic_helper


@pytest.mark.parametrize("module", [weft, torch])
def test_libraries_register_how_operators_are_exported(module):
    @module.onnx.symbolic_helper.parse_args("v", "i")
    def export(g, x, k):
        return g.op("Exported", x, k_i=k)

    assert export._arg_descriptors == ("v", "i")
    module.onnx.register_custom_op_symbolic("mylib::op", export, 11)
    module.onnx.unregister_custom_op_symbolic("mylib::op", 11)
    with pytest.raises(module.onnx.OnnxExporterError, match="should start with a letter"):
        module.onnx.register_custom_op_symbolic("op", export, 11)


def test_types_have_onnx_numbers():
    for each in weft.onnx.TensorProtoDataType:
        assert getattr(torch.onnx.TensorProtoDataType, each.name) == each
    assert not weft.onnx.is_in_onnx_export()


def test_the_producer_is_the_version_of_pytorch_that_weft_follows():
    import torch.onnx

    for name in ("producer_name", "producer_version"):
        assert getattr(weft.onnx, name) == getattr(torch.onnx, name)
