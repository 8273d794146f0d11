"""docs/pictures.md shows what its code draws."""

import page_pictures
import pytest
from picture_texts import texts


# The picture of memory depends on what the process has learned about deferred results.
@pytest.mark.parametrize("name", sorted(set(page_pictures.codes()) - {"memory.svg"}))
def test_pictures_are_those_of_the_code(name, tmp_path):
    drawn = page_pictures.without_times(page_pictures.draw(name, tmp_path))
    kept = page_pictures.without_times((page_pictures.FOLDER / name).read_text())
    assert texts(drawn) == texts(kept)


def test_the_picture_of_memory_has_the_same_storages(tmp_path):
    drawn = texts(page_pictures.draw("memory.svg", tmp_path))
    kept = texts((page_pictures.FOLDER / "memory.svg").read_text())
    assert drawn[:1] == kept[:1]
    assert drawn[-60:] == kept[-60:]
