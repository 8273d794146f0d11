import copy
import pickle

import pytest

import weft as torch

UNKNOWN = [
    torch.nn.LSTM, torch.nn.GRU, torch.nn.BatchNorm2d, torch.nn.Sigmoid, torch.ao.nn.quantized.ReLU6,
    torch.distributions.Normal, torch.distributions.HalfCauchy, torch.distributions.OneHotCategorical,
    torch.distributions.ExpTransform, torch.distributions.StackTransform,
    torch.optim.lr_scheduler.LambdaLR, torch.optim.lr_scheduler.MultiplicativeLR,
]  # fmt: skip


@pytest.mark.parametrize("cls", UNKNOWN, ids=lambda cls: cls.__name__)
def test_errors_name_the_class_that_was_called(cls):
    with pytest.raises(
        TypeError, match=rf"^{cls.__name__}\.__init__\(\) got an unexpected keyword argument 'colour'"
    ):
        cls(colour=1)


def test_errors_about_missing_arguments_count_those_of_the_class():
    with pytest.raises(TypeError, match=r"^LSTM\.__init__\(\) missing 2 required positional arguments"):
        torch.nn.LSTM()
    with pytest.raises(
        TypeError, match=r"^GRU\.__init__\(\) takes from 3 to 11 positional arguments but 13 were given"
    ):
        torch.nn.GRU(*range(12))


def test_classes_of_programs_keep_what_they_inherit():
    class Mine(torch.distributions.Normal):
        pass

    assert Mine.__init__ is torch.distributions.Normal.__init__
    assert Mine(torch.zeros(3), 1.0).expand([2, 3]).batch_shape == (2, 3)
    assert torch.distributions.Laplace(torch.zeros(3), 1.0).expand([2, 3]).batch_shape == (2, 3)

    class Other(torch.distributions.Normal):
        def __init__(self, scale):
            super().__init__(0.0, scale)

    with pytest.raises(NotImplementedError, match="Subclass Other of Normal that defines a custom __init__"):
        Other(1.0).expand([2])


def test_constructors_of_their_own_name_still_call_their_base_class():
    gru = torch.nn.GRU(3, 4, 2, bidirectional=True)
    assert gru.mode == "GRU" and gru.num_layers == 2
    assert pickle.loads(pickle.dumps(torch.nn.LSTM(3, 4, proj_size=2))).proj_size == 2
    assert copy.deepcopy(torch.distributions.ExpTransform(cache_size=1))._cache_size == 1
