import pytest

from weft import cli
from weft.cli import mentions

SOURCE = """
import torch
import torch.nn.functional as F
from torch.optim import Adam, Evam
from torch import *
from . import torch_like


def f(x: torch.Tensor, y: "torch.Missing") -> torch.Tensro:
    F.relu(x).torch.anything()
    return torch.nn.modules.linear.Linear(2, 2), torch.float32.is_complex, F.reluu
"""


def test_what_a_source_mentions(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "a.py").write_text(SOURCE)
    (tmp_path / "package" / "b.py").write_text("import torch\ntorch.Tensro\ntorch.Tensro.of\n")
    (tmp_path / "package" / "broken.py").write_text("def f(:")
    count, absent = mentions.missing(str(tmp_path / "package"))
    assert count > 10
    assert set(absent) == {"torch.optim.Evam", "torch.Tensro", "torch.nn.functional.reluu"}
    assert [place.rpartition("/")[2] for place in absent["torch.Tensro"]] == ["a.py:9", "b.py:2", "b.py:3"]


def test_the_command(tmp_path, capsys):
    (tmp_path / "script.py").write_text(SOURCE)
    assert cli.main(["names", str(tmp_path / "script.py")]) == 0
    out = capsys.readouterr().out
    assert "3 of them" in out.splitlines()[0] and "torch.optim.Evam" in out
    assert cli.main(["names", "no_such_package_here"]) == 1
    assert "no_such_package_here" in capsys.readouterr().err
    assert cli.main(["names"]) == 2


@pytest.mark.parametrize("library", ["einops", "json"])
def test_an_installed_library(library):
    count, absent = mentions.missing(library)
    assert (count > 0) == (library == "einops")
    assert len(absent) < 3
