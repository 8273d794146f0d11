"""Tables of numbers as text."""

import pytest

import weft
from weft.io import load_csv

TEXT = "x,y,z\n1,2.5,-3\n\n4,nan,1e3\n"


def written(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_rows_and_columns(tmp_path):
    path = written(tmp_path, TEXT)
    table = load_csv(path, skip_rows=1)
    assert table.dtype is weft.float32 and table.shape == (2, 3)
    assert str(table.tolist()) == "[[1.0, 2.5, -3.0], [4.0, nan, 1000.0]]"
    assert load_csv(path, skip_rows=1, columns=[2, 0]).tolist() == [[-3, 1], [1000, 4]]
    assert load_csv(path, skip_rows=1, columns=[0], dtype=weft.int64).tolist() == [[1], [4]]


@pytest.mark.parametrize(
    "content, options, expected",
    [
        ("1;2\n3;4", {"delimiter": ";"}, [[1, 2], [3, 4]]),
        ("1\t2\r\n3\t4\r\n", {"delimiter": "\t"}, [[1, 2], [3, 4]]),
        ("\ufeff1,2\n", {}, [[1, 2]]),
        ('"1","2"\n', {}, [[1, 2]]),
        ("5", {}, [[5]]),
    ],
)
def test_forms_of_text(tmp_path, content, options, expected):
    assert load_csv(written(tmp_path, content), **options).tolist() == expected


@pytest.mark.parametrize("content", ["", "x,y\n"])
def test_no_rows(tmp_path, content, recwarn):
    assert load_csv(written(tmp_path, content), skip_rows=1).shape[0] == 0
    assert not recwarn


@pytest.mark.parametrize(
    "dtype", [weft.bfloat16, weft.float16, weft.float8_e5m2, weft.float64, weft.int8, weft.complex64]
)
def test_dtypes(tmp_path, dtype):
    table = load_csv(written(tmp_path, "1,2\n"), dtype=dtype)
    assert table.dtype is dtype and table.to(weft.complex64).tolist() == [[1, 2]]


def test_integers_keep_all_digits(tmp_path):
    path = written(tmp_path, f"{2**53 + 1},{2**63 - 1}\n")
    assert load_csv(path, dtype=weft.int64).tolist() == [[2**53 + 1, 2**63 - 1]]


@pytest.mark.parametrize(
    "content, words", [("1,a\n", "row 0, column 2"), ("1,2\n3\n", "number of columns"), (b"\xff\n", "utf-8")]
)
def test_what_is_no_table(tmp_path, content, words):
    with pytest.raises(RuntimeError, match=words):
        load_csv(written(tmp_path, content))
    with pytest.raises(FileNotFoundError):
        load_csv(tmp_path / "none")
