import pytest
import torch
import torch.nn.attention.bias as reference_module

import weft
from weft.nn.attention import bias as own_module
from weft.nn.functional import scaled_dot_product_attention

MAKERS = ("causal_upper_left", "causal_lower_right")


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("sizes", [(3, 5), (4, 4), (5, 3)])
@pytest.mark.filterwarnings("ignore:Lower right causal bias")
def test_attention_under_a_bias(maker, sizes):
    own, reference = getattr(own_module, maker)(*sizes), getattr(reference_module, maker)(*sizes)
    assert repr(own) == repr(reference)
    assert own._materialize().tolist() == reference._materialize().tolist()
    torch.manual_seed(0)
    given = [torch.randn(1, 2, size, 4) for size in (sizes[0], sizes[1], sizes[1])]
    expected = torch.nn.functional.scaled_dot_product_attention(*given, reference)
    found = scaled_dot_product_attention(*[weft.tensor(each.numpy()) for each in given], attn_mask=own)
    assert type(found) is weft.Tensor
    assert torch.allclose(torch.from_numpy(found.numpy().copy()), expected, atol=1e-6)


def test_errors():
    q = weft.ones(1, 1, 3, 4)
    bias = own_module.causal_upper_left(3, 3)
    with pytest.raises(ValueError, match="causal=True"):
        scaled_dot_product_attention(q, q, q, bias, is_causal=True)
    with pytest.raises(AssertionError):
        own_module.causal_upper_left(3)
    with pytest.raises(AssertionError):
        own_module.CausalBias(3, 4, 5)
    with pytest.warns(UserWarning, match="Lower right"):
        own_module.causal_lower_right(5, 3)


def test_a_bias_of_other_sizes_does_not_fit():
    q = weft.ones(1, 1, 3, 4)
    with pytest.raises(RuntimeError):
        scaled_dot_product_attention(q, q, q, own_module.causal_upper_left(2, 2))
