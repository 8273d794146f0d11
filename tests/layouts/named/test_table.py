"""Each public function has a rule for the names of its results, or is listed as one whose results have none."""

import pytest

import weft
from weft.core.layout_calls import canonical
from weft.core.registry import FUNCTIONS
from weft.families.calls import elementwise_names
from weft.layouts.named.rules import NAMED
from weft.layouts.named.table import (
    CONSTRUCTORS,
    OTHER_LAYOUTS,
    PLAIN_RESULTS,
    QUESTIONS,
    _known_as,
    _of_operands,
    _of_results,
    rules_of,
)

ALL = sorted({canonical(each) for each in (*FUNCTIONS, *vars(weft.Tensor)) if not each.startswith("__")})

WITHOUT_NAMES = PLAIN_RESULTS | CONSTRUCTORS | OTHER_LAYOUTS | QUESTIONS


def test_every_public_function_has_a_rule():
    assert len(ALL) > 1200
    missing = [name for name in ALL if rules_of(name) is None and name not in NAMED.functions]
    assert missing == [], "name each in a list of weft/layouts/named/table.py"


def test_the_table_names_public_functions_once():
    known = {each for name in (*ALL, *(f"{name}_" for name in ALL)) for each in (name, *_known_as(name))}
    assert sorted(name for name in (*_of_operands, *_of_results, *WITHOUT_NAMES) if name not in known) == []
    assert _of_operands.keys().isdisjoint(_of_results)
    assert WITHOUT_NAMES.isdisjoint(_of_operands.keys() | _of_results.keys())
    assert {"add", "exp", "lt"} <= elementwise_names


@pytest.mark.parametrize("name", sorted(elementwise_names))
def test_forms_of_elementwise_functions_have_the_rule_of_the_function(name):
    assert rules_of(name) == rules_of(f"{name}_") != (None, None)
