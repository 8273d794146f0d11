import array
import gc
import sys

import numpy as np
import pytest

from weft.engine.gemm import Tasks
from weft.engine.words import Block, block, block_of


def words_at(made: Block, count: int) -> list[int]:
    assert made.address == np.frombuffer(made.memory, np.int64).ctypes.data
    return np.frombuffer(made.memory, np.int64)[:count].tolist()


@pytest.mark.parametrize("words", [(), (0,), (-1, 2**63 - 1, -(2**63)), tuple(range(-40, 40)), [5, -1]])
def test_a_block_has_the_words_and_their_address(words):
    made = block(words)
    assert type(made) is Block and len(made.memory) == 8 * len(words)
    if words:
        assert words_at(made, len(words)) == list(words)


def test_a_block_of_another_class():
    assert type(block_of(array.array("q", [1, 2]), Tasks)) is Tasks


@pytest.mark.parametrize("words, error", [((2**63,), OverflowError), ((1, "2"), TypeError), (3, TypeError)])
def test_what_is_no_word_is_refused(words, error):
    with pytest.raises(error):
        block(words)


def test_counts_of_references_stay_exact():
    words = (10**12, -1, 7)
    gc.collect()
    before = sys.getrefcount(words), sys.getrefcount(Block)
    for _ in range(1000):
        block(words)
        with pytest.raises(OverflowError):
            block((10**12, 2**64))
    gc.collect()
    assert (sys.getrefcount(words), sys.getrefcount(Block)) == before
