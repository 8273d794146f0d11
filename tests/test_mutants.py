"""The places of tests/mutations fit the code: each text is there once, and its change is a program."""

import ast
from pathlib import Path

import pytest
from mutants import ROOT, Mutant, mutants

MUTANTS = mutants()


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in MUTANTS}))
def test_each_place_occurs_once_and_can_be_changed(file):
    source = (ROOT / "weft" / file).read_text()
    for mutant in MUTANTS:
        if mutant.file == file:
            changed = mutant.changed(source)
            assert changed != source
            ast.parse(changed)


def test_tests_of_places_are_there():
    for mutant in MUTANTS:
        assert mutant.tests, mutant.name
        for test in mutant.tests:
            path, _, name = test.partition("::")
            assert (ROOT / path).exists(), f"{mutant.name}: there is no {test}"
            assert not name or name.partition("[")[0] in (ROOT / path).read_text(), f"{mutant.name}: {test}"


def test_places_are_in_all_folders():
    folders = {path.name for path in (ROOT / "weft").iterdir() if any(path.glob("*.py"))}
    bare = {"cuda", "accelerator"}  # no more than names that PyTorch has
    assert folders - bare <= {mutant.folder for mutant in MUTANTS}
    assert len(MUTANTS) >= 150
    assert len({(mutant.file, mutant.text, mutant.replacement) for mutant in MUTANTS}) == len(MUTANTS)


def test_a_text_that_is_not_there_any_more_is_named():
    mutant = Mutant("core/spec.py", "no such text", "", ("tests/core/test_spec.py",))
    with pytest.raises(LookupError, match="weft/core/spec.py: this text occurs 0 times.*\nno such text"):
        mutant.changed(Path(ROOT / "weft" / "core" / "spec.py").read_text())
