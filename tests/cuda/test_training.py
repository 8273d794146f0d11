"""What training programs do around the device: mixed precision, loaders that pin memory, saving and loading."""

import copy
import io
import pickle
import warnings
from collections import namedtuple

import pytest

import weft
from weft import nn
from weft.devices import cuda
from weft.utils.data import DataLoader, TensorDataset
from weft.utils.data._utils.pin_memory import pin_memory

HERE = "cuda"


def test_autocast_is_on_for_the_tensors_of_its_device():
    there, here = weft.ones(2, 2, device=HERE), weft.ones(2, 2)
    with weft.autocast("cuda"):
        assert (
            weft.is_autocast_enabled()
            and weft.is_autocast_enabled("cuda")
            and not weft.is_autocast_enabled("cpu")
        )
        assert (there @ there).dtype is weft.float16 and (here @ here).dtype is weft.float32
        assert (there + there).dtype is weft.float32
        assert nn.functional.mse_loss((there @ there), there).dtype is weft.float32
        with weft.autocast("cpu"):
            assert (there @ there).dtype is weft.float16 and (here @ here).dtype is weft.bfloat16
            with weft.autocast("cuda", enabled=False):
                assert (there @ there).dtype is weft.float32 and (here @ here).dtype is weft.bfloat16
    with weft.autocast("cuda", dtype=weft.bfloat16):
        assert weft.get_autocast_dtype("cuda") is weft.bfloat16 and (there @ there).dtype is weft.bfloat16
    with weft.autocast("cpu"):
        assert (there @ there).dtype is weft.float32
    assert (there @ there).dtype is weft.float32 and weft.get_autocast_gpu_dtype() is weft.float16
    weft.set_autocast_enabled(True)
    try:
        assert (there @ there).dtype is weft.float16
    finally:
        weft.set_autocast_enabled(False)


def test_a_checkpoint_computes_with_the_same_autocast_again():
    weight = weft.ones(3, 3, device=HERE, requires_grad=True)
    found = []

    def step(x):
        found.append(weft.is_autocast_enabled("cuda"))
        return x @ weight

    with weft.autocast("cuda"):
        y = weft.utils.checkpoint.checkpoint(step, weft.ones(2, 3, device=HERE), use_reentrant=False)
    y.float().sum().backward()
    assert found == [True, True] and y.dtype is weft.float16 and weight.grad.tolist() == [[2.0] * 3] * 3


def test_a_scaler_grows_and_skips_steps_that_overflow():
    model = nn.Linear(3, 2).cuda()
    optimizer = weft.optim.SGD(model.parameters(), lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaler = weft.amp.GradScaler("cuda", init_scale=8.0, growth_interval=1)
    before = model.weight.detach().clone()
    with weft.autocast("cuda"):
        loss = model(weft.ones(4, 3, device=HERE)).float().square().mean()
    scaled = scaler.scale(loss)
    assert scaled.item() == loss.item() * 8 and scaled.device.type == HERE
    scaled.backward()
    scaler.step(optimizer), scaler.update()
    assert scaler.get_scale() == 16 and not weft.equal(before, model.weight)
    optimizer.zero_grad()
    before = model.weight.detach().clone()
    scaler.scale(model(weft.ones(4, 3, device=HERE)).sum() * float("inf")).backward()
    scaler.step(optimizer), scaler.update()
    assert scaler.get_scale() == 8 and weft.equal(before, model.weight)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_pins_batches(workers):
    data = TensorDataset(weft.arange(8.0), weft.arange(8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batches = list(DataLoader(data, batch_size=4, pin_memory=True, num_workers=workers))
    assert all(part.is_pinned() for batch in batches for part in batch)
    assert [batch[0].to(HERE, non_blocking=True).sum().item() for batch in batches] == [6, 22]


def test_batches_of_any_shape_are_pinned():
    Pair = namedtuple("Pair", "x y")
    given = {"a": [weft.ones(2), "text"], "b": Pair(weft.ones(1), (weft.zeros(1), 3))}
    pinned = pin_memory(given)
    assert type(pinned["b"]) is Pair and pinned["a"][1] == "text" and pinned["b"].y[1] == 3
    assert pinned["a"][0].is_pinned() and pinned["b"].x.is_pinned() and pinned["b"].y[0].is_pinned()


def saved(value):
    file = io.BytesIO()
    weft.save(value, file)
    file.seek(0)
    return file


def test_loading_to_the_device_and_from_it():
    x = weft.arange(6.0, device=HERE)
    file = saved({"x": x, "part": x[2:], "model": nn.Linear(2, 2).cuda().state_dict()})
    assert b"cuda:0" in file.getvalue()
    for location, expected in (
        (None, "cuda:0"),
        ("cpu", "cpu"),
        ("cuda", "cuda:0"),
        (weft.device("cuda:0"), "cuda:0"),
        ({"cuda:0": "cpu"}, "cpu"),
        (lambda storage, location: storage.cuda() if location == "cuda:0" else storage, "cuda:0"),
    ):
        file.seek(0)
        loaded = weft.load(file, map_location=location)
        assert str(loaded["x"].device) == str(loaded["model"]["weight"].device) == expected
        assert loaded["x"].tolist() == x.tolist()
        assert loaded["part"].untyped_storage().data_ptr() == loaded["x"].untyped_storage().data_ptr()
    assert weft.load(saved(weft.ones(2)), map_location="cuda").device.type == HERE
    missing = weft.cuda.device_count()
    with pytest.raises(
        RuntimeError, match=f"deserialize object on CUDA device {missing} but torch.cuda.device_count"
    ):
        weft.load(saved(x), map_location=f"cuda:{missing}")


def test_pickles_and_copies():
    x = weft.arange(6.0, device=HERE)
    assert pickle.loads(pickle.dumps(x)).device == copy.deepcopy(x).device == x.device
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
    assert copy.deepcopy(nn.Linear(2, 2, device=HERE)).weight.device == x.device
    assert x.share_memory_() is x and x.is_shared()


def test_what_libraries_ask():
    assert weft.backends.cuda.is_built() and not weft.backends.cudnn.is_available()
    assert weft.get_device_module() is weft.cuda
    assert weft.utils.collect_env.get_env_info().is_cuda_available == "True"


def test_what_is_told_of_gpus_of_amd(monkeypatch):
    monkeypatch.setattr(cuda, "hip_version", lambda: "6.4.43484")
    monkeypatch.setattr(weft.device(HERE).backend.runtime, "architecture", "gfx90a:xnack-")
    found = weft.utils.collect_env.get_env_info()
    assert weft.version.hip == found.hip_compiled_version == "6.4.43484"
    assert found.nvidia_gpu_models == f"{weft.cuda.get_device_name()} (gfx90a:xnack-)"


def test_a_module_keeps_its_parameters_when_it_moves():
    """Optimizers and users hold the parameters, so they must stay the same objects."""
    model = nn.Linear(2, 1)
    optimizer = weft.optim.SGD(model.parameters(), lr=0.5)
    weight, before = model.weight, model.weight.tolist()
    model(weft.ones(1, 2)).sum().backward()
    model.to(HERE)
    assert model.weight is weight and weight.is_cuda and weight.grad.is_cuda and weight.requires_grad
    optimizer.zero_grad()
    model(weft.ones(1, 2, device=HERE)).sum().backward()
    optimizer.step()
    assert weft.tensor(before).sub(0.5).allclose(weight.cpu())
    assert model.cpu().weight is weight and weight.device.type == "cpu"
    weight.data = weft.zeros(1, 2, device=HERE)
    assert weight.is_cuda and model.to("meta").weight is not weight
