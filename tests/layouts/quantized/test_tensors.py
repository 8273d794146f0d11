"""Quantized tensors: each expression gives PyTorch's dtype, integers, strides and quantizer, or its kind of error."""

import copy
import io
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from quantized_contents import content

import weft

RANDOM = np.random.default_rng(7)
NUMBERS = (RANDOM.standard_normal((3, 4)) * 3).astype(np.float32)
IMAGE = (RANDOM.standard_normal((2, 4, 7, 6)) * 2).astype(np.float32)


def names(library):
    f, image = library.from_numpy(NUMBERS.copy()), library.from_numpy(IMAGE.copy())
    channels = library.tensor([0.1, 0.2, 0.05]), library.tensor([5, 0, 3])
    quantize = library.quantize_per_tensor
    return {
        "torch": library, "F": library.nn.functional, "copy": copy, "pickle": pickle, "f": f, "image": image,
        "q": quantize(f, 0.1, 10, library.quint8), "s": quantize(f, 0.05, -3, library.qint8), "w": quantize(f, 0.01, 0, library.qint32),
        "n": quantize(f, 0.5, 2, library.quint4x2), "m": quantize(f, 1.0, 1, library.quint2x4),
        "other": quantize(f.flip(0), 0.2, 3, library.quint8), "x": quantize(image, 0.05, 64, library.quint8),
        "y": quantize(image, 0.06, 3, library.qint8),
        "p": library.quantize_per_channel(f, *channels, 0, library.quint8),
        "d": library.quantize_per_channel(f, channels[0], channels[1].float() + 0.5, 0, library.quint8),
    }  # fmt: skip


def evaluated(library, text):
    values = names(library)
    *statements, last = text.split("; ")
    try:
        for each in statements:
            exec(each, values)
        return content(eval(last, values))
    except Exception as error:
        return type(error)


