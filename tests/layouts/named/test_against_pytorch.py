"""Names that PyTorch gives, recorded with version 1.12.1, the last of the versions whose documentation describes named tensors."""

import copy
from collections import OrderedDict

import pytest

import weft
from weft.nn import functional as F


def create(*dims):
    """A tensor with these dims, written as "name:size"."""
    pairs = [dim.split(":") for dim in dims]
    names, sizes = [None if name == "None" else name for name, _ in pairs], [int(size) for _, size in pairs]
    result = weft.arange(1.0, 1 + weft.Size(sizes).numel()).reshape(sizes)
    return result.rename(*names) if any(names) else result


def known():
    return {
        "torch": weft, "F": F, "create": create, "copy": copy, "OrderedDict": OrderedDict,
        "x": create("N:2", "C:3"), "u": create("None:2", "None:3"), "p": create("N:2", "None:3"), "y": create("N:2", "C:3", "L:5"),
        "z": create("N:2", "C:3", "H:4", "W:5"), "sq": create("A:3", "B:3"), "v": create("C:3"), "b": create("N:2", "C:3") > 2,
        "i": weft.zeros(2, 3, dtype=weft.long), "i1": weft.tensor([0, 1]), "one": create("N:3", "C:1", "H:1", "W:1"),
        "bool3": weft.zeros(3, dtype=weft.bool, names=("C",)), "cx": weft.zeros(2, 3, dtype=weft.complex64).rename("N", "C"),
    }  # fmt: skip


def written(result):
    """The names as RESULTS has them: "-" for a dim without a name, "()" for none, "|" between several tensors."""
    if isinstance(result, weft.Tensor):
        return " ".join("-" if name is None else name for name in result.names) or "()"
    return " | ".join(map(written, result))


