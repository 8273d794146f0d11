"""Operators that write into a tensor, take a number first, or have older names: their integers are PyTorch's."""

import numpy as np
import pytest
import torch
from exact_quantized import SMALL_WEIGHT

import weft

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
EXPRESSIONS = """
q.add_out(x,y,o) q.add_relu_out(x,y,o) q.mul_out(x,y,o) q.mul_relu_out(x,y,o) q.add.Scalar2(0.3,x) q.mul.Scalar2(-0.3,x) q.add_relu.Scalar2(0.3,x)
q.add_scalar_out(x,0.3,o) q.mul_scalar_out(x,0.7,o) q.mul_scalar_relu_out(x,-0.7,o) q.add.Scalar_out(x,5.0,o) q.add_scalar_out(x,t.tensor(0.3),o)
q.cat_out([x,y],0,t.cat([o,o])) q.cat_relu_out([x,y],1,t.cat([o,o],1)) t.quantized_max_pool1d(x[0],2) t.quantized_max_pool2d(x,[2,2],[1,1])
t.quantized_max_pool3d(x.unsqueeze(0),2) t.quantized_batch_norm(x,t.ones(3),t.ones(3),t.zeros(3),t.ones(3),1e-5,0.031,7)
q.conv2d(x,q.conv_prepack(w,b,[1,1],[0,0],[1,1],1),[1,1],[0,0],[1,1],1,0.037,90) q.conv2d_relu(x,q.conv_prepack(w,b,[1,1],[0,0],[1,1],1),[1,1],[0,0],[1,1],1,0.037,90)
""".split()  # fmt: skip
FLOATS = """
q.linear_with_input_q_dq_qweight_dq_output_fp32(n,0.023,100,q.linear_prepack(v,b)) q.linear_with_input_q_dq_qweight_dq_relu_output_fp32(n,0.023,100,q.linear_prepack(v,b))
q.linear_dynamic_fp16_unpacked_weight(n,n[:3],b[:3])
""".split()  # fmt: skip


def evaluated(library, text):
    random = np.random.default_rng(30)

    def made(*shape):
        return library.from_numpy(random.standard_normal(shape).astype(np.float32))

    def quantized(shape, *by):
        return library.quantize_per_tensor(made(*shape), *by)

    names = {
        "t": library,
        "q": library.ops.quantized,
        "x": quantized((2, 3, 4, 4), 0.0213, 110, library.quint8),
        "y": quantized((2, 3, 4, 4), 0.0171, 130, library.quint8),
        "o": quantized((2, 3, 4, 4), 0.0331, 90, library.quint8),
        # Integers of at most 64, because PyTorch's sums are exact then; see tests/exact_quantized.py.
        "w": quantized((4, 3, 2, 2), 0.0487, 0, library.qint8),
        "v": quantized((4, 5), 0.0487, 0, library.qint8),
        "n": made(6, 5),
        "b": made(4),
    }
    assert all(names[name].int_repr().int().abs().max() <= SMALL_WEIGHT for name in "wv")
    return eval(text, names), names["o"]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_integers(text):
    for found, wanted in zip(evaluated(weft, text), evaluated(torch, text), strict=True):
        assert found.q_zero_point() == wanted.q_zero_point()
        assert found.q_scale() == pytest.approx(wanted.q_scale(), rel=1e-6)
        differences = np.abs(found.int_repr().numpy().astype(int) - wanted.int_repr().numpy().astype(int))
        assert differences.max() <= 1 and np.mean(differences) < 0.02


@pytest.mark.parametrize("text", FLOATS)
def test_floats(text):
    found, wanted = evaluated(weft, text)[0], evaluated(torch, text)[0]
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-5)


def test_out_of_another_shape():
    for library in (weft, torch):
        with pytest.raises(RuntimeError):
            evaluated(library, "q.cat_out([x,y],0,o)")
