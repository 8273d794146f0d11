"""What can be asked of tensors."""

import pytest
from expressions import check, lines
from hypothesis import given
from hypothesis import strategies as st

EXPRESSIONS = """
torch.is_tensor(torch.ones(2))
torch.is_tensor(3)
torch.is_storage(torch.ones(2).untyped_storage())
torch.is_storage(3)
torch.is_floating_point(torch.ones(2))
torch.is_complex(torch.ones(2))
torch.is_conj(torch.ones(2))
torch.is_neg(torch.ones(2))
torch.is_signed(torch.ones(2))
torch.numel(torch.ones(2,3))
torch.numel(3)  # raises
torch.is_floating_point(3)  # raises
torch.result_type(torch.ones(2), 1)
torch.result_type(torch.ones(2, dtype=torch.int32), 1.0)
torch.result_type(1, 2.)
torch.result_type(1, torch.tensor(2.))
torch.result_type(torch.ones(2, dtype=torch.uint8), torch.ones(2, dtype=torch.int8))
torch.result_type(torch.ones(2, dtype=torch.uint16), torch.ones(2, dtype=torch.int8))  # raises
torch.result_type(torch.ones(2), 1j)
torch.result_type(True, 1)
torch.result_type('a', 1)  # raises
torch.get_device(torch.ones(2))
torch.isclose(torch.ones(2), torch.ones(2), torch.tensor(1), torch.tensor(1.5))
torch.isclose(torch.ones(2), torch.ones(2), 1.0, torch.tensor(1.0, requires_grad=True))  # raises
torch.ones(2, 3).dim_order()
torch.ones(2, 3).to_sparse().dim_order()  # raises
torch.ones(2, 3).is_same_size(torch.ones(2, 3))
torch.ones(2, 3).is_same_size(torch.nested.nested_tensor([torch.ones(3)]))  # raises
torch.nested.nested_tensor([torch.ones(3)]).is_same_size(torch.ones(1, 3))  # raises
torch.nested.nested_tensor([torch.ones(3)]).is_same_size(torch.nested.nested_tensor([torch.ones(3)]))
torch.empty_like(torch.ones(2, 3).to_sparse(), memory_format=torch.preserve_format)  # raises
torch.empty_like(torch.ones(2, 3).to_sparse(), memory_format=torch.contiguous_format, layout=torch.strided).layout
torch._assert_async(torch.tensor([]))  # raises
torch.device(-1)  # raises
torch.FloatTensor.is_sparse, torch.FloatTensor.is_xpu, torch.sparse.FloatTensor.is_sparse, torch.sparse.FloatTensor.is_xpu
torch.logcumsumexp(torch.ones(3), 0, out=torch.empty(3))
torch.logcumsumexp(torch.ones(3), 0, out=torch.empty(3, dtype=torch.float64))  # raises
torch.normal(torch.ones(2, 3), torch.zeros(2, 3), out=torch.zeros(3))
torch.normal(torch.ones(2, 3), torch.zeros(2, 3), out=torch.zeros(2, 3))
torch.ones(2).get_device()
torch.typename(torch.ones(2))
torch.typename(3)
torch.typename(np.ones(2))
torch.typename(torch.Tensor).partition('.')[2]  # weft.Tensor
torch.ones(2).is_shared()
torch.ones(2).is_pinned()
torch.ones(2).is_sparse
torch.ones(2).is_sparse_csr
torch.ones(2).is_quantized
torch.ones(2).is_mkldnn
torch.ones(2).is_nested
torch.ones(2).is_mps
torch.ones(2).is_vulkan
torch.ones(2).is_maia
torch.ones(2).is_ipu
torch.ones(2).is_xla
torch.ones(2).is_mtia
torch.ones(2).is_inference()
torch.is_inference(torch.ones(2))
torch.ones(2).is_distributed()
torch.ones(2).is_coalesced()  # raises
torch.ones(2).sparse_dim()
torch.ones(2).dense_dim()
torch.ones(2,3).dim_order()
torch.ones(2,3).t().dim_order()
torch.ones(2,3,4,5).to(memory_format=torch.channels_last).dim_order()
torch.ones(2,3).dim_order(ambiguity_check=True)
torch.ones(1,1).dim_order(ambiguity_check=True)  # raises
torch.ones(2).pin_memory()  # raises
torch.ones(2).name
torch.ones(2)._version
torch.ones(2).add_(1)._version
torch.ones(2).copy_(torch.ones(2))._version
torch.empty(2).fill_(3)._version
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_same_as_torch(expression):
    check(expression)


DTYPES = "bool uint8 int8 int64 uint16 float16 bfloat16 float32 float64 complex64 complex128".split()
operands = st.one_of(
    st.sampled_from(["True", "1", "1.5", "1j"]),
    st.builds("torch.ones({}, dtype=torch.{})".format, st.sampled_from(["2", "()"]), st.sampled_from(DTYPES)),
)


@pytest.mark.may_raise(least=0.5)
@given(a=operands, b=operands)
def test_result_type(a, b):
    check(f"torch.result_type({a}, {b})")
