"""`torch.ops.quantized`: the schemas and the integers of PyTorch."""

import copy
import pickle

import numpy as np
import pytest
import torch
from quantized_contents import content

import weft
from weft.layouts.quantized import operators
from weft.library.registry.operators import overloads

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
RANDOM = np.random.default_rng(3)
ARRAYS = {
    "a": RANDOM.standard_normal((5, 6)) * 3, "b": RANDOM.standard_normal((5, 6)), "image": RANDOM.standard_normal((2, 4, 7, 6)) * 2,
    "line": RANDOM.standard_normal((2, 4, 9)), "weight": RANDOM.standard_normal((3, 6)), "bias": RANDOM.standard_normal(3),
    "kernel": RANDOM.standard_normal((6, 2, 3, 3)), "filter": RANDOM.standard_normal((6, 2, 3)), "bias6": RANDOM.standard_normal(6),
    "up": RANDOM.standard_normal((4, 3, 3, 3)), "table": RANDOM.standard_normal((7, 6)), "mean": RANDOM.standard_normal(4),
    "var": RANDOM.uniform(0.5, 2, 4),
}  # fmt: skip


def names(library):
    values = {name: library.from_numpy(array.astype(np.float32)) for name, array in ARRAYS.items()}
    quantize, per_channel = library.quantize_per_tensor, library.quantize_per_channel
    points = library.zeros(6).long()
    scales = library.tensor([0.01, 0.02, 0.03, 0.015, 0.025, 0.011])
    return {
        **values, "ops": library.ops.quantized, "torch": library, "copy": copy, "pickle": pickle, "rows": library.tensor([[1, 0], [6, 3]]),
        "q": quantize(values["a"], 0.05, 100, library.quint8), "r": quantize(values["b"], 0.02, 30, library.quint8),
        "s": quantize(values["a"], 0.05, -7, library.qint8), "t": quantize(values["b"], 0.02, 30, library.qint8),
        "x": quantize(values["image"], 0.05, 64, library.quint8), "l": quantize(values["line"], 0.03, 64, library.quint8),
        "w": quantize(values["weight"], 0.02, 0, library.qint8), "v": per_channel(values["weight"], scales[:3], points[:3], 0, library.qint8),
        "k": quantize(values["kernel"], 0.02, 0, library.qint8), "j": per_channel(values["kernel"], scales, points, 0, library.qint8),
        "i": quantize(values["filter"], 0.02, 0, library.qint8), "u": quantize(values["up"], 0.02, 0, library.qint8),
        "e": per_channel(values["table"], values["table"].abs().amax(1) / 100, values["table"][:, 0] * 9 + 90, 0, library.quint8),
        "h": per_channel(values["table"], values["table"].abs().amax(1) / 7, values["table"][:, 0] + 7.5, 0, library.quint4x2),
    }  # fmt: skip


