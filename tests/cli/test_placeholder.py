import glob
import importlib.metadata
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import weft
from weft import cli
from weft.cli import placeholder

NAME = f"torch-{weft.__version__}.dist-info"


def test_a_placeholder_is_a_distribution(tmp_path):
    assert (
        placeholder.add(tmp_path, [])
        == f"Wrote a placeholder for torch {weft.__version__}: {tmp_path / NAME}"
    )
    assert os.listdir(tmp_path) == [NAME]
    (found,) = importlib.metadata.Distribution.discover(name="torch", path=[str(tmp_path)])
    assert found.metadata["Name"] == "torch" and found.version == weft.__version__
    assert "not PyTorch" in found.metadata["Summary"]
    assert found.requires is None
    files = found.files
    assert sorted(file.name for file in files) == ["INSTALLER", "METADATA", "RECORD"]
    assert all(file.locate().exists() for file in files)


def test_adding_and_removing_twice(tmp_path):
    assert placeholder.find(tmp_path) is None
    placeholder.add(tmp_path, [])
    assert placeholder.find(tmp_path) == tmp_path / NAME
    assert "already" in placeholder.add(tmp_path, [])
    assert os.listdir(tmp_path) == [NAME]
    assert placeholder.remove(tmp_path).startswith("Removed")
    assert os.listdir(tmp_path) == []
    assert placeholder.remove(tmp_path).startswith("There is no placeholder")


def test_a_newer_weft_replaces_the_placeholder(tmp_path, monkeypatch):
    monkeypatch.setattr(placeholder, "PYTORCH", "2.1.0+weft")
    placeholder.add(tmp_path, [])
    monkeypatch.undo()
    placeholder.add(tmp_path, [])
    assert os.listdir(tmp_path) == [NAME]


@pytest.mark.parametrize("where", ["in the folder", "elsewhere on the path"])
def test_an_installed_pytorch_is_left_alone(tmp_path, where):
    folder, other = tmp_path / "a", tmp_path / "b"
    folder.mkdir()
    installed = (folder if where == "in the folder" else other) / "torch-2.13.0+cpu.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0+cpu\n")
    (installed / "INSTALLER").write_text("pip\n")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(placeholder.PlaceholderError, match=r"PyTorch 2\.13\.0\+cpu is installed"):
        placeholder.add(folder, [str(other)])
    placeholder.remove(folder)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_package_torch_without_metadata_is_left_alone(tmp_path):
    (tmp_path / "torch").mkdir()
    assert placeholder.add(tmp_path, [str(tmp_path)])  # a folder of data, no package
    placeholder.remove(tmp_path)
    (tmp_path / "torch" / "__init__.py").touch()
    with pytest.raises(placeholder.PlaceholderError, match="without metadata"):
        placeholder.add(tmp_path, [str(tmp_path)])
    assert os.listdir(tmp_path) == ["torch"]


def test_a_folder_that_cannot_be_written(tmp_path):
    with pytest.raises(placeholder.PlaceholderError, match="cannot write to"):
        placeholder.add(tmp_path / "missing", [])


def test_pip_takes_torch_for_installed_and_uninstalls_it(tmp_path):
    venv.create(tmp_path)
    python = tmp_path / ("Scripts" if os.name == "nt" else "bin") / "python"
    (folder,) = {Path(path) for path in glob.glob(str(tmp_path / "[lL]ib/**/site-packages"), recursive=True)}

    def pip(*arguments):
        command = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    placeholder.add(folder, [])
    (folder / "other").mkdir()
    done = pip("install", "--no-index", "--dry-run", "torch>=2.0,==2.13.0")
    assert done.returncode == 0 and "Requirement already satisfied: torch" in done.stdout, done.stderr
    done = pip("uninstall", "--yes", "torch")
    assert done.returncode == 0 and "Successfully uninstalled torch" in done.stdout, done.stderr
    assert os.listdir(folder) == ["other"]


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(placeholder, "site_packages", lambda: tmp_path)
    monkeypatch.setattr(placeholder.sys, "path", [])
    assert cli.main(["placeholder"]) == 0 and "no placeholder" in capsys.readouterr().out
    assert cli.main(["placeholder", "add"]) == 0 and str(tmp_path / NAME) in capsys.readouterr().out
    assert cli.main(["placeholder"]) == 0 and capsys.readouterr().out == f"{tmp_path / NAME}\n"
    assert cli.main(["placeholder", "remove"]) == 0 and "Removed" in capsys.readouterr().out
    assert cli.main(["placeholder", "dissolve"]) == 2 and "'dissolve'" in capsys.readouterr().err
    (tmp_path / "torch.py").touch()
    monkeypatch.setattr(placeholder.sys, "path", [str(tmp_path)])
    monkeypatch.setattr(placeholder, "site_packages", lambda: tmp_path / "missing")
    assert cli.main(["placeholder", "add"]) == 1 and "weft: " in capsys.readouterr().err
