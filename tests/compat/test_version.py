"""`torch.__version__` compares as a version."""

import operator
import pickle

import pytest
from torch.torch_version import TorchVersion

import weft
import weft.__config__
import weft.torch_version

TEXTS = [
    "2.13.0",
    "2.13.0+cpu",
    "2.13",
    "2.2",
    "2.13.0a0",
    "2.13.0rc1",
    "2.13.0.dev20260101",
    "2.13.1.post1",
    "10.0",
    "parrot",
]


@pytest.mark.parametrize(
    "compare", [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
)
def test_comparisons(compare):
    def answer(mine, its):
        try:
            return compare(mine, its)
        except TypeError:
            return TypeError

    for mine in TEXTS:
        for its in [*TEXTS, (2, 13), (2, 13, 0), (2, 1), "2"]:
            expected = answer(TorchVersion(mine), its)
            assert answer(weft.torch_version.TorchVersion(mine), its) == expected, (mine, its)


def test_the_version_of_weft():
    assert isinstance(weft.__version__, weft.torch_version.TorchVersion)
    assert weft.__version__ >= "2.2"
    assert weft.__version__.startswith("2.13")
    assert pickle.loads(pickle.dumps(weft.__version__)) == weft.__version__


def test_the_configuration_is_text():
    assert "NumPy" in weft.__config__.show()
    assert f"get_num_threads() : {weft.get_num_threads()}" in weft.__config__.parallel_info()
