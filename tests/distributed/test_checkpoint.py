import os
import pickle

import pytest
import torch
import torch.distributed.checkpoint
from torch.distributed.checkpoint.format_utils import torch_save_to_dcp

import weft
import weft.distributed.checkpoint as dcp
from weft.distributed.checkpoint._nested_dict import flatten_state_dict, unflatten_state_dict

NESTED = {
    "a": {},
    "b": [],
    "c": (1, 2),
    "d": [[1], [2]],
    "f": [{"x": 1}],
    "g": {"h": {}},
    "i": [{}],
    "m": {1: {2: 3}},
    "p": None,
    "s": {(1, 2): 5},
    "u": {"z": [{"lr": 1, "params": [0, 1], "betas": (0.9, 0.99)}]},
}


def values(library):
    return {
        "model": {"w": library.arange(6.0).reshape(2, 3), "b": library.ones(2, dtype=library.bfloat16)},
        "step": 3,
        "list": [1, library.ones(1)],
        "name": "x",
        "optimizer": {"state": {0: {"exp": library.zeros(2)}}, "param_groups": [{"lr": 0.1, "params": [0]}]},
        "scalar": library.tensor(2.5),
        "part": library.arange(10)[3:5],
    }


def blank(library):
    return {
        "model": {"w": library.zeros(2, 3), "b": library.zeros(2, dtype=library.bfloat16)},
        "step": 0,
        "list": [0, library.zeros(1)],
        "name": "",
        "optimizer": {"state": {0: {"exp": library.ones(2)}}, "param_groups": [{"lr": 0.0, "params": [1]}]},
        "scalar": library.tensor(0.0),
        "part": library.zeros(2, dtype=library.int64),
    }


@pytest.mark.parametrize("single_file", [True, False])
def test_weft_reads_what_pytorch_wrote(tmp_path, single_file):
    writer = torch.distributed.checkpoint.FileSystemWriter(tmp_path, single_file_per_rank=single_file)
    torch.distributed.checkpoint.save(values(torch), storage_writer=writer)
    into = blank(weft)
    dcp.load(into, checkpoint_id=tmp_path)
    assert repr(into) == repr(values(weft))


@pytest.mark.parametrize("single_file", [True, False])
def test_pytorch_reads_what_weft_wrote(tmp_path, single_file):
    saved = dcp.save(
        values(weft), storage_writer=dcp.FileSystemWriter(tmp_path, single_file_per_rank=single_file)
    )
    assert len(os.listdir(tmp_path)) == (2 if single_file else len(saved.state_dict_metadata) + 1)
    into = blank(torch)
    torch.distributed.checkpoint.load(into, checkpoint_id=tmp_path)
    assert repr(into) == repr(values(torch))


def test_metadata_is_pytorchs(tmp_path):
    for library, checkpoint in ((torch, torch.distributed.checkpoint), (weft, dcp)):
        checkpoint.save(values(library), checkpoint_id=tmp_path / library.__name__)
    theirs, ours = (pickle.loads((tmp_path / name / ".metadata").read_bytes()) for name in ("torch", "weft"))
    assert ours.state_dict_metadata == theirs.state_dict_metadata
    assert ours.planner_data == theirs.planner_data
    assert list(ours.storage_data) == list(theirs.storage_data)
    assert ours.version == theirs.version


def test_metadata_may_not_name_other_classes(tmp_path):
    (tmp_path / ".metadata").write_bytes(pickle.dumps(os.system))
    with pytest.raises(dcp.CheckpointException, match="system"):
        dcp.load({"a": 1}, checkpoint_id=tmp_path)


def test_modules_and_optimizers(tmp_path):
    def trained():
        model = weft.nn.Linear(2, 1)
        optimizer = weft.optim.Adam(model.parameters(), 0.1)
        model(weft.ones(1, 2)).sum().backward()
        optimizer.step()
        return {"model": model, "optimizer": optimizer, "epoch": 1}

    saved, into = trained(), trained() | {"epoch": 0}
    dcp.save(saved, checkpoint_id=tmp_path)
    dcp.load(into, checkpoint_id=tmp_path)
    assert into["model"].weight.equal(saved["model"].weight) and into["epoch"] == 1
    assert repr(into["optimizer"].state_dict()) == repr(saved["optimizer"].state_dict())


@pytest.mark.parametrize(
    "into",
    [
        {"missing": 1},
        {"model": {"w": weft.zeros(3, 3)}},
        {"model": {"w": 1}},
    ],
)
def test_what_does_not_fit(tmp_path, into):
    dcp.save(values(weft), checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException):
        dcp.load(into, checkpoint_id=tmp_path)


def test_partial_load_and_conversion(tmp_path):
    dcp.save(values(weft), checkpoint_id=tmp_path)
    into = {"step": 0, "other": 1, "model": {"w": weft.zeros(2, 3, dtype=weft.float64)}}
    dcp.load(into, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert into["step"] == 3 and into["other"] == 1
    assert into["model"]["w"].tolist() == [[0, 1, 2], [3, 4, 5]] and into["model"]["w"].dtype == weft.float64


def test_folders_and_names(tmp_path):
    with pytest.raises(RuntimeError, match="checkpoint_id"):
        dcp.save({"a": 1})
    with pytest.raises(dcp.CheckpointException, match="metadata"):
        dcp.load({"a": 1}, checkpoint_id=tmp_path / "nothing")
    dcp.save({"a": 1}, checkpoint_id=tmp_path)
    dcp.save({"a": 2}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="already exists"):
        dcp.save({"a": 1}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))


def test_saving_in_the_background(tmp_path):
    x = weft.ones(2)
    future = dcp.async_save({"x": x}, checkpoint_id=tmp_path)
    x.zero_()
    future.result()
    into = {"x": weft.zeros(2)}
    dcp.load(into, checkpoint_id=tmp_path)
    assert into["x"].tolist() == [1, 1]


def test_other_file_formats(tmp_path):
    from weft.distributed.checkpoint.format_utils import dcp_to_torch_save
    from weft.distributed.checkpoint.format_utils import torch_save_to_dcp as to_dcp

    torch.save(values(torch), tmp_path / "theirs.pt")
    torch_save_to_dcp(tmp_path / "theirs.pt", tmp_path / "theirs")
    dcp_to_torch_save(tmp_path / "theirs", tmp_path / "ours.pt")
    # Checkpoints have str as keys.
    expected = values(torch)
    expected["optimizer"]["state"] = {"0": expected["optimizer"]["state"][0]}
    assert repr(torch.load(tmp_path / "ours.pt", weights_only=False)) == repr(expected)
    to_dcp(tmp_path / "ours.pt", tmp_path / "back")
    assert (tmp_path / "back" / ".metadata").exists()


def test_nested_names():
    from torch.distributed.checkpoint._nested_dict import flatten_state_dict as flatten

    assert flatten_state_dict(NESTED) == flatten(NESTED)
    flat, paths = flatten_state_dict(NESTED)
    assert unflatten_state_dict(flat, paths)["u"] == NESTED["u"]
    with pytest.raises(ValueError, match="duplicated"):
        flatten_state_dict({"a.b": 1, "a": {"b": 2}})
