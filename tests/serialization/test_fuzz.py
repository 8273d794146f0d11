"""Damaged files, some thousand of them; `python -m tests.serialization.fuzz` loads as many as it is told."""

import io
import pickle

from hypothesis import given, settings
from hypothesis import strategies as st
from serialization.fuzz import _INSERTS, DOCUMENTED, tensors_in

import weft


def test_mutants_of_good_files(run):
    # Machine code of calls is put into its places before the first file is read, because this reads the kernel cache.
    done = run("-m", "tests.serialization.fuzz", "--mutants", 4000, "--seed", 7, WEFT_CALLS="native")
    assert done.returncode == 0 and "4000 mutants" in done.stdout, done.stderr


CODES = [getattr(pickle, name) for name in pickle.__all__ if isinstance(getattr(pickle, name), bytes)]


@given(
    st.lists(st.one_of(st.sampled_from(CODES), st.sampled_from(_INSERTS), st.binary(max_size=3)), max_size=30)
)
@settings(max_examples=1000)
def test_pickles_of_arbitrary_instructions(parts):
    try:
        list(tensors_in(weft.load(io.BytesIO(b"\x80\x02" + b"".join(parts) + b"."))))
    except DOCUMENTED:
        pass


@given(st.binary(max_size=200), st.sampled_from([b"", b"PK\x03\x04", b"\x80\x02"]))
@settings(max_examples=500)
def test_arbitrary_bytes(content, head):
    try:
        weft.load(io.BytesIO(head + content))
    except DOCUMENTED:
        pass
