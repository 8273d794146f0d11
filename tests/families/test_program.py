import weft
from weft.engine.scalar import exp
from weft.families.map import Map, keep
from weft.families.program import Program
from weft.ops.reduction import SUM

SCALED = Map("scaled", keep, lambda a, total, factor, shift: a / total * factor + shift)
EXP = Map("exp", keep, exp)


def _describe(planner, dims):
    x, shift = planner.inputs
    powers = planner.map(EXP, x)
    (total,) = planner.reduce(SUM, powers, dims=dims)
    return [total, planner.map(SCALED, powers, total, planner.numbers[0], shift or 0.5)]


PROGRAM = Program(_describe)


def test_kernels_run_one_after_the_other():
    x = weft.randn(3, 4).t()
    for shift in (weft.ones(3), None):
        for factor in (2.0, 3.0):
            total, result = PROGRAM((x, shift), ((0,),), (factor,))
            expected = x.exp() / x.exp().sum(0, keepdim=True) * factor + (0.5 if shift is None else shift)
            assert weft.allclose(result, expected) and result.stride() == x.stride()
            assert weft.allclose(total, x.exp().sum(0, keepdim=True))
    assert len(PROGRAM.plans) == 2


def test_programs_run_without_memory():
    total, result = PROGRAM((weft.empty(3, 4, device="meta"), None), ((1,),), (1.0,))
    assert total.shape == (3, 1) and result.shape == (3, 4) and result.is_meta
