"""Wrong arguments, empty inputs and unusual dtypes of the functions of layers: the same results and errors as PyTorch's."""

import warnings

import pytest
import torch

import weft

# Expressions of `torch`, `nn` and `F`, whose values or errors are the same in both libraries.
SAME = [
    "nn.Linear(1, 1).to('cpu', copy=True)", "nn.Linear(1, 1).to(torch.float32, False, True)",
    "F.ctc_loss(torch.rand(0, 0, 4), *[torch.tensor([], dtype=torch.long)] * 3, reduction='none')",
    "F.ctc_loss(torch.rand(3, 0, 4), *[torch.tensor([], dtype=torch.long)] * 3)",
    "nn.MultiMarginLoss(reduction='none')(torch.arange(4.0), torch.tensor([2]))",
    "nn.MultiMarginLoss(reduction='none')(torch.arange(4.0), torch.tensor(2))",
    "nn.MultiMarginLoss(reduction='none')(torch.arange(4.0).view(1, 4), torch.tensor([2]))",
    "nn.MultiMarginLoss()(torch.ones(0), torch.ones(10).long())",
    "nn.MultiLabelMarginLoss()(torch.ones(0), torch.ones(10).long())", "nn.ReflectionPad1d(2)(torch.ones(3))",
    "nn.ReflectionPad1d(2)(torch.ones(3, 3, 4, 4))", "nn.ReplicationPad2d(2)(torch.ones(3, 3, 4, 4, 4))",
    "nn.ReflectionPad3d(2)(torch.ones(3, 3, 3))",
    "nn.Fold((4, 5), (2, 2), dilation=(8, 8))(torch.ones(1, 12, 12))",
    "nn.Fold((4, 5), (2, 2))(torch.ones(1, 12, 13))", "nn.Unfold((2, 3))(torch.ones(1, 2, 2, 2))",
    "nn.Unfold((1, 3), padding=(1, 1), dilation=(1, 2))(torch.ones(1, 2, 2, 2))",
    "F.grid_sample(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 3), align_corners=False)",
    "F.grid_sample(torch.ones(1, 1, 2), torch.ones(1, 1, 1, 3), align_corners=False)",
    "F.grid_sample(torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 1, 2), align_corners=False)",
    "F.grid_sample(torch.ones(1, 1, 2, 2), torch.ones(2, 1, 1, 2), align_corners=False)",
    "F.grid_sample(torch.ones(1, 1, 0, 2), torch.ones(1, 1, 1, 2), align_corners=False)",
    "torch._VF.rnn_tanh_cell(torch.ones(4, 8), torch.ones(4, 16), torch.ones(17, 8), torch.ones(16, 16), None, None)",
    "torch._VF.gru_cell(torch.ones(4, 8), torch.ones(4, 16), torch.ones(48, 8), torch.ones(17, 16), None, None)",
    "torch._VF.lstm_cell(torch.ones(4, 8), [torch.ones(4, 16)] * 2, torch.ones(17, 8), torch.ones(64, 16), None, None)",
    "torch._VF.lstm_cell(torch.ones(4, 8), [torch.ones(4, 16)] * 2, torch.ones(64, 7), torch.ones(64, 16), None, None)",
    "F.pdist(torch.full((2, 2), float('inf')), 0.0)",
    "F.pdist(torch.tensor([[1.0, 2.0], [1.0, 3.0], [float('nan'), 2.0]]), 0.0)",
    "torch.cdist(torch.full((1, 20), float('nan')), torch.zeros(2, 20), 0.0)",
    "torch.cdist(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.0], [3.0, 4.0]]), 0.0)",
    "F.interpolate(torch.ones(1, 1, 4), size=(2.0,))",
    "F.interpolate(torch.ones(1, 1, 4), size=(torch.tensor(2.0),))",
    "F.cosine_similarity(torch.ones(3, dtype=torch.float16), torch.ones(3, dtype=torch.float16), dim=0, eps=9.7e23)",
    "F.cosine_similarity(torch.ones(3), torch.ones(3), dim=0, eps=1e39)",
    "nn.BatchNorm2d(3)(torch.ones(0, 3, 2, 2, dtype=torch.float64)).detach()",
    "nn.InstanceNorm2d(5, track_running_stats=True)(torch.ones(2, 5, 3, 3, dtype=torch.float64)).dtype",
    "torch._softmax(torch.ones(8, 16, device='meta', dtype=torch.half), 1, True).dtype",
    "torch._log_softmax(torch.ones(8, 16, device='meta', dtype=torch.half), 1, True).dtype",
    "torch._softmax(torch.ones(8, 16, dtype=torch.half), 1, True).dtype",
    "nn.ParameterList([nn.Parameter(torch.empty(1, device='meta'))])",
    "nn.TransformerEncoderLayer(4, 2, 16)(torch.ones(0, 10, 4)).shape",
    "nn.TransformerEncoderLayer(4, 2, 16)(torch.ones(10, 0, 4)).shape",
    "[each.shape for each in nn.MultiheadAttention(4, 2)(*[torch.ones(0, 10, 4)] * 3)]",
    "[each.shape for each in nn.MultiheadAttention(4, 2)(*[torch.ones(10, 0, 4)] * 3)]",
    "F.softplus(torch.ones(2), out=torch.empty(2)), F.logsigmoid(torch.ones(2), out=torch.empty(2))",
    "F.softshrink(torch.ones(3), out=torch.empty(2))",
    "F.softshrink(torch.ones(6), out=torch.ones(1, 1).expand(6, 6)[0])",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", SAME)
def test_values_and_errors(expression):
    def outcome(library):
        names = {"torch": library, "nn": library.nn, "F": library.nn.functional}
        try:
            return repr(eval(expression, names))
        except Exception as error:
            return type(error), str(error).splitlines()[0].partition(" (")[0].replace("weft.", "torch.")

    assert outcome(weft) == outcome(torch)


def test_instance_norm_with_statistics_of_another_dtype():
    def run(library, own, dtype):
        norm = library.nn.InstanceNorm1d(2, track_running_stats=True, dtype=getattr(library, own))
        x = library.arange(12.0, dtype=getattr(library, dtype)).reshape(1, 2, 6)
        y = norm(x)
        return y, norm.running_mean, norm.running_var

    for own, dtype in (("float16", "float32"), ("float32", "float64")):
        for ours, theirs in zip(run(weft, own, dtype), run(torch, own, dtype), strict=True):
            assert str(ours.dtype) == str(theirs.dtype)
            torch.testing.assert_close(torch.tensor(ours.tolist()), torch.tensor(theirs.tolist()))


def test_grids_of_one_point():
    def count(library, size, align_corners):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            library.nn.functional.affine_grid(library.ones(1, 2, 3), size, align_corners=align_corners)
        return sum("documentation of affine_grid" in str(each.message) for each in caught)

    for library in (weft, torch):
        assert [count(library, (1, 1, 2, 1), corners) for corners in (False, True)] == [0, 1]
        assert count(library, (1, 1, 2, 2), True) == 0


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_gradients_of_elements_that_are_chosen_often(mode):
    def gradient(library, factor):
        library.manual_seed(0)
        x = library.ones(1, 1, 3, dtype=library.bfloat16, requires_grad=True)
        y = library.nn.functional.interpolate(x, scale_factor=factor, mode=mode)
        y.backward(library.arange(y.numel()).remainder(7).reshape(y.shape).to(library.bfloat16))
        return x.grad.float().tolist()

    for factor in (257.0, 100.5):
        assert gradient(weft, factor) == gradient(torch, factor)


@pytest.mark.parametrize("training", [True, False])
def test_gradients_of_a_batch_norm_over_no_elements(training):
    def gradients(library):
        norm = library.nn.BatchNorm2d(3).train(training)
        x = library.ones(0, 3, 2, 2, requires_grad=True)
        norm(x).sum().backward()
        return repr([x.grad, norm.weight.grad, norm.bias.grad])

    assert gradients(weft) == gradients(torch)
