import pytest
from one_rank import groups, same

PROGRAMS = {
    "shape": lambda mesh: (mesh.shape, mesh.ndim, mesh.size(), mesh.size(0), mesh.mesh, mesh.device_type),
    "place": lambda mesh: (
        mesh.get_rank(),
        mesh.get_coordinate(),
        mesh.get_local_rank("dp"),
        mesh.get_local_rank(0),
    ),
    "names": lambda mesh: mesh.mesh_dim_names,
    "part": lambda mesh: (
        mesh["dp"],
        mesh["dp"].shape,
        mesh["dp"].mesh,
        mesh["tp", "dp"],
        mesh["dp", "tp"] is mesh,
    ),
    "no part": lambda mesh: mesh["x"],
    "no dimension": lambda mesh: mesh.get_group(),
    "no rank": lambda mesh: mesh.get_local_rank(),
    "no group": lambda mesh: mesh.get_group("zz"),
    "no number": lambda mesh: mesh.get_group(5),
    "groups": lambda mesh: (
        mesh.get_group("dp").size(),
        len(mesh.get_all_groups()),
        mesh["dp"].get_group().rank(),
    ),
    "flat": lambda mesh: (mesh._flatten("all"), mesh["all"], mesh["dp"]._get_root_mesh()),
    "unflat": lambda mesh: mesh["dp"]._unflatten(0, (1, 1), ("x", "y")),
    "joined": lambda mesh: type(mesh)._concatenate([mesh["dp"], mesh["tp"]]),
}


@pytest.fixture(scope="module", autouse=True)
def one_rank():
    with groups():
        yield


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_named_mesh(program):
    same(
        lambda library: program(
            library.distributed.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
        )
    )


def test_mesh_without_names():
    same(lambda library: library.distributed.init_device_mesh("cpu", (1,)))
    same(lambda library: library.distributed.init_device_mesh("cpu", (1,))["dp"])
    same(lambda library: library.distributed.init_device_mesh("cpu", (1,)).get_group().size())
    same(
        lambda library: (
            library.distributed.init_device_mesh("cpu", (1,))
            == library.distributed.init_device_mesh("cpu", (1,)),
            library.distributed.init_device_mesh("cpu", (1,))
            == library.distributed.init_device_mesh("cpu", (1, 1)),
        )
    )


def test_wrong_meshes():
    for shape, names in (((2,), None), ((1,), ("a", "b")), ((1, 1), ("a", "a")), ((-1,), None)):
        same(
            lambda library, shape=shape, names=names: library.distributed.init_device_mesh(
                "cpu", shape, mesh_dim_names=names
            )
        )
    same(lambda library: library.distributed.init_device_mesh("cpu:0", (1,)))
    same(lambda library: library.distributed.DeviceMesh("cpu", [0, 1]))


def test_mesh_of_groups():
    def program(library):
        dist = library.distributed
        made = [dist.new_group(), dist.new_group()]
        mesh = dist.DeviceMesh.from_group(made, "cpu", library.tensor([[0]]), mesh_dim_names=("a", "b"))
        with mesh as entered:
            current = dist.device_mesh._mesh_resources.get_current_mesh()
        return mesh, current is entered is mesh, mesh.get_group("b") is made[1]

    same(program)


def test_pickled_parts_know_where_they_are(run):
    """Parts and flattened dimensions of a mesh, on rank 5 of 12, whose groups are not made."""
    code = """
import pickle
import weft as torch
torch.distributed.init_process_group("fake", rank=5, world_size=12)
mesh = torch.distributed.init_device_mesh("cpu", (2, 3, 2), mesh_dim_names=("a", "b", "c"))
flat = mesh["a", "b"]._flatten("ab")
for each in (mesh, mesh["b"], mesh["a", "c"], flat, mesh["b", "c"]._flatten("bc")):
    again = pickle.loads(pickle.dumps(each))
    assert again == each and again.get_coordinate() == each.get_coordinate() and str(again) == str(each), (again, each)
    assert again._family.tolist() == each._family.tolist() and again._places == each._places
again = pickle.loads(pickle.dumps(mesh))
assert again["ab", "c"] == mesh["ab", "c"] and again["a"].get_local_rank() == mesh["a"].get_local_rank() == 0
print("done")
"""
    assert run("-c", code).stdout == "done\n"
