"""Files of models, names inside of them, and what else `torch.onnx` offers besides `export`."""

import onnx
import pytest
from onnx_checking import Function

import weft
from weft import nn
from weft.export import Dim


def test_large_tensors_go_into_a_file_beside_the_model(tmp_path):
    path, x = tmp_path / "model.onnx", weft.randn(2, 40)
    model = nn.Linear(40, 40)
    weft.onnx.export(model, (x,), path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    weights = {each.name: onnx.numpy_helper.to_array(each) for each in onnx.load(path).graph.initializer}
    assert weft.equal(weft.from_numpy(weights["weight"].copy()), model.weight.detach())
    weft.onnx.export(model, (x,), tmp_path / "whole.onnx", external_data=False)
    assert not (tmp_path / "whole.onnx.data").exists()


def test_weights_values_and_axes():
    program = weft.onnx.export(nn.Linear(3, 3), (weft.ones(2, 3),), dynamic_shapes=({0: Dim("n")},))
    program.apply_weights({"weight": weft.eye(3) * 2, "bias": weft.ones(3)})
    (result,) = program(weft.ones(4, 3))
    assert result.tolist() == [[3.0] * 3] * 4 == program.call_reference(weft.ones(4, 3))[0].tolist()
    name = next(node.output[0] for node in program.model_proto.graph.node if node.op_type == "MatMul")
    assert program.compute_values([name], (weft.ones(1, 3),))[0].tolist() == [[2.0] * 3]
    program.rename_axes({"n": "batch"})
    assert program.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_operators_that_do_nothing_are_left_out():
    program = weft.onnx.export(
        nn.Sequential(nn.Identity(), nn.Dropout(), nn.ReLU(), nn.Dropout()), (weft.ones(2),)
    )
    assert [node.op_type for node in program.model_proto.graph.node] == ["Relu"]
    same = weft.onnx.export(Function(lambda x: (x, x + 0, x.clone())), (weft.ones(2),))
    assert [each.tolist() for each in same(weft.ones(2))] == [[1.0, 1.0]] * 3


def test_operators_of_other_sets():
    def function(x):
        y = weft.onnx.ops.symbolic(
            "custom::Double", (x,), {"times": 2}, dtype=x.dtype, shape=x.shape, version=3
        )
        return weft.onnx.ops.symbolic_multi_out(
            "ai.onnx::Split", (y,), {"num_outputs": 2}, dtypes=[1, 1], shapes=[[1], [1]]
        )

    model = weft.onnx.export(Function(function), (weft.ones(2),)).model_proto
    assert [(node.domain, node.op_type) for node in model.graph.node] == [("custom", "Double"), ("", "Split")]
    assert {each.domain: each.version for each in model.opset_import}["custom"] == 3
    with pytest.raises(ValueError, match="domain::Operator"):
        weft.onnx.ops.symbolic("Double", (), dtype=weft.float32, shape=())


def test_an_observer_infers_dynamic_dimensions():
    class Model(nn.Module):
        def forward(self, x, mask=None, scale=None):
            return x * mask * (1 if scale is None else scale)

    model, observer = Model(), weft.onnx.InputObserver()
    with observer(model):
        model(weft.ones(2, 3), mask=weft.ones(2, 3))
        model(weft.ones(2, 5), mask=weft.ones(2, 5))
    assert "forward" not in vars(model) and observer.num_obs() == 2
    shapes = observer.infer_dynamic_shapes(set_batch_dimension_for={"x", 0})
    assert {name: sorted(dims) for name, dims in shapes.items()} == {"x": [0, 1], "mask": [1]}
    args, kwargs = observer.infer_arguments(as_args_kwargs=True)
    assert args[0].shape == (2, 5)
    program = weft.onnx.export(model, args, kwargs=kwargs, dynamic_shapes=observer.infer_dynamic_shapes())
    assert all(each["SUCCESS"] for each in observer.check_discrepancies(program))
    with pytest.raises(RuntimeError, match="No inputs"):
        weft.onnx.InputObserver().infer_arguments()


def test_a_module_that_knows_how_it_is_exported():
    class Doubled(weft.onnx.ExportableModule):
        def forward(self, x):
            return x * 2

        def example_arguments(self):
            return (weft.ones(3),), None

        def dynamic_shapes(self):
            return ({0: Dim("n")},)

        def output_names(self):
            return ["doubled"]

    program = Doubled().to_onnx()
    assert program(weft.ones(5))[0].tolist() == [2.0] * 5
    assert program.model_proto.graph.output[0].name == "doubled"