EXPRESSIONS = """
q s w p d n m
q.dequantize() s.dequantize() w.dequantize() p.dequantize() d.dequantize() n.dequantize() m.dequantize()
q.t() q.view(6,-1) q.reshape(4,3) q[1:,::2] q[...,None] q[0] q[1,2] q[f>0] q[torch.tensor([1,0])] q.T q.mT q.permute(1,0) q.select(1,2)
q.expand(2,3,4) q.unfold(1,2,1) q.chunk(2) q.split(1) q.unbind() q.flip(0) q.repeat(2,1) q.tile(2) q.diagonal() q.movedim(0,1)
q.index_select(0,torch.tensor([1])) q.as_strided((2,2),(3,1)) q.narrow(1,0,2) list(q) q.t().contiguous() q.t().clone() q.detach() q.flatten()
q.squeeze() q.repeat_interleave(2) q[None].squeeze(0) q.unsqueeze(1) q.resize_(2,2) q.clone().resize_(3)
p[0] p[1] p[1:] p[::2] p[1:].dequantize() p[:,1:] p.unsqueeze(0) p.view(3,2,2) p.clone() p.detach() p[1:2] p.chunk(3) p.unbind() p.contiguous() p.t() p.permute(1,0) p.expand(2,3,4)
p.index_select(0,torch.tensor([1])) p.max() p.relu() torch.cat([p,p])
n.view(12) n.contiguous() n.detach()
q.masked_fill(f>0,0.5) q.clone().fill_(1.5) q.clone().copy_(f) q.clone().copy_(other) p.clone().copy_(f) p.clone().fill_(0.7) q.clone().copy_(s)
q.clone().copy_(f.double()) p.clone().copy_(q) f.clone().copy_(q) torch.ones_like(q) torch.full_like(q,1.3) torch.ones_like(p)
torch.cat([q,q]) torch.cat([q,other],1) torch.stack([q,q],1) torch.cat([q,s]) torch.cat([s,s])
q==other q<other q>0.5 q!=f s<=s p==p torch.equal(q,q.clone()) torch.equal(q,other) torch.equal(q,s)
q.sort() q.sort(0,True) s.sort() q.topk(2) s.topk(2,0,False) q.max() q.min() w.max() q.max(1) s.min(0) q.mean() q.mean(1) s.mean(0,True) q.std(1) x.mean((2,3))
q.relu() s.relu() w.relu() q.clone().relu_() q.clamp(0.0,1.0) s.clamp(max=0.31) torch.clamp(w,-1.0) F.relu(q) F.relu6(s) F.hardtanh(q,-0.5,0.5)
F.leaky_relu(q,0.1) F.leaky_relu(s) F.threshold(q,0.1,0.2) torch.sigmoid(q) torch.sigmoid(s) torch.tanh(q) torch.tanh(s) F.hardsigmoid(q) F.hardsigmoid(s)
F.max_pool2d(x,2) F.max_pool2d(y,3,2,1) F.max_pool1d(x[0],2) F.avg_pool2d(x,2) F.avg_pool2d(y,3,2,1) F.avg_pool2d(x,3,1,1,False,False)
F.avg_pool2d(x,3,2,1,True) F.avg_pool2d(x,2,divisor_override=3) F.avg_pool1d(x[0],3) F.adaptive_avg_pool2d(x,(3,2)) F.adaptive_avg_pool2d(y,1)
F.avg_pool2d(x,5,2,2,False,False) F.avg_pool2d(y,(1,5),1) F.avg_pool2d(y,2,divisor_override=0) F.avg_pool3d(x[None],(1,2,3)).contiguous()
F.adaptive_avg_pool2d(y,(7,2)) F.adaptive_avg_pool2d(x.contiguous(memory_format=torch.channels_last),(2,1)).contiguous() F.adaptive_avg_pool2d(x,(7,3)) F.max_pool2d(w[None],2)
F.interpolate(x,scale_factor=2) F.interpolate(x,size=(5,9),mode='bilinear') F.interpolate(y,size=(9,5),mode='bilinear',align_corners=True)
F.interpolate(x,scale_factor=1.7,mode='bilinear') x.resize(4,x.numel()//4) x.transpose(0,1).resize_as(x) F.interpolate(x,size=(3,4)) F.upsample_nearest(x,2) F.upsample_bilinear(y,scale_factor=2) F.upsample(x,scale_factor=2) F.pad(x,(1,2),value=0.3) F.pad(q,(1,2,0,1)) torch.channel_shuffle(x,2)
torch.pixel_shuffle(x,2) x.contiguous(memory_format=torch.channels_last)
q.to(torch.float32) q.float() q.to(torch.qint8) q.to('cpu') q.to(torch.quint8) q.type() w.type() n.type() q.tolist() q.numpy() q.item() q[0,1].item()
float(q[0,0]) bool(q[0,0]) len(q) q.nbytes q.element_size() q.is_signed() q.requires_grad_() q.is_leaf q.storage_offset() q[1].storage_offset()
q.untyped_storage().nbytes() q.is_contiguous() q.t().is_contiguous() q.dtype q.layout
repr(q) repr(s) repr(w) repr(p) repr(d) repr(n) repr(x) repr(q[:0]) str(q[0])
copy.deepcopy(q) copy.copy(q) pickle.loads(pickle.dumps(q)) pickle.loads(pickle.dumps(p)) copy.deepcopy(p)
torch.quantize_per_tensor_dynamic(f,torch.quint8,False) torch.quantize_per_tensor_dynamic(f,torch.qint8,True)
torch.quantize_per_tensor([f,2*f],torch.tensor([0.1,0.2]),torch.tensor([0,3]),torch.quint8) torch.dequantize([q,s])
torch.quantize_per_tensor(f,torch.tensor(0.1),torch.tensor(10),torch.quint8) torch.quantize_per_tensor(f.t(),0.1,10,torch.quint8)
torch._make_per_tensor_quantized_tensor(torch.tensor([1,2],dtype=torch.int8),0.5,1)
torch._make_per_channel_quantized_tensor(torch.tensor([[1,2]],dtype=torch.uint8),torch.tensor([.1,.2]),torch.tensor([0,1]),1)
torch._make_per_tensor_quantized_tensor(torch.tensor([1,2]),0.5,1) torch._empty_affine_quantized([2,2],scale=0.1,zero_point=2,dtype=torch.qint8).q_scale()
torch._empty_affine_quantized([2,2]) torch.empty_quantized([2,5],q).shape torch.empty_quantized([2,5],q).q_zero_point()
torch.quantize_per_channel(f,torch.tensor([0.1]),torch.tensor([5]),0,torch.quint8) torch.quantize_per_channel(f,torch.ones(3),torch.ones(2),0,torch.quint8)
torch.quantize_per_channel(f,torch.ones(3),torch.tensor([1,2,300]),0,torch.quint8) torch.quantize_per_tensor(f,0.1,300,torch.quint8)
torch.quantize_per_tensor(f.double(),0.1,10,torch.quint8) torch.quantize_per_tensor(f,0.1,10,torch.float32) torch.quantize_per_tensor(f.int(),0.1,10,torch.quint8)
torch.quantize_per_tensor(f,0.1,-129,torch.qint8) torch.iinfo(torch.qint32).max torch.quint8.is_signed
q.size() q.size(1) q.size(2) F.gelu(q) F.dropout(q,0.5,False) F.dropout(q) torch.nn.Dropout().eval()(q) torch.as_tensor(q) torch.asarray(q) q.to_dense() q.conj() q.real
torch.diag(q) torch.broadcast_tensors(q,q[0]) torch.broadcast_tensors(q,f) q==None q!='a' q+[1] q<None torch.eq(q,None) q.sum('a') q.contiguous()is(q) q.cpu()is(q) q.as_subclass(type('S',(torch.Tensor,),{})) type(q.as_subclass(type('S',(torch.Tensor,),{}))).__name__
p.q_scale() q.q_per_channel_scales() f.int_repr() torch.int_repr(q) torch.q_scale(q) p.q_per_channel_axis() q.qscheme() d.qscheme()
""".split()  # fmt: skip
WRITES = [
    "z = q.clone(); z[0] = 0.7; z", "z = q.clone(); z[0, 0] = q[1, 1]; z",
    "z = q.clone(); z[:, 0] = other[:, 0]; z", "z = q.clone(); z[f > 0] = 1.0; z",
    "z = q.clone(); z[1] = f[0]; z", "z = p.clone(); z[1] = 0.33; z", "z = q.clone(); z.resize_(2, 2); z",
    "z = q.clone(); z.t_(); z", "z = q.clone(); z.unsqueeze_(0); z",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS + WRITES)
