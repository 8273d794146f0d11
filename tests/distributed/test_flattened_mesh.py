"""Flattened dimensions of a mesh of 8 ranks, as PyTorch 2.13 has them in a fake group of rank 3."""

import pytest

import weft as torch
from weft.distributed.device_mesh import DeviceMesh, init_device_mesh


@pytest.fixture(autouse=True)
def fake_group():
    torch.distributed.init_process_group("fake", rank=3, world_size=8)
    yield
    torch.distributed.destroy_process_group()


@pytest.fixture
def mesh():
    found = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("dp", "cp", "tp"))
    found["dp", "cp"]._flatten()
    found["cp", "tp"]._flatten("model")
    return found


def test_flattened_dimensions_are_parts_of_other_meshes(mesh):
    found = mesh["dp_cp", "tp"]
    assert repr(found) == "DeviceMesh((dp_cp=4, tp=2), 'cpu', stride=(2, 1))"
    assert found.mesh.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert found.get_coordinate() == (1, 1)
    assert found.get_group("dp_cp") is mesh["dp_cp"].get_group() is mesh.get_group("dp_cp")
    assert found["dp_cp"].mesh.tolist() == [1, 3, 5, 7]
    found = mesh["dp", "model"]
    assert found.mesh.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert found._flatten().mesh.tolist() == list(range(8))
    assert repr(mesh["dp_model"]) == "DeviceMesh((dp_model=8), 'cpu', stride=(1,))"


def test_a_flattened_mesh_is_made_once(mesh):
    assert mesh["cp", "tp"]._flatten("model") is mesh["model"]
    assert mesh["dp"]._flatten() == mesh["dp"]
    with pytest.raises(ValueError, match="model has been created before"):
        mesh["dp", "tp"]._flatten("model")
    with pytest.raises(ValueError, match="dp already exists"):
        mesh._flatten("dp")
    assert mesh["dp",].shape == (2,)


@pytest.mark.parametrize("names", [("cp", "dp"), ("tp", "dp_cp"), ("model", "dp")])
def test_dimensions_keep_their_order(mesh, names):
    with pytest.raises(KeyError, match="ascending order"):
        mesh[names]


@pytest.mark.parametrize("names", [("dp_cp", "model"), ("dp", "dp")])
def test_dimensions_must_not_overlap(mesh, names):
    with pytest.raises(RuntimeError, match="overlapping"):
        mesh[names]


def test_only_the_root_has_flattened_names(mesh):
    with pytest.raises(KeyError, match=r"Valid mesh_dim_names are \['dp', 'cp'\]"):
        mesh["dp", "cp"]["dp_cp"]


def test_groups_that_are_not_there():
    with pytest.raises(RuntimeError, match="not initialized"):
        DeviceMesh("cpu", [[0, 1], [2, 3]], _init_backend=False).get_group(0)
    with pytest.raises(IndexError, match=r"rank 3 is not in DeviceMesh\(\(2,\), 'cpu', stride=\(1,\)\)"):
        DeviceMesh("cpu", [0, 1]).get_local_rank()


def test_meshes_of_groups_say_what_does_not_fit(mesh):
    world = torch.distributed.group.WORLD
    assert DeviceMesh.from_group(world, "cpu").mesh.tolist() == list(range(8))
    with pytest.raises(ValueError, match="Invalid mesh"):
        DeviceMesh.from_group(world, "cpu", [[0, 1], [2, 3]])
    with pytest.raises(ValueError, match="Must pass mesh if"):
        DeviceMesh.from_group(mesh.get_all_groups(), "cpu")
    with pytest.raises(ValueError, match="Must pass mesh_dim_names if"):
        DeviceMesh.from_group(mesh.get_all_groups(), "cpu", mesh.mesh)
    with pytest.raises(ValueError, match="at least one"):
        DeviceMesh.from_group([], "cpu")
