"""The pages of the reference on the documentation site (website/reference.py)."""

import importlib.util
import re
from pathlib import Path

import pytest

WEBSITE = Path(__file__).resolve().parents[1] / "website"


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("website_reference", WEBSITE / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(reference):
    return {name: text for name, _, text in reference.pages()}


@pytest.mark.parametrize(
    "page, names",
    [
        ("torch", "torch.add torch.manual_seed torch.save torch.no_grad"),
        ("tensor", "Tensor.add_ Tensor.backward Tensor.grad"),
        ("nn", "torch.nn.Linear torch.nn.Module"),
        ("functional", "torch.nn.functional.conv2d"),
        ("autograd", "torch.autograd.grad torch.autograd.Function"),
        ("distributed", "torch.distributed.all_reduce"),
        ("optim", "torch.optim.Adam"),
        ("linalg", "torch.linalg.svd"),
        ("viz", "weft.viz.storage"),
    ],
)
def test_names_have_sections(pages, page, names):
    headings = set(re.findall(r"^## `(.*)`$", pages[page], re.MULTILINE))
    assert set(names.split()) <= headings


def test_no_page_has_names_that_a_module_only_imports(pages):
    for name, text in pages.items():
        assert not set(re.findall(r"^## `(.*)`$", text, re.MULTILINE)) & {
            f"torch.{name}.Any",
            f"torch.{name}.Callable",
        }


def test_every_fence_ends(pages):
    for name, text in pages.items():
        assert len(re.findall("^```", text, re.MULTILINE)) % 2 == 0, name


def test_a_docstring(reference):
    docstring = "Add.\n\nArgs:\n    x: A tensor,\n        or a number.\n    *others: More.\n\nReturns: The sum.\n\n>>> 1 + 1\n2"
    assert reference.markdown(docstring) == (
        "Add.\n\n**Args**\n\n- `x`: A tensor, or a number.\n- `*others`: More.\n\n**Returns**: The sum.\n\n```pycon\n>>> 1 + 1\n2\n```\n"
    )


def test_a_long_signature_has_a_line_for_each_parameter(reference):
    def function(
        first: "tuple[int, int]" = (1, 2),
        *,
        second: str = "a, b",
        third: "dict[str, int] | None" = None,
        **rest,
    ) -> "int":
        pass

    lines = reference._signature("torch.function", function).splitlines()
    assert lines[:2] == ["function(", "    first: tuple[int, int] = (1, 2),"]
    assert lines[-2:] == ["    **rest,", ") -> int"]


def test_pages_load_nothing_from_elsewhere():
    settings = (WEBSITE / "mkdocs.yml").read_text()
    assert "font: false" in settings
    assert not re.search(r"https?://", settings)
