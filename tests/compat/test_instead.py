import importlib
import re

import pytest

import weft
from weft.compat.instead import _ADVICE, _ELSEWHERE, instead

CASES = [
    *_ADVICE,
    *(
        (module, name)
        for module in _ELSEWHERE
        for names in _ELSEWHERE[module].values()
        for name in names.split()
    ),
]


@pytest.mark.parametrize("module, name", CASES)
def test_the_name_is_absent_and_what_the_message_names_is_there(module, name):
    found = importlib.import_module(f"weft.{module}".rstrip("."))
    try:
        value = getattr(found, name)
    except AttributeError as error:
        message = str(error)
    else:
        raise AssertionError(f"{found.__name__}.{name} is {value}")
    assert f"weft does not have it; {instead(found.__name__, name)}" in message
    for path in re.findall(r"weft((?:\.\w+)+)", message.partition("; ")[2]):
        value = weft
        for part in path.split(".")[1:]:
            value = getattr(value, part)


def test_names_under_weft_run(run):
    code = "import torch\nfor call in (lambda: torch.nn.relu, lambda: torch.torchvision):\n try: call()\n except AttributeError as e: print(e)"
    done = run("-m", "weft", "run", "-c", code)
    assert "use torch.nn.functional.relu" in done.stdout
    assert "torchvision is a package of its own" in done.stdout
