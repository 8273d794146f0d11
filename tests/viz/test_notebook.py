import pytest
from IPython.core.interactiveshell import InteractiveShell

import weft as torch
from weft.core.tensor import Tensor


@pytest.fixture
def shell():
    found = InteractiveShell()
    found.run_line_magic("load_ext", "weft")
    yield found
    found.run_line_magic("unload_ext", "weft")
    assert not hasattr(Tensor, "_repr_html_")


def shown(shell, value):
    data, _ = shell.display_formatter.format(value)
    return data


def test_tensors_are_tables(shell):
    data = shown(shell, torch.tensor([[1.5, 2.0], [3.0, 4.0]], requires_grad=True))
    assert data["text/plain"].startswith("tensor([[1.5000, 2.0000]")
    assert "(2, 2) · float32 · cpu · requires grad" in data["text/html"]
    assert "<tr><th>0</th><td>1.5</td><td>2.</td></tr>" in data["text/html"]
    assert "<td>1</td><td>2</td>" in shown(shell, torch.tensor([1, 2]))["text/html"]
    assert "MulBackward0" in shown(shell, torch.ones(2, requires_grad=True) * 2)["text/html"]


def test_large_tensors_are_cut(shell):
    text = shown(shell, torch.arange(10**6).reshape(1000, 1000))["text/html"]
    assert text.count("<tr>") == 12
    assert "<td>999999</td>" in text
    assert "<td>…</td>" in text


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, 2, 2),
        lambda: torch.tensor(3),
        lambda: torch.zeros(0, 3),
        lambda: torch.eye(2).to_sparse(),
        lambda: torch.ones(2, device="meta"),
    ],
)
def test_other_tensors_are_text(shell, make):
    text = shown(shell, make())["text/html"]
    assert "<pre>" in text
    assert "<table" not in text


def test_pictures(shell):
    data = shown(shell, torch.viz.heat_map(torch.eye(2)))
    assert data["image/svg+xml"].startswith("<svg")


def test_without_the_extension_tensors_are_as_in_pytorch():
    assert not hasattr(torch.ones(1), "_repr_html_")
    assert list(InteractiveShell().display_formatter.format(torch.ones(1))[0]) == ["text/plain"]
