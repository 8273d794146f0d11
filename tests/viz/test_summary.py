import pytest
from picture_texts import texts

import weft as torch
from weft import nn


def test_rows():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    shown = texts(torch.viz.summary(model, torch.ones(3, 4)))
    assert shown[:2] == ["Sequential", "58 parameters, 232 bytes, 288 FLOP"]
    assert shown[5:13] == ["Sequential()", "(3, 2)", "58", "288", *_linear()]
    assert "1: ReLU()" in shown


def _linear():
    return ["0: Linear(in_features=4, out_features=8, bias…", "(3, 8)", "40", "192"]


def test_without_inputs_there_are_no_shapes():
    shown = texts(torch.viz.summary(nn.Linear(4, 8)))
    assert shown[1] == "40 parameters, 160 bytes"
    assert "(3, 8)" not in shown


def test_large_models_show_fewer_levels():
    model = nn.Transformer(8, 2, 6, 6, 16, batch_first=True)
    picture = torch.viz.summary(model)
    assert any(" inside" in each for each in texts(picture))
    assert picture.height < 1000
    flat = nn.Sequential(*[nn.ReLU() for _ in range(300)])
    shown = texts(torch.viz.summary(flat))
    assert shown[-1] == "… 261 more modules"


def test_results_that_are_tuples_and_dictionaries():
    lstm = texts(torch.viz.summary(nn.LSTM(4, 5), torch.ones(2, 3, 4)))
    assert "(2, 3, 5) + 2" in lstm


def test_on_meta_a_model_takes_no_memory():
    model = nn.Linear(10**6, 10**6, device="meta")
    shown = texts(torch.viz.summary(model, torch.ones(2, 10**6, device="meta")))
    assert shown[1] == "1 T parameters, 4 TB, 4 T FLOP"


def test_hooks_are_removed_if_the_call_fails():
    model = nn.Linear(4, 8)
    with pytest.raises(RuntimeError):
        torch.viz.summary(model, torch.ones(3, 5))
    assert not model._forward_hooks


def test_mistakes():
    with pytest.raises(TypeError, match="a module of torch.nn, but was given Tensor"):
        torch.viz.summary(torch.ones(2))
    with pytest.raises(TypeError, match=r"example tensors: for sizes, give torch.ones\(\[2, 3\]\)"):
        torch.viz.summary(nn.Linear(3, 4), (2, 3))
