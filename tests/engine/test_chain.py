"""Chains of launches: the same bits as launches one by one, for all layouts, block sizes and numbers of threads."""

import numpy as np
import pytest

import weft
import weft.nn.functional as F
from weft.core.dtype import when_plans_expire
from weft.devices.cpu import Cpu
from weft.engine import chain
from weft.engine.chain import Chain, Operand
from weft.ops.reductions.reduction import SUM
from weft.ops.reductions.softmax import _SOFTMAX

FUNCTIONS = {
    "softmax": lambda x, dim: weft.softmax(x, dim),
    "log_softmax": lambda x, dim: weft.log_softmax(x, dim),
    "logsumexp": lambda x, dim: weft.logsumexp(x, dim),
    "layer_norm": lambda x, dim: F.layer_norm(x, x.shape[1:]),
    "group_norm": lambda x, dim: F.group_norm(x, 2),
    "batch_norm": lambda x, dim: F.batch_norm(x, None, None, training=True),
}
LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, 2).contiguous().transpose(0, 2),
    "permuted": lambda x: x.permute(2, 0, 1).contiguous().permute(1, 2, 0),
    "expanded": lambda x: x[:, :, :1].expand(x.shape),
    "reversed": lambda x: x.flip(0),
    "strided": lambda x: x.repeat_interleave(2, 1)[:, ::2],
}


def forget_plans():
    """Forget all plans, so that the next calls plan their chains again."""
    for forget in when_plans_expire:
        forget()


def bits(tensor):
    return tensor.contiguous().float().numpy().view(np.int32).tolist()


@pytest.mark.parametrize("dtype", [weft.float32, weft.bfloat16])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_chain_has_the_bits_of_single_launches(name, layout, dtype, monkeypatch):
    weft.manual_seed(0)
    x = LAYOUTS[layout](weft.randn(6, 4, 6).to(dtype))
    results = []
    for block, chains in ((1, True), (1 << 14, True), (None, False)):
        forget_plans()
        if chains:
            monkeypatch.setattr(chain, "BLOCK_BYTES", block)
        else:
            monkeypatch.setattr(Cpu, "chain", lambda self: None)
        results.append([bits(FUNCTIONS[name](x, dim)) for dim in (0, 1, 2)])
    forget_plans()
    assert results[0] == results[1] == results[2]


def test_a_long_chain_is_shared_among_threads_without_changing_a_bit():
    x = weft.randn(2048, 1024)
    threads = weft.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            weft.set_num_threads(count)
            found.append(weft.softmax(x, 1).numpy().tobytes())
    finally:
        weft.set_num_threads(threads)
    assert found[0] == found[1] == found[2]


def test_a_stage_is_refused_that_cannot_be_cut_like_the_others():
    rows = weft.ones(64, 4096)
    plan = SUM.plans[(rows.spec,), (1,), True, None, 0]
    total = Chain()
    assert total.add(plan.keepalive, [Operand(0, 64 * 4, 0), Operand(None, rows.spec.nbytes, 0)])
    assert total.units == 64
    # The next stage reads the sums of all rows for each of its results.
    across = SUM.plans[(weft.ones(4096, 64).spec,), (1,), True, None, 0]
    assert not total.add(across.keepalive, [Operand(1, 4096 * 4, 0), Operand(0, 64 * 4, 0)])
    assert not Chain().add(plan.keepalive, [Operand(None, 256, 0), Operand(None, 256, 0)])  # writes an input
    assert not Chain().add(None, [])  # no launch that can be cut


def test_wrong_arguments_raise_and_run_nothing():
    forget_plans()
    weft.softmax(weft.ones(4, 4), 1)
    (plan,) = _SOFTMAX.plans.values()
    launch = plan.run.__defaults__[plan.run.__code__.co_varnames[2:].index("launch0")]
    with pytest.raises(TypeError):
        launch(1)
    right = 10  # the operands of four kernels, and the metas of two reductions
    with pytest.raises(TypeError):
        launch(*["a"] * right)