RESULTS = """
torch.zeros(2,3,names=('N','C')) -> N C
torch.zeros((2,3),names=('N','C')) -> N C
torch.zeros(2,3,names=['N',None]) -> N -
torch.zeros(2,3,names=None) -> - -
torch.zeros(2,names=('class',)) -> class
torch.zeros(2,names=('None',)) -> None
torch.zeros([],names=[]) -> ()
torch.zeros((),names=()) -> ()
torch.zeros(0,names=['a']) -> a
torch.ones(2,names=('_1',)) -> _1
torch.full((2,3),3.,names=('N','C')) -> N C
torch.empty(2,3,names=('N','C')) -> N C
torch.rand(2,3,names=('N','C')) -> N C
torch.randn(2,3,names=('N','C')) -> N C
torch.randn((2,3),names=('N','C')) -> N C
torch.rand(2,3,names=('N','C'),generator=torch.Generator()) -> N C
torch.tensor([1.],names=('N',)) -> N
torch.tensor([[1.]],names=('N','C')) -> N C
torch.tensor(x) -> N C
torch.tensor(x,names=('N','C')) -> N C
torch.tensor(u,names=('N','D')) -> N D
torch.from_numpy(u.numpy()) -> - -
torch.as_tensor(x) -> N C
torch.zeros_like(x) -> N C
torch.ones_like(x) -> N C
torch.empty_like(x) -> N C
torch.full_like(x,2.) -> N C
torch.rand_like(x) -> N C
torch.randn_like(x) -> N C
x.rename('A','B') -> A B
x.rename(None) -> - -
x.rename(None,None) -> - -
x.rename('A',None) -> A -
x.rename(N='batch') -> batch C
x.rename(N='batch',C='ch') -> batch ch
x.rename(N='C',C='N') -> C N
x.rename(N=None) -> - C
x.rename(**{'N':'batch'}) -> batch C
x.rename('...') -> N C
x.rename(...) -> N C
x.rename('A','...') -> A C
x.rename('A',...) -> A C
x.rename(...,'A') -> N A
z.rename('batch','...','width') -> batch C H width
z.rename('batch','channels','...','width') -> batch channels H width
z.rename('N','C','H','...','W') -> N C H W
z.rename('N','C','H','W','...') -> N C H W
u.rename('...','A') -> - A
torch.zeros([]).rename('...') -> ()
torch.zeros([]).rename(None) -> ()
x.rename_('A','B') -> A B
x.rename_(None) -> - -
x.rename_(N='batch') -> batch C
x.rename_('...','A') -> N A
x.refine_names('N','C') -> N C
u.refine_names('N','C') -> N C
u.refine_names('N',...) -> N -
u.refine_names('...','C') -> - C
p.refine_names('N','C') -> N C
p.refine_names(...,'C') -> N C
z.refine_names('N',...,'W') -> N C H W
x.align_to('C','N') -> C N
x.align_to('C',...) -> C N
x.align_to(...,'N') -> C N
x.align_to('...','N') -> C N
x.align_to('N','D','C') -> N D C
x.align_to('N','C',None) -> N C -
p.align_to('N',...) -> N -
p.align_to(...,'N') -> - N
z.align_to('W',...,'N') -> W C H N
z.align_to('W','Q',...,'N') -> W Q C H N
z.align_to('...') -> N C H W
u.align_to('...') -> - -
create('None:2','None:3','None:5','C:7').align_to('C','...') -> C - - -
x.align_as(z) -> N C H W
v.align_as(x) -> N C
x.flatten(['N','C'],'F') -> F
x.flatten(('N','C'),'F') -> F
x.flatten('N','C','F') -> F
x.flatten(0,1,'F') -> F
z.flatten(2,3,'F') -> N C F
z.flatten('C','W','F') -> N F
z.flatten(['H'],'F') -> N C F W
z.flatten(dims=['H','W'],out_dim='F') -> N C F
z.flatten(start_dim='H',end_dim='W',out_dim='F') -> N C F
torch.flatten(z,['H','W'],'F') -> N C F
torch.flatten(z,'H','W','F') -> N C F
z.transpose('N','C').flatten(['N','H'],'F') -> C F W
create('A:4').unflatten('A',(('A',2),('B',2))) -> A B
create('A:4').unflatten('A',[['A',2],['B',2]]) -> A B
create('A:4').unflatten('A',(('B',-1),('C',2))) -> B C
create('A:4').unflatten(0,(('B',-1),('C',2))) -> B C
create('A:4').unflatten('A',OrderedDict((('B',2),('C',2)))) -> B C
u.unflatten(1,(1,3)) -> - - -
x.abs() -> N C
x.abs_() -> N C
torch.abs(x) -> N C
torch.abs(x,out=torch.empty(0)) -> N C
torch.abs(x,out=torch.empty(2,3)) -> N C
torch.abs(x,out=create('N:2','C:3')) -> N C
torch.abs(u,out=torch.empty(0)) -> - -
torch.acos(x) -> N C
x.angle() -> N C
x.positive() -> N C
+x -> N C
x.add(x) -> N C
x.add_(x) -> N C
x+x -> N C
x+1 -> N C
1+x -> N C
1-x -> N C
2**x -> N C
2/x -> N C
x/2 -> N C
-x -> N C
abs(x) -> N C
x.bool() -> N C
~b -> N C
x==x -> N C
x==1 -> N C
x!=x -> N C
x<x -> N C
x<1 -> N C
x>=x -> N C
x+u -> N C
u+x -> N C
x+v -> N C
v+x -> N C
x+create('None:2','C:3') -> N C
p+x -> N C
x+torch.zeros(1,2,3) -> - N C
torch.zeros(1,2,3)+x -> - N C
x+torch.tensor(1.) -> N C
y+create('L:5') -> N C L
y*create('C:3','L:5') -> N C L
y*create('C:3','None:1') -> N C L
x.add_(u) -> N C
u.add_(x) -> N C
u+x.add_(1) -> N C
x.add_(p) -> N C
x.add_(v) -> N C
x.__iadd__(u) -> N C
u.__iadd__(x) -> N C
u.copy_(x) -> N C
x.copy_(u) -> N C
x.copy_(x) -> N C
x.copy_(p) -> N C
x.copy_(create('C:3')) -> N C
torch.add(x,x,out=torch.empty(0)) -> N C
torch.add(x,u,out=create('N:2','C:3')) -> N C
torch.pow(x,2) -> N C
torch.pow(2,x) -> N C
x.pow(x) -> N C
torch.pow(x,0,out=torch.empty(0)) -> N C
torch.atan2(x,x) -> N C
torch.floor_divide(x,x) -> N C
torch.true_divide(x,x) -> N C
torch.logical_and(b,b) -> N C
torch.logical_not(b) -> N C
torch.logical_xor(b,b) -> N C
torch.bitwise_not(b) -> N C
torch.addcmul(x,x,x) -> N C
torch.addcdiv(x,x,x) -> N C
x.addcmul_(x,x) -> N C
torch.addcmul(x,u,u) -> N C
torch.addcmul(u,x,u) -> N C
torch.addcmul(u,u,x) -> N C
torch.clamp(x,0,1) -> N C
x.clamp_(0,1) -> N C
torch.clamp_min(x,0) -> N C
torch.clamp_max(x,0) -> N C
torch.clip(x,0,1) -> N C
torch.sign(x) -> N C
torch.isnan(x) -> N C
torch.isinf(x) -> N C
torch.isfinite(x) -> N C
torch.polygamma(1,x) -> N C
x.polygamma(1) -> N C
torch.lgamma(x) -> N C
torch.digamma(x) -> N C
torch.erfinv(x) -> N C
torch.frac(x) -> N C
torch.round(x) -> N C
torch.trunc(x) -> N C
torch.sigmoid(x) -> N C
torch.threshold(x,0,1) -> N C
F.threshold(x,0,1) -> N C
torch.relu(x) -> N C
x.relu_() -> N C
F.relu(x) -> N C
F.dropout(x) -> N C
F.dropout(x,inplace=True) -> N C
torch.dropout(x,0.5,True) -> N C
torch.bernoulli(b.float()) -> N C
x.bernoulli_(0.5) -> N C
x.cauchy_() -> N C
x.exponential_() -> N C
x.geometric_(0.5) -> N C
x.log_normal_() -> N C
x.normal_() -> N C
x.random_() -> N C
x.random_(3) -> N C
x.random_(0,2) -> N C
x.uniform_() -> N C
x.zero_() -> N C
x.fill_(1) -> N C
x.fill_(torch.tensor(1.)) -> N C
x.to(torch.long) -> N C
x.to('cpu') -> N C
x.to(torch.zeros(2)) -> N C
x.to(torch.zeros(2,dtype=torch.float64)) -> N C
x.double() -> N C
x.half() -> N C
x.bfloat16() -> N C
x.float() -> N C
x.int() -> N C
x.short() -> N C
x.char() -> N C
x.byte() -> N C
x.long() -> N C
x.cpu() -> N C
x.type(torch.long) -> N C
x.type_as(i) -> N C
x.contiguous() -> N C
x.t().contiguous() -> C N
x.clone() -> N C
x.detach() -> N C
x.data -> N C
x.requires_grad_() -> N C
x.softmax('C') -> N C
x.softmax(1) -> N C
x.softmax(dim='C') -> N C
x.log_softmax('C') -> N C
F.softmax(x,'C') -> N C
F.softmax(x,1) -> N C
F.softmax(x,dim='C') -> N C
F.log_softmax(x,dim='C') -> N C
F.softmin(x,dim=1) -> N C
torch.softmax(x,'C') -> N C
torch.softmax(x,'C',dtype=torch.float64) -> N C
x.cumsum('C') -> N C
x.cumsum(0) -> N C
torch.cumsum(x,'C',out=torch.empty(0)) -> N C
x.cumprod('C') -> N C
x.cummax('C') -> N C | N C
x.cummin(0) -> N C | N C
x.logcumsumexp('C') -> N C
x.cumsum_('C') -> N C
x.kthvalue(1) -> N | N
x.kthvalue(1,'C') -> N | N
x.kthvalue(1,'N',True) -> N C | N C
x.mode('C') -> N | N
x.mode() -> N | N
x.median() -> ()
x.median('C') -> N | N
x.median(0) -> C | C
x.nanmedian('C') -> N | N
x.sum() -> ()
x.sum('C') -> N
x.sum(0) -> C
x.sum(-1) -> N
x.sum(['C']) -> N
x.sum(('N','C')) -> ()
x.sum(['N','C'],keepdim=True) -> N C
x.sum('C',True) -> N C
x.sum('C',keepdim=True) -> N C
x.sum(dim='C') -> N
x.sum([]) -> ()
y.sum(['C','L']) -> N
y.sum([0,-1]) -> C
x.sum('C',dtype=torch.float64) -> N
torch.sum(x,'C',out=torch.empty(0)) -> N
torch.sum(x,'C',out=create('N:2')) -> N
x.mean('C') -> N
x.mean(['N','C']) -> ()
x.mean() -> ()
x.mean(0) -> C
x.prod() -> ()
x.prod('C') -> N
x.prod(0) -> C
x.prod('C',True) -> N C
x.std() -> ()
x.std('C') -> N
x.std(['N','C']) -> ()
x.std('C',False) -> N
x.std('C',unbiased=False,keepdim=True) -> N C
x.std(0) -> C
x.var('C') -> N
x.var(['C'],True,True) -> N C
torch.std_mean(x) -> () | ()
torch.std_mean(x,'C') -> N | N
torch.var_mean(x,'C') -> N | N
torch.var_mean(x,['N','C']) -> () | ()
x.max() -> ()
x.max('C') -> N | N
x.max(0) -> C | C
x.max('C',True) -> N C | N C
torch.max(x,'C',out=(torch.empty(0),torch.empty(0,dtype=torch.long))) -> N | N
x.min('C') -> N | N
x.all() -> ()
x.any() -> ()
bool3.any() -> ()
x.logsumexp('C') -> N
x.logsumexp(0) -> C
x.logsumexp(['N','C']) -> ()
x.t() -> C N
y.mT -> N L C
x.H -> C N
x.transpose('N','C') -> C N
x.transpose(0,1) -> C N
z.transpose(1,3) -> N W H C
x.swapaxes(0,1) -> C N
x.swapdims(0,1) -> C N
x.select(1,1) -> N
x.select('C',1) -> N
x.narrow(0,0,1) -> N C
x.split(1) -> N C | N C
x.split([1,2],1) -> N C | N C
x.chunk(2) -> N C | N C
x.chunk(2,1) -> N C | N C
x.unbind() -> C | C
x.unbind('C') -> N | N | N
x.unbind(1) -> N | N | N
x.tensor_split(2) -> N C | N C
one.squeeze() -> N
one.squeeze('C') -> N H W
one.squeeze(1) -> N H W
x.diagonal() -> -
z.diagonal() -> H W -
z.diagonal(1,3) -> N H -
z.diagonal(0,1,3) -> N H -
z.diagonal(outdim='E',dim1='C',dim2='W') -> N H E
z.diagonal(outdim='E',dim1='H',dim2='W',offset=1) -> N C E
torch.diagonal(z,outdim='E',dim1='C',dim2='W') -> N H E
x.expand(4,2,3) -> - N C
x.expand(2,3) -> N C
create('D:1').expand(3) -> D
x.expand_as(torch.zeros(4,2,3)) -> - N C
v.expand_as(x) -> - C
x.broadcast_to((4,2,3)) -> - N C
x.as_strided((6,),(1,)) -> -
x.resize_(2,3) -> N C
x.resize_([2,3]) -> N C
x.resize_as_(x) -> N C
u.resize_as_(x) -> N C
torch.randn(1).resize_as_(x) -> N C
x.mm(create('D:3','E:4')) -> N E
x.mm(torch.zeros(3,4)) -> N -
torch.zeros(4,2).mm(x) -> - C
x.mm(create('C:3','E:4')) -> N E
torch.mm(x,create('D:3','E:4'),out=torch.empty(0)) -> N E
torch.mm(x,create('D:3','E:4'),out=create('N:2','E:4')) -> N E
x.matmul(create('D:3','E:4')) -> N E
x.matmul(v) -> N
v.matmul(v) -> ()
v.matmul(create('A:3','B:2')) -> B
v.matmul(create('A:3','B:3','D:5')) -> A D
create('A:5','C:3','D:2').matmul(create('B:2')) -> A C
create('C:5','A:3','B:2').matmul(create('A:2','B:3')) -> C A B
create('C:5','A:3','B:2').matmul(create('None:1','A:2','B:3')) -> C A B
create('C:5','A:3','B:2').matmul(create('None:2','None:1','A:2','B:3')) -> - C A B
create('A:3','B:3','C:3','D:3').matmul(create('B:3','E:3','F:3')) -> A B C F
create('N:3','A:3','B:3').bmm(create('N:3','A:3','B:3')) -> N A B
create('N:3','A:3','B:3').bmm(torch.zeros(3,3,3)) -> N A -
x.mv(v) -> N
x.mv(torch.zeros(3)) -> N
torch.zeros(2,3).mv(v) -> -
x.mv(create('N:3')) -> N
v.dot(v) -> ()
v.dot(create('D:3')) -> ()
torch.addmm(create('N:2','E:4'),x,create('D:3','E:4')) -> N E
torch.addmm(torch.zeros(2,4),x,create('D:3','E:4')) -> N E
torch.addmm(create('N:2','None:4'),x,create('D:3','E:4')) -> N E
torch.addmm(create('E:4'),x,create('D:3','E:4')) -> N E
create('N:2','E:4').addmm_(x,create('D:3','E:4')) -> N E
torch.zeros(2,4).addmm_(x,create('D:3','E:4')) -> N E
torch.addmv(create('N:2'),x,v) -> N
torch.addmv(torch.zeros(2),x,v) -> N
torch.zeros(2).addmv_(x,v) -> N
torch.cdist(create('M:3','N:1','a:2','f:7'),create('N:5','b:11','f:7')) -> M N a b
torch.cdist(create('a:2','f:7'),create('b:11','g:7')) -> a b
torch.cat([x,x]) -> N C
torch.cat([x,x],1) -> N C
torch.cat([x,x],'C') -> N C
torch.cat([x,x],dim='C') -> N C
torch.cat([x,u]) -> N C
torch.cat([u,x]) -> N C
torch.cat([x,p]) -> N C
torch.cat([x,x],out=torch.empty(0)) -> N C
torch.hstack([x,x]) -> N C
torch.vstack([x,x]) -> N C
x[0] -> C
x[:,0] -> N
x[...,0] -> N
x[1:] -> N C
x[1:,::2] -> N C
x[0,0] -> ()
x[torch.tensor(0)] -> C
x[()] -> N C
x[...] -> N C
x[0:5:2] -> N C
list(x) -> C | C
x.index_fill('C',i1,5) -> N C
x.index_fill(0,i1,5) -> N C
x.index_fill_('C',i1,5) -> N C
x.index_fill_('C',i1,torch.tensor(4.)) -> N C
x.masked_fill(b,1.) -> N C
x.masked_fill(b.rename(None),1.) -> N C
x.masked_fill(torch.ones(3,dtype=torch.bool),1.) -> N C
x.masked_fill(torch.ones(3,dtype=torch.bool).rename('C'),1.) -> N C
u.masked_fill(b,1.) -> N C
x.masked_fill_(b,1.) -> N C
u.masked_fill_(b,1.) -> N C
x.masked_select(b) -> -
x.masked_select(b.rename(None)) -> -
v.masked_select(b) -> -
F.linear(x,torch.zeros(4,3)) -> N -
F.linear(x,torch.zeros(4,3),torch.zeros(4)) -> N -
F.linear(x,create('O:4','I:3')) -> N O
F.max_pool1d(y,2) -> N C L
F.max_pool2d(z,2) -> N C H W
F.adaptive_avg_pool2d(z,1) -> N C H W
F.max_pool2d(z,2,return_indices=True) -> N C H W | N C H W
F.cosine_similarity(x,x) -> N
torch.nn.Linear(3,4)(x) -> N -
torch.nn.ReLU()(x) -> N C
torch.nn.Dropout()(x) -> N C
torch.nn.Softmax(1)(x) -> N C
torch.nn.Sigmoid()(x) -> N C
torch.nn.Tanh()(x) -> N C
torch.nn.MaxPool2d(2)(z) -> N C H W
cx.resolve_conj() -> N C
torch.atleast_1d(x) -> N C
torch.broadcast_tensors(x,v) -> N C | - C
torch.diff(x) -> N C
torch.rsub(x,1) -> N C
torch.hypot(x,x) -> N C
torch.sub(x,x) -> N C
torch.ldexp(x,x) -> N C
torch.deg2rad(x) -> N C
torch.logical_not(x) -> N C
torch.nn.Parameter(x) -> N C
torch.nn.Parameter(x)+1 -> N C
torch.Tensor.sum(x,'C') -> N
x.unbind(dim='C') -> N | N | N
torch.unbind(x,'C') -> N | N | N
torch.select(x,'C',1) -> N
x.lt(x) -> N C
x.mul_(2) -> N C
x.div_(2) -> N C
x.pow_(2) -> N C
x.sub_(u) -> N C
x.masked_fill_(b,torch.tensor(1.)) -> N C
x.logical_and(x) -> N C
x.logical_and_(x) -> N C
x.clamp(min=x) -> N C
x.cumsum(dim='C',dtype=torch.float64) -> N C
x.erf_() -> N C
x.std(dim='C',correction=0) -> N
x.var(dim=['C'],correction=0) -> N
x.sigmoid_() -> N C
x.share_memory_() -> N C
x.sum(axis='C') -> N
x.sum(axis=1) -> N
""".strip().splitlines()


