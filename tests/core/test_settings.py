"""Environment variables with values that weft does not know."""

import pytest


@pytest.mark.parametrize(
    "name, message",
    [
        ("WEFT_DEFER", "WEFT_DEFER must be the least number of elements of deferred results, not 'lots'"),
        ("WEFT_FENCE", "WEFT_FENCE must be 'after', 'before' or 'either', not 'lots'"),
        ("WEFT_CALLS", "WEFT_CALLS must be 'python' or 'native', not 'lots'"),
    ],
)
def test_a_wrong_value_is_one_line(run, name, message):
    done = run("-c", "import weft", **{name: "lots"})
    assert (done.returncode, done.stderr) == (1, f"ValueError: {message}\n")
    program = "try:\n    import weft\nexcept ValueError as error:\n    print(error)\n1 / 0"
    done = run("-c", program, **{name: "lots"})
    assert done.stdout == f"{message}\n" and done.stderr.startswith("Traceback")
    assert "weft" not in done.stderr
