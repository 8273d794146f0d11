"""`visualize_sharding` prints PyTorch's tables."""

import pytest
import torch
import torch.distributed.tensor.debug
from torch.testing._internal.distributed.fake_pg import FakeStore

import weft


@pytest.fixture(params=[(4,), (2, 2)])
def meshes(request):
    """A mesh of four processes, of which only the first exists, in both libraries."""
    weft.distributed.init_process_group("fake", rank=0, world_size=4)
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    yield {
        each: each.distributed.device_mesh.init_device_mesh("cpu", request.param) for each in (weft, torch)
    }
    weft.distributed.destroy_process_group()
    torch.distributed.destroy_process_group()


def shown(library, mesh, shape, cuts, capsys, **options):
    module = library.distributed.tensor
    places = [module.Replicate() if cut is None else module.Shard(cut) for cut in cuts[: mesh.ndim]]
    module.debug.visualize_sharding(module.distribute_tensor(library.ones(shape), mesh, places), **options)
    return capsys.readouterr().out


@pytest.mark.parametrize("cuts", [(0, None), (None, 0), (0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("shape", [(5,), (8, 6), (7, 3), (3, 12), (2, 2)])
@pytest.mark.parametrize("colours", [False, True])
def test_tables_of_rich(meshes, shape, cuts, colours, capsys, monkeypatch):
    if len(shape) == 1 and 1 in cuts:
        pytest.skip("a vector has no dim 1")
    if colours:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLORTERM", "truecolor")
    ours, theirs = (shown(each, mesh, shape, cuts, capsys, use_rich=True) for each, mesh in meshes.items())
    assert ours == theirs
    if shape == (8, 6):  # the other tables may have cells that are too small for a text
        assert ("\x1b[" in ours) == colours


TEXT = """\
         Col 0-0
-------  ---------
Row 0-1  cpu:0
Row 2-3  cpu:1
Row 4-4  cpu:2
Row 5-4  cpu:3
"""
NESTED = """\
         Col 0-0
-------  ---------
Row 0-2  cpu:0,1
Row 3-4  cpu:2,3
"""


def test_tables_of_text(meshes, capsys):
    """As PyTorch prints them with the package tabulate."""
    mesh = meshes[weft]
    assert shown(weft, mesh, (5,), (0, None), capsys) == (TEXT if mesh.ndim == 1 else NESTED)


def test_what_has_no_table(meshes, capsys):
    assert shown(weft, meshes[weft], (0, 4), (0, None), capsys) == ""
    with pytest.raises(RuntimeError, match="1D or 2D"):
        shown(weft, meshes[weft], (2, 2, 2), (0, None), capsys)
