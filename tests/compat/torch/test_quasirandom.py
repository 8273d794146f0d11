"""Sobol sequences are PyTorch's, bit for bit."""

import pytest
import torch

import weft

BOTH = [torch.quasirandom.SobolEngine, weft.quasirandom.SobolEngine]


@pytest.mark.parametrize("options", [{}, {"scramble": True, "seed": 7}, {"scramble": True}])
@pytest.mark.parametrize("dimension", [1, 2, 5, 300])
def test_points(dimension, options):
    def program(lib):
        lib.manual_seed(3)
        engine = lib.quasirandom.SobolEngine(dimension, **options)
        drawn = [engine.draw(), engine.draw(5), engine.draw(7, dtype=lib.float64)]
        engine.fast_forward(100)
        drawn += [engine.draw(3), engine.reset().draw(2), engine.fast_forward(6).draw_base2(3)]
        out = lib.empty(0)
        drawn += [engine.draw(4, out=out), out, engine.sobolstate, engine.shift, engine.quasi]
        engine.reset().fast_forward(5)
        drawn += [engine.draw(2), lib.rand(2)]
        return [each.tolist() for each in drawn], [str(each.dtype)[6:] for each in drawn], repr(engine)

    ours, theirs = program(weft), program(torch)
    assert ours[0] == theirs[0]
    assert [each.removeprefix("weft.") for each in ours[1]] == [
        each.removeprefix("torch.") for each in theirs[1]
    ]
    assert ours[2] == theirs[2]


def test_all_dimensions():
    ours, theirs = (kind(kind.MAXDIM).sobolstate for kind in reversed(BOTH))
    assert ours.tolist() == theirs.tolist()


def test_the_default_dtype_is_that_of_the_first_point():
    def program(lib):
        lib.set_default_dtype(lib.float64)
        try:
            return lib.quasirandom.SobolEngine(3, scramble=True, seed=1).draw(4).tolist()
        finally:
            lib.set_default_dtype(lib.float32)

    assert program(weft) == program(torch)


@pytest.mark.parametrize("engine", BOTH)
def test_errors(engine):
    for dimension in (0, engine.MAXDIM + 1):
        with pytest.raises(ValueError, match="Supported range of dimensionality"):
            engine(dimension)
    used = engine(2)
    used.draw(3)
    with pytest.raises(ValueError, match="The balance properties"):
        used.draw_base2(2)
