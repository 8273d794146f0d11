import hashlib

import pytest
import torch
import torch.hub
import torch.utils.model_zoo

import weft
import weft.hub
import weft.utils.model_zoo


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    for module in (weft.hub, torch.hub):
        monkeypatch.setattr(module, "_hub_dir", None)
    return tmp_path / "home"


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    folder.joinpath("hubconf.py").write_text(
        "import helper\n"
        "dependencies = ['os']\n"
        "def doubled(n, plus=0):\n    'Twice a number.'\n    return helper.FACTOR * n + plus\n"
        "def _hidden():\n    pass\n"
    )
    folder.joinpath("helper.py").write_text("FACTOR = 2\n")
    return folder


@pytest.mark.parametrize("module", [weft.hub, torch.hub])
def test_functions_of_a_local_folder(module, repository):
    assert module.load(str(repository), "doubled", 3, plus=1, source="local") == 7
    with pytest.raises(RuntimeError, match="Cannot find callable tripled in hubconf"):
        module.load(repository, "tripled", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        module.load(repository, "doubled", 3, source="elsewhere")
    repository.joinpath("hubconf.py").write_text("dependencies = ['no_such_package']\ndef f(): pass\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        module.load(repository, "f", source="local")


def test_repositories_that_are_there_are_used_and_others_not_fetched(repository, cache):
    with pytest.raises(NotImplementedError, match="Clone https://github.com/owner/name"):
        weft.hub.load("owner/name:dev", "doubled", 3)
    cache.joinpath("hub").mkdir(parents=True)
    repository.rename(cache / "hub" / "owner_name_dev")
    assert weft.hub.load("owner/name:dev", "doubled", 3, trust_repo=True) == 6
    assert "doubled" in weft.hub.list("owner/name:dev")
    assert weft.hub.help("owner/name:dev", "doubled") == "Twice a number."


@pytest.mark.parametrize("module", [weft, torch])
def test_files_are_fetched_once(module, tmp_path, cache):
    source = tmp_path / "weights.pth"
    module.save({"a": module.ones(2)}, source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    named = source.rename(tmp_path / f"weights-{digest[:8]}.pth")
    read = module.hub.load_state_dict_from_url(named.as_uri(), progress=False, check_hash=True)
    assert read["a"].tolist() == [1, 1]
    named.unlink()
    assert module.hub.load_state_dict_from_url(named.as_uri())["a"].tolist() == [1, 1]
    assert cache.joinpath("hub", "checkpoints", named.name).exists()


@pytest.mark.parametrize("module", [weft.hub, torch.hub])
def test_a_file_with_another_hash_is_not_kept(module, tmp_path):
    source = tmp_path / "file"
    source.write_text("hello")
    with pytest.raises(RuntimeError, match='invalid hash value \\(expected "abc", got "2cf24db.*"\\)'):
        module.download_url_to_file(source.as_uri(), str(tmp_path / "copy"), "abc", progress=False)
    assert sorted(each.name for each in tmp_path.iterdir() if each.is_file()) == ["file"]


def test_folders(monkeypatch, tmp_path):
    assert weft.hub.get_dir() == torch.hub.get_dir()
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert weft.hub.get_dir() == torch.hub.get_dir() == str(tmp_path / "torch" / "hub")
    weft.hub.set_dir("~/elsewhere")
    torch.hub.set_dir("~/elsewhere")
    assert weft.hub.get_dir() == torch.hub.get_dir()


def test_the_older_name():
    assert weft.utils.model_zoo.load_url is weft.hub.load_state_dict_from_url
    assert weft.utils.model_zoo.tqdm is torch.utils.model_zoo.tqdm


def test_scripts_can_import_them(run_weft, tmp_path):
    (tmp_path / "script.py").write_text(
        "import torch\n"
        "from torch.hub import load_state_dict_from_url\n"
        "from torch.utils import data, model_zoo\n"
        "from torch.utils._pytree import tree_map\n"
        "from torch.utils.data.dataloader import default_collate\n"
        "from torch.utils.data._utils.collate import default_collate_fn_map\n"
        "from torch.utils.data.distributed import DistributedSampler\n"
        "print(tree_map(len, ['ab', ('c',)]), load_state_dict_from_url.__name__, torch.hub.load.__name__)\n"
    )
    assert run_weft("run", "script.py").stdout == "[2, (1,)] load_state_dict_from_url load\n"