@pytest.mark.parametrize("line", RESULTS)
def test_names(line):
    call, _, names = line.rpartition(" -> ")
    assert written(eval(call, known())) == names


ERRORS = {
    RuntimeError: """
torch.zeros(2,names=('1',))
torch.zeros(2,names=('?',))
torch.zeros(2,names=('',))
torch.zeros(2,names=('a b',))
torch.zeros(2,names=('é',))
torch.zeros(2,names=('...',))
torch.zeros(2,1,names=('N',))
torch.zeros(2,1,1,names=('N','C','N'))
torch.full((2,),3,names=('N','C'))
torch.rand(2,3,names=('N','N'))
torch.tensor([1.],names=('N','C'))
torch.tensor(x,names=('N','D'))
x.rename()
x.rename(N='C')
x.rename(Q='batch')
x.rename('A',N='b')
x.rename(None,N='b')
x.rename('A')
x.rename('A','B','C')
x.rename('A','A')
x.rename('...','A','...')
z.rename('N','C','...','A','B','D')
u.rename(N='A')
torch.zeros([]).rename(N='a')
torch.zeros([]).rename('a')
x.rename('a b','c')
x.rename_('A')
x.rename_('A','A')
x.rename_()
x.refine_names('N','D')
x.refine_names('N',None)
x.refine_names(None,None)
u.refine_names('N')
u.refine_names('N','C','H')
p.refine_names('C',...)
u.refine_names('N','N')
u.refine_names(...,...)
u.refine_names()
z.refine_names('N',...,'H')
p.refine_names('N','N')
x.align_to('C')
x.align_to('D','N')
x.align_to(...,'N',None)
x.align_to(...,'N','N')
x.align_to('N','C','C')
x.align_to(...,...)
x.align_to()
u.align_to('N','C')
p.align_to('N','C')
create('None:2','None:3','None:5','C:7').align_to('C',None,'...')
z.align_as(x)
x.align_as(u)
u.align_as(x)
x.align_as(p)
z.flatten(['C','W'],'F')
z.flatten(['W','H'],'F')
z.flatten(['H','Q'],'F')
z.flatten([], 'F')
z.flatten(['H','W'],'N')
create('A:4').unflatten('A',(('B',3),('C',-1)))
create('A:4').unflatten('A',(('B',3),('C',2)))
create('A:4').unflatten('A',None)
create('A:4').unflatten('A',OrderedDict())
create('A:4').unflatten('Q',(('B',2),('C',2)))
create('A:4').unflatten('A',(('B',2),('B',2)))
x.unflatten('C',(('N',1),('B',3)))
x.size('Q')
x.stride('Q')
torch.abs(p,out=create('N:2','C:3'))
torch.abs(x,out=create('N:2','None:3'))
torch.abs(u,out=create('N:2','C:3'))
torch.abs(x,out=create('C:2','N:3'))
x-x.t()
x@x.t()
x+create('W:3')
x+create('C:2','N:3')
create('C:3','None:3')+create('None:3','C:3')
p+create('N:3')
x+create('N:2','D:3')
x+y
y*create('C:3')
p.add_(x)
v.add_(x)
x.add_(create('D:3'))
x.copy_(create('N:2','D:3'))
p.copy_(x)
torch.add(x,x,out=create('N:2','D:3'))
torch.add(u,u,out=create('N:2','D:3'))
torch.add(x,x,out=p)
torch.addcmul(x,x,create('A:2','B:3'))
x.bernoulli()
x.detach_()
x.softmax('Q')
x.cumsum('Q')
x.sum([None,'C'])
x.sum('Q')
y.sum(['N','N'])
torch.sum(x,'C',out=create('D:2'))
x.transpose('N','Q')
x.select('Q',1)
x.unbind('Q')
one.squeeze('Q')
x.resize_(3,2)
x.resize_(7)
x.resize_as_(u)
x.mm(create('D:3','N:4'))
torch.mm(x,create('D:3','E:4'),out=create('N:2','F:4'))
create('N:3','A:3','B:3').matmul(create('A:3','N:3','B:3'))
create('A:3','B:2').matmul(create('B:2','A:5'))
torch.matmul(torch.tensor(1.),v)
create('N:3','A:3','B:3').bmm(create('M:3','A:3','B:3'))
create('N:3','A:3','B:3').bmm(create('None:3','N:3','B:3'))
create('N:3','A:3','B:3').bmm(create('N:3','B:3','A:3'))
torch.addmm(create('N:2','Q:4'),x,create('D:3','E:4'))
torch.addmv(create('Q:2'),x,v)
torch.cat([x,x],'Q')
torch.cat([x,create('N:2','D:3')])
torch.cat([x,create('C:2','N:3')])
torch.cat([x,v])
torch.cat([x,x],out=create('A:4','B:3'))
x.__setitem__(0,create('D:3'))
x.masked_fill(torch.ones(3,dtype=torch.bool).rename('D'),1.)
p.masked_fill_(b,1.)
x.masked_select(torch.ones(3,dtype=torch.bool).rename('D'))
""",
    TypeError: """
torch.zeros(2,names='N')
torch.zeros(2,3,names='NC')
torch.zeros(2,names=(...,))
torch.zeros(2,names=(1,))
torch.zeros(2,names=5)
torch.full((2,3),3.,names='NC')
torch.empty(2,3,names='NC')
torch.rand(2,3,names='NC')
torch.tensor([1.],names='N')
x.rename(['A','B'])
x.rename(('A','B'))
x.rename({'N':'batch'})
x.rename(1)
x.rename(1,2)
u.refine_names(['N','C'])
x.align_to(['C','N'])
x.unsqueeze('N')
x['N']
x[0:1,'C']
""",
}


@pytest.mark.parametrize(
    "kind, call", [(kind, call) for kind, calls in ERRORS.items() for call in calls.strip().splitlines()]
)
def test_errors(kind, call):
    with pytest.raises(kind):
        eval(call, known())
