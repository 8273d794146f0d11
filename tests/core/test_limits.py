"""Numbers that a dtype cannot hold: every op refuses them with the same error."""

import pytest
from expressions import check, lines

ARGUMENTS = lines("""
torch.nn.functional.threshold(torch.tensor([1, 2]), 0.5, -inf)  # raises
torch.nn.functional.threshold(torch.tensor([1, 2], dtype=torch.uint8), 0.5, 300)  # raises
torch.nn.functional.threshold(torch.tensor([1, 2], dtype=torch.uint8), 0.5, -1)
torch.nn.functional.threshold(torch.ones(2), 1e300, 1)  # raises
torch.nn.functional.threshold(torch.ones(2), 0.5, 1j)  # raises
torch.nn.functional.threshold(torch.ones(2), 1j, 1)  # raises
torch.nn.functional.threshold(torch.ones(2), "a", 1)  # raises
torch.nn.functional.threshold(torch.ones(2), 2 + 0j, 3 + 0j)
torch.nn.functional.threshold(torch.ones(2, dtype=torch.float16), 1e6, 0)
torch.nn.functional.threshold(torch.tensor([0.3], dtype=torch.bfloat16), 0.3, 0.1)
torch.nn.functional.hardshrink(torch.ones(2), 1e300)  # raises
torch.nn.functional.hardshrink(torch.ones(2, dtype=torch.float16), 1e6)  # raises
torch.nn.functional.hardshrink(torch.tensor([0.3], dtype=torch.bfloat16), 0.3)
torch.nn.functional.softshrink(torch.ones(2, dtype=torch.float16), 1e6)  # raises
torch.nn.functional.softshrink(torch.ones(2), inf)  # raises
torch.nn.functional.leaky_relu(torch.ones(2), 1e300)  # raises
torch.nn.functional.leaky_relu(torch.ones(2, dtype=torch.float16), 1e6)
torch.nn.functional.elu(torch.ones(2), 1e300)  # raises
torch.nn.functional.celu(torch.ones(2), 1e300)  # raises
torch.nn.functional.softplus(torch.ones(2), 1e300)  # raises
torch.nn.functional.hardtanh(torch.tensor([1, 2]), -inf, 1.5)  # raises
torch.nn.functional.hardtanh(torch.tensor([-5, 7]), -1.5, 2.5)
torch.logit(torch.ones(2), 1e300)  # raises
torch.add(torch.ones(2, dtype=torch.float16), torch.ones(2, dtype=torch.float16), alpha=1e6)  # raises
torch.sub(torch.ones(2, dtype=torch.uint8), torch.ones(2, dtype=torch.uint8), alpha=300)  # raises
torch.add(torch.ones(2, dtype=torch.uint8), torch.ones(2, dtype=torch.uint8), alpha=-1)
torch.ones(2).add_(torch.ones(2), alpha=1e300)  # raises
torch.add(torch.ones(2), 1e300)
torch.addcmul(torch.ones(2), torch.ones(2), torch.ones(2), value=1j)  # raises
torch.addcmul(torch.ones(2, dtype=torch.int64), torch.tensor(1), torch.tensor(1), value=inf)  # raises
torch.addcmul(torch.ones(2, dtype=torch.float16), torch.ones(2).half(), torch.ones(2).half(), value=1e6)
torch.addcdiv(torch.ones(2), torch.ones(2), torch.ones(2), value=1e300)  # raises
torch.lerp(torch.ones(2), torch.ones(2), 1e300)  # raises
torch.lerp(torch.ones(2).half(), torch.ones(2).half(), 1e6)
torch.addmm(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2), alpha=1j)  # raises
torch.addmm(torch.ones(2, 2).half(), torch.ones(2, 2).half(), torch.ones(2, 2).half(), beta=1e6)
torch.addmv(torch.ones(2), torch.ones(2, 2), torch.ones(2), beta=1e300)  # raises
torch.baddbmm(torch.ones(2, 2, 2), torch.ones(2, 2, 2), torch.ones(2, 2, 2), beta=1e300)  # raises
torch.where(torch.tensor([True]), torch.ones(1, dtype=torch.uint8), 300)  # raises
torch.where(torch.tensor([True]), 1e300, torch.ones(1))  # raises
torch.where(torch.tensor([True]), torch.ones(1, dtype=torch.int64), inf)
torch.clamp(torch.ones(2, dtype=torch.int32), min=2**40)  # raises
torch.ones(2, dtype=torch.uint8).masked_fill(torch.tensor(True), torch.tensor(1j))  # raises
torch.nan_to_num(torch.tensor([nan]), 1e300)
""")


@pytest.mark.parametrize("expression", ARGUMENTS)
def test_numbers_that_do_not_fit(expression):
    check(expression)


def test_the_message_names_the_type():
    import weft

    with pytest.raises(RuntimeError, match="value cannot be converted to type c10::Half without overflow"):
        weft.add(weft.ones(1).half(), weft.ones(1).half(), alpha=1e6)
    with pytest.raises(RuntimeError, match="value cannot be converted to type int without overflow"):
        weft.zeros(1, dtype=weft.int32).fill_(2**40)
