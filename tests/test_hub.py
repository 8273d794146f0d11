import pytest
import torch
import torch.hub

import weft
import weft.hub
import weft.utils.model_zoo


@pytest.mark.parametrize("name", torch.hub.__all__)
def test_nothing_is_fetched_from_the_network(name):
    with pytest.raises(NotImplementedError, match=f"torch.hub.{name}: .*torch.load"):
        getattr(weft.hub, name)("pytorch/vision")


def test_nor_by_the_older_name():
    with pytest.raises(NotImplementedError, match="torch.utils.model_zoo.load_url"):
        weft.utils.model_zoo.load_url("https://example.com/model.pth")


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
