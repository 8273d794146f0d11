"""Every example prints under `weft run` what it prints under PyTorch, where PyTorch can run it."""

import importlib.util
import re
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
WITHOUT_TORCH = {
    "named_images": (
        "stored in another order, the same: True",
        "mean of each column: ('column',) (6,)",
        "  image  row   column",
    ),
    "ragged_sentences": ("new sentences: 500 of 500 right", "padding and masks give the same scores: True"),
}


def without_numbers(output):
    """The output without numbers, the widths that follow from them, and the unit of times.

    For tables of measured times, and for long training, where a last bit in the first step is a digit in the last.
    """
    return re.sub(r"[\d.]+|[-\s]+|(micro|milli)seconds \([um]s\)", " ", output)


@pytest.mark.parametrize("stem", WITHOUT_TORCH)
def test_prints_what_it_shows(run_weft, stem):
    got = run_weft("run", next(path for path in EXAMPLES if path.stem == stem))
    assert (got.returncode, got.stderr) == (0, "")
    assert set(WITHOUT_TORCH[stem]) <= set(got.stdout.splitlines())


@pytest.mark.parametrize(
    "example",
    [path for path in EXAMPLES if path.stem not in (*WITHOUT_TORCH, "train_gpt")],
    ids=lambda path: path.stem,
)
def test_same_output_as_under_torch(run, run_weft, tmp_path, example):
    if example.stem == "photo_to_grey" and not importlib.util.find_spec("sklearn"):
        pytest.skip("scikit-learn, which brings the photograph, is not installed")
    if example.stem == "train_regression":
        pytest.importorskip("matplotlib")
    expected = run(example)
    pictures = {path: path.read_bytes() for path in tmp_path.glob("pictures/*")}
    got = run_weft("run", example)
    assert expected.returncode == 0, expected.stderr
    assert (got.returncode, got.stderr) == (0, "")
    if "benchmark" in example.stem or "digits" in example.stem:
        assert without_numbers(got.stdout) == without_numbers(expected.stdout)
    else:
        assert got.stdout == expected.stdout
    for path, picture in pictures.items():
        assert_same_picture(path.read_bytes(), picture)


def assert_same_picture(got, expected):
    """Equal but for one level, as sums in another order may round to a neighbour."""
    from io import BytesIO

    import numpy
    from PIL import Image

    got, expected = (numpy.asarray(Image.open(BytesIO(png)), dtype=int) for png in (got, expected))
    assert got.shape == expected.shape
    assert abs(got - expected).max() <= 1
    assert (got != expected).mean() < 1e-3


def test_one_process_several_and_pytorch_train_the_same_gpt(run, run_weft):
    example = next(path for path in EXAMPLES if path.stem == "train_gpt")
    runs = [
        run(example, OMP_NUM_THREADS="1"),
        run_weft("run", example),
        run_weft("torchrun", "--standalone", "--nproc-per-node", "2", example),
    ]
    losses = []
    for done in runs:
        assert (done.returncode, done.stderr) == (0, "")
        losses.append([float(each) for each in re.findall(r"loss (\S+)", done.stdout)])
        sentences = done.stdout.split("\n", 6)[6].splitlines()[1:-1]
        assert sentences and all(re.fullmatch(r"\w+ \w+ \w+ \w+ \w+ \w+\.", each) for each in sentences)
    assert losses[0][0] > 3 and losses[0][-1] < 0.6
    for others in losses[1:]:
        assert others == pytest.approx(losses[0], abs=0.02)