def test_results(text):
    assert evaluated(weft, text) == evaluated(torch, text)


@pytest.mark.parametrize("name", ["q", "s", "w", "p", "d"])
def test_files_in_both_directions(name):
    expected = content(names(torch)[name])
    for writer, reader in ((torch, weft), (weft, torch), (weft, weft)):
        file = io.BytesIO()
        writer.save({"a": names(writer)[name]}, file)
        file.seek(0)
        assert content(reader.load(file)["a"]) == expected, (writer.__name__, reader.__name__)


def test_tensors_of_a_file_share_memory():
    q = names(weft)["q"]
    file = io.BytesIO()
    weft.save([q, q[1:]], file)
    file.seek(0)
    first, second = weft.load(file)
    second.fill_(0.0)
    assert first.int_repr()[1:].eq(10).all()


@pytest.mark.parametrize(
    "quantizer",
    [
        (weft.per_tensor_affine, "0.1", 3), (weft.per_tensor_affine, 0.1, 2**70), (weft.per_channel_affine, 0.1, 3), (1, 0.1, 3), (),
        (weft.per_channel_affine, weft.ones(2), weft.ones(2), 0), (weft.per_channel_affine, weft.ones(3), weft.ones(3), 9),
        (weft.per_channel_affine, weft.ones(3), weft.ones(3), -1),
    ],
)  # fmt: skip
def test_untrusted_quantizers(quantizer):
    from weft.serialization.rebuild import rebuild_qtensor

    storage = weft.storage.TypedStorage(12, dtype=weft.quint8, _internal=True)
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        rebuild_qtensor(storage, 0, (3, 4), (4, 1), quantizer, False, {})


@pytest.mark.parametrize("place", [(0, (4, 4), (4, 1)), (9, (3, 4), (4, 1)), (0, (3, 4), (9, 1))])
def test_untrusted_sizes(place):
    from weft.serialization.rebuild import rebuild_qtensor

    for dtype in (weft.quint8, weft.qint32, weft.quint4x2):
        storage = weft.storage.TypedStorage(wrap_storage=weft.UntypedStorage(7), dtype=dtype, _internal=True)
        with pytest.raises((ValueError, RuntimeError)):
            rebuild_qtensor(storage, *place, (weft.per_tensor_affine, 0.1, 3), False, {})


def test_equal_quantizers_make_one_spec():
    q, again = names(weft)["p"], names(weft)["p"]
    assert q.spec is again.spec and type(q) is weft.Tensor
    assert pickle.loads(pickle.dumps(q.spec)) is q.spec


def test_a_fresh_process_reads_a_pickle():
    code = "import pickle, sys, weft; x = pickle.load(sys.stdin.buffer); print(x.int_repr().tolist(), (x == x).all().item())"
    found = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(names(weft)["q"]), capture_output=True
    )
    assert found.stdout.decode().strip() == f"{names(torch)['q'].int_repr().tolist()} True", (
        found.stderr.decode()
    )


@pytest.mark.parametrize(
    "text",
    [
        "q.exp()", "q + other", "q * 2", "q @ q.t()", "q.sum()", "F.linear(q, q)", "q.abs_()",
        "torch.add(q, 1)", "F.softmax(q, 0)",
    ],
)  # fmt: skip
def test_what_is_missing_says_what_to_write(text):
    with pytest.raises(
        NotImplementedError, match=r"is not implemented for quantized tensors: write x.dequantize\(\)"
    ):
        eval(text, names(weft))


def test_memory_is_shared_with_views_and_versions_count():
    q = names(weft)["q"]
    view, before = q[1], q._version
    view.fill_(0.0)
    assert q.int_repr()[1].tolist() == [10] * 4 and q._version == before + 1 and view._base is not None


@pytest.mark.parametrize(
    "call",
    [
        lambda q, x: weft.maximum(q, x),
        lambda q, x: weft.max(x, q),
        lambda q, x: x.minimum(q),
        lambda q, x: weft.where(x > 0.3, q, x),
        lambda q, x: q.where(x > 0.3, 0.5),
        lambda q, x: weft.where(q),
        lambda q, x: q.tril(),
    ],
)
def test_integers_are_not_taken_for_numbers(call):
    x = weft.tensor([[0.5, 0.0, 0.25]])
    q = weft.quantize_per_tensor(x, 0.25, 3, weft.quint8)
    with pytest.raises(
        NotImplementedError, match="not implemented for quantized tensors: write x.dequantize"
    ):
        call(q, x)
    assert weft.maximum(q, q).dequantize().tolist() == x.tolist()
    assert weft.where(x > 0.3, q, q).dequantize().tolist() == x.tolist()
    assert q.max(1)[0].dequantize().tolist() == [0.5]