CALLS = """
add(q,r,0.06,50) add(s,t,0.06,5) add_relu(q,r,0.06,50) add(q,r,0.06,50).dtype mul(q,r,0.1,20) mul(s,t,0.1,20) mul_relu(q,r,0.1,20)
add_scalar(q,0.7) add_scalar(q,9.0) add_scalar(q,-9.0) add_scalar(s,0.31) add_scalar_relu(q,0.7) add_scalar_relu(q,9.0) add_scalar(q,r.dequantize()[0,0])
add(q,0.7) mul(q,-2.0) mul_scalar(q,2.5) mul_scalar(q,-2.5) mul_scalar(q,0) mul_scalar(s,-0.3) mul_scalar_relu(q,2.5) mul_scalar_relu(s,-2.5)
matmul(q,r.t(),0.1,20) cat([q,r],1,0.06,50) cat([q,r],0,None,None) cat_relu([q,r],1,0.06,100)
leaky_relu(q,0.1,False,0.04,90) sigmoid(q,0.004,3) hardswish(q,0.03,20) elu(q,0.04,50) elu(s,0.04,5,0.7,1.2,0.9) celu(q,0.04,50,0.8) softmax(q,1,0.004,0)
relu6(q) clamp(q,-0.3,0.9) threshold(q,0.1,0.2) max_pool2d(x,[2,2],[2,2],[0,0],[1,1],False) max_pool1d(l,[3],[2],[1],[1],False)
batch_norm2d(x,var,mean,mean,var,1e-5,0.07,40) batch_norm2d_relu(x,var,mean,mean,var,1e-5,0.07,40) batch_norm1d(l,var,mean,mean,var,1e-5,0.07,40)
linear(q,ops.linear_prepack(w,bias),0.2,100) linear(q,ops.linear_prepack(v,bias),0.2,100) linear_relu(q,ops.linear_prepack(v,None),0.2,100)
linear(q,pickle.loads(pickle.dumps(ops.linear_prepack(v,bias))),0.2,100) linear(q,copy.deepcopy(ops.linear_prepack(v,bias)),0.2,100)
linear_dynamic(a,ops.linear_prepack(v,bias)) linear_relu_dynamic(a,ops.linear_prepack(w,bias)) linear_unpack(ops.linear_prepack(v,bias))
linear_dynamic_fp16(a,ops.linear_prepack_fp16(weight,bias)).shape
conv2d(x,ops.conv2d_prepack(k,bias6,[1,1],[1,1],[1,1],2),0.2,100) conv2d_relu(x,ops.conv2d_prepack(j,bias6,[2,2],[1,0],[1,1],2),0.2,100)
conv1d(l,ops.conv1d_prepack(i,bias6,[1],[1],[1],2),0.2,100) conv1d_relu(l,ops.conv1d_prepack(i,None,[2],[1],[2],2),0.2,100)
conv_transpose2d(x,ops.conv_transpose2d_prepack(u,bias,[2,2],[1,1],[1,1],[1,1],1),0.2,100) conv2d_unpack(ops.conv2d_prepack(j,bias6,[2,2],[1,0],[1,1],2))
conv2d_stride(ops.conv2d_prepack(k,bias6,[1,2],[1,1],[1,1],2)) conv2d_groups(ops.conv2d_prepack(k,bias6,[1,2],[1,1],[1,1],2))
embedding_bag_byte_prepack(table) embedding_bag_byte_unpack(ops.embedding_bag_byte_prepack(table))
embedding_byte(ops.embedding_bag_prepack(e),rows) embedding_4bit(ops.embedding_bag_prepack(h),rows) embedding_bag_byte(ops.embedding_bag_prepack(e),rows[0],rows[0]*0)
embedding_bag_byte(ops.embedding_bag_prepack(e),rows)
linear(q,ops.linear_prepack(q,bias),0.2,100) linear(a,ops.linear_prepack(w,bias),0.2,100) add(q,a,0.1,0) linear_prepack(weight,bias)
""".split()  # fmt: skip


def evaluated(library, text):
    try:
        found = eval(f"ops.{text}", names(library))
    except Exception as error:
        return type(error) if not isinstance(error, NotImplementedError) else RuntimeError
    return content(found)


def without_strides(found):
    if isinstance(found, list):
        return [without_strides(each) for each in found if not isinstance(each, tuple)]
    return found


@pytest.mark.parametrize("text", CALLS)
def test_like_pytorch(text, exact_layers):
    engine = torch.backends.quantized.engine
    torch.backends.quantized.engine = "fbgemm"
    try:
        wanted = evaluated(torch, text)
    finally:
        torch.backends.quantized.engine = engine
    found = evaluated(weft, text)
    if text.startswith("embedding_bag_byte(") and isinstance(wanted, list):
        np.testing.assert_allclose(found[2], wanted[2], rtol=1e-6)
    else:
        assert without_strides(found) == without_strides(wanted)


def test_schemas():
    operators.overloads("add")  # the first call defines all
    for name in operators._defined:
        for overload, each in overloads(f"quantized::{name}").items():
            assert str(each.schema) == str(torch._C._get_schema(f"quantized::{name}", overload))
