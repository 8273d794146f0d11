import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

import weft as torch


def test_save(tmp_path):
    picture = torch.viz.storage(torch.arange(3))
    picture.save(tmp_path / "row.svg")
    assert (tmp_path / "row.svg").read_text() == str(picture) == picture._repr_svg_()
    with pytest.raises(
        ValueError, match=r"must end in .svg, but it is '.*row.png'. weft writes SVG; browsers"
    ):
        picture.save(tmp_path / "row.png")


def test_names_are_escaped():
    picture = torch.viz.storage(**{"a<b>&": torch.ones(1)})
    assert ElementTree.fromstring(str(picture)) is not None
    assert "a&lt;b&gt;&amp;" in str(picture)


def test_pictures_have_colours_for_light_and_dark_backgrounds():
    text = str(torch.viz.storage(torch.arange(3)))
    assert text.count("svg.weft .card{") == 2
    assert "@media(prefers-color-scheme:dark)" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_import_of_weft_does_not_load_it():
    code = "import sys, weft; print([name for name in sys.modules if name.startswith('weft.viz')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
