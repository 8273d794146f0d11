"""The way of a call with a tensor that is not plain: to the rules of its layout, and past all plans."""

import copy
import operator
import pickle
import subprocess
import sys

import pytest

import weft
from weft.core import layout_calls
from weft.core.layout_spec import NotStrided, refuse_layouts
from weft.core.registry import FUNCTIONS
from weft.ops.elementwise.arithmetic import ADD
from weft.utils._python_dispatch import TorchDispatchMode


def sparse():
    return weft.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))


def test_it_is_an_object_of_the_class_tensor():
    x = sparse()
    assert type(x) is weft.Tensor
    assert (x.layout, x.is_sparse, x.shape, x.numel(), x.dtype) == (
        weft.sparse_coo,
        True,
        (2, 3),
        6,
        weft.float32,
    )


def test_equal_specs_are_one_object():
    assert sparse().spec is sparse().spec
    assert pickle.loads(pickle.dumps(sparse().spec)) is sparse().spec


@pytest.mark.parametrize(
    "call",
    [
        lambda x: weft.abs(x),
        lambda x: weft.absolute(x),
        lambda x: x.abs(),
        lambda x: abs(x),
        lambda x: x.coalesce().abs_(),
        lambda x: weft.abs(x, out=sparse()),
        lambda x: weft.abs(input=x),
    ],
)
def test_every_form_of_a_function_reaches_its_rule(call):
    assert call(sparse()).to_dense().tolist() == [[0, 0, 3], [4, 0, 5]]


@pytest.mark.parametrize(
    "call", [lambda x: 2 * x, lambda x: x * 2, lambda x: x.mul_(2), lambda x: weft.mul(2, x)]
)
def test_swapped_operands(call):
    assert call(sparse()).to_dense().tolist() == [[0, 0, 6], [8, 0, 10]]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: weft.exp(x), "torch.exp"),
        (lambda x: x.view(6), "Tensor.view"),
        (lambda x: x.as_strided((1,), (1,)), "torch.as_strided"),
        (lambda x: weft.special.bessel_j0(x), "torch.special.bessel_j0"),
        (lambda x: x.cumsum_(0), "Tensor.cumsum_"),
    ],
)
def test_a_function_without_a_rule_says_what_to_write_instead(call, name):
    with pytest.raises(
        NotImplementedError, match=f"^{name} is not implemented for sparse tensors: write x.to_dense"
    ):
        call(sparse())


def test_no_plan_is_made_for_it():
    plain = weft.ones(2, 3)
    for key in ((sparse().spec,), (plain.spec, sparse().spec), ((plain.spec, (sparse().spec,)), 1)):
        with pytest.raises(NotStrided):
            refuse_layouts(key)
    before = len(ADD.plans)
    with pytest.raises(NotStrided):
        ADD.plans[sparse().spec, plain.spec]
    assert len(ADD.plans) == before


def test_its_storage_gives_no_address():
    with pytest.raises(NotStrided):
        sparse()._storage.ptr  # noqa: B018


def test_a_rule_takes_each_name_once():
    with pytest.raises(ValueError, match="'abs' already"):
        layout_calls.known_rules["sparse"].rule("abs")(lambda x: x)


def test_public_names():
    name = layout_calls.public_name
    assert name(weft.add) == name(weft.Tensor.add) == name(weft.Tensor.__add__) == "add"
    assert name(weft.absolute) == "abs" and name(weft.Tensor.add_) == "add_"
    assert name(weft.linalg.norm) == "linalg.norm" and name(weft.Tensor.__eq__) == "eq"
    assert name(vars(weft.Tensor)["T"].fget) == "T"


def test_gradients_reach_leaves_of_both_kinds():
    x = sparse().requires_grad_()
    (x * 2).to_dense().sum().backward()
    (x * 3).to_dense().sum().backward()
    assert x.grad.layout is weft.sparse_coo and x.grad.to_dense().tolist() == [[0, 0, 5], [5, 0, 5]]
    w = weft.ones(2, 3, requires_grad=True)
    (w.to_sparse() * 3).to_dense().sum().backward()
    assert w.grad.tolist() == [[3, 3, 3], [3, 3, 3]]


MODE = """
import weft as torch
from weft.overrides import TorchFunctionMode
class Names(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print(func.__name__, end=" ")
        return func(*args, **kwargs or {})
def calls(x, y):
    x.abs(), y.abs(), y + y, y.detach(), torch.cat([y, y]), y.T, x.detach()
y = torch.ones(2, 2)
with Names():
    x = torch.sparse_coo_tensor([[0], [1]], [2.0], (2, 2))
    calls(x, y)
calls(x, y)
with Names():
    calls(x, y)
"""


@pytest.mark.parametrize("calls", ["python", "native"])
def test_modes_see_the_calls_before_and_after_the_first_such_tensor(calls):
    found = subprocess.run(
        [sys.executable, "-c", MODE], capture_output=True, text=True, env={"WEFT_CALLS": calls, "PATH": ""}
    )
    expected = "abs abs add detach cat __get__ detach "
    assert found.stdout == "sparse_coo_tensor " + expected + expected, found.stderr


BOTH_ORDERS = """
import sys
import weft as torch
from weft.families import native_calls
make = lambda: torch.sparse_coo_tensor([[0], [1]], [2.0], (2, 2))
y = torch.ones(2, 2)
if sys.argv[1] == "sparse first":
    x = make()
    native_calls.install()
else:
    native_calls.install()
    x = make()
for _ in range(3):
    assert torch.add(y, y).sum().item() == 8 and (y * y).t().shape == (2, 2) and y.detach().abs().tolist() == y.tolist()
    assert torch.add(x, x).to_dense()[0, 1] == 4 and x.detach().abs().to_dense()[0, 1] == 2
    assert (x + x).is_sparse and (y + x).tolist() == [[1, 3], [1, 1]] and (-x).to_dense()[0, 1] == -2
"""


@pytest.mark.parametrize("order", ["sparse first", "machine code first"])
def test_machine_code_and_guards_in_both_orders(order):
    found = subprocess.run([sys.executable, "-c", BOTH_ORDERS, order], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_a_name_without_public_function_has_no_rule():
    """A misspelt name would never be asked for."""
    members = vars(weft.Tensor).keys() | FUNCTIONS.keys()
    for rules in layout_calls.known_rules.values():
        unknown = [
            name for name in rules.functions if name not in members and name.rstrip("_") not in members
        ]
        assert [name for name in unknown if not callable(operator.attrgetter(name)(weft))] == []


def test_a_write_counts_for_autograd():
    x = sparse()
    before = x._version
    x.mul_(2)
    assert x._version == before + 1


@pytest.mark.parametrize("make", [sparse, lambda: weft.ones(2, 3, names=("N", "C"))])
def test_what_watches_or_transforms_plain_tensors_leaves_others_alone(make):
    x = make()
    compiled = weft.compile(lambda x: x * 2)
    for _ in range(3):
        assert compiled(x).layout is x.layout and compiled(x).names == x.names
    with pytest.raises(NotImplementedError, match="vmap.*tensors: write"):
        weft.vmap(lambda x: x * 2)(x)
    assert (weft.nn.Parameter(x) * 2).layout is x.layout


ERRORS = """
import weft as torch
y = torch.ones(2, 2)
def errors():
    for call in (lambda: torch.add(y), lambda: y.abs(1), lambda: torch.special.expit(), lambda: y.__getitem__()):
        try:
            call()
        except TypeError as error:
            yield str(error)
before = list(errors())
torch.sparse_coo_tensor([[0]], [2.0], (2,))
assert (after := list(errors())) == before and len(after) == 4, (before, after)
"""


@pytest.mark.parametrize("calls", ["python", "native"])
def test_errors_of_plain_tensors_stay_the_same_after_the_first_such_tensor(calls):
    found = subprocess.run(
        [sys.executable, "-c", ERRORS], capture_output=True, text=True, env={"WEFT_CALLS": calls, "PATH": ""}
    )
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("convert", [lambda x: x.coalesce(), lambda x: x.to_dense().to_sparse_csr()])
def test_a_write_into_the_values_counts_for_autograd(convert):
    x, w = convert(sparse()), weft.ones(3, 2, requires_grad=True)
    before = x._version
    product = weft.mm(x, w)
    x.values().mul_(2)
    assert x._version == before + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
    x.mul_(2)
    assert x._version == before + 2


def test_nested_lists_of_data_are_left_to_the_function():
    """Without a tensor of another layout nobody looks into them."""
    sparse()
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="too many dimensions"):
        weft.tensor(endless)
    assert weft.tensor([[1.0, 2.0]]).tolist() == [[1.0, 2.0]]
    assert weft.cat([weft.zeros(2, 3).to_sparse(), sparse()]).is_sparse


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: weft.sparse.mm(x, 3), "argument 'mat2' .* must be Tensor, not int"),
        (lambda x: x.sparse_mask(3), "argument 'mask' .* must be Tensor, not int"),
        (lambda x: weft.neg([x, x]), "argument 'input' .* must be Tensor, not list"),
        (lambda x: weft.add(x, "a"), "argument 'other' .* must be Tensor, not str"),
        (lambda x: x + "a", "unsupported operand"),
        (lambda x: x @ "a", "unsupported operand"),
        (lambda x: "a" - x, "unsupported operand"),
        (lambda x: x.sum("a"), "must be int, not str"),
        (lambda x: x.transpose(0, "a"), "must be int, not str"),
        (lambda x: weft.cat(x), "must be tuple of Tensors, not Tensor"),
        (lambda x: weft.sin(x, 3), "takes 1 positional argument"),
    ],
)
def test_a_wrong_argument_is_an_error_of_types(call, message):
    with pytest.raises(TypeError, match=message):
        call(sparse())


def test_an_operator_asks_an_operand_of_another_class():
    class Other:
        def __radd__(self, other):
            return "mine"

        __rmatmul__ = __radd__

    assert sparse() + Other() == sparse() @ Other() == "mine"


def test_an_error_of_a_rule_stays_where_the_types_are_right():
    with pytest.raises(RuntimeError, match="same size"):
        sparse() + 1
    with pytest.raises(IndexError):
        sparse().sum(5)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, nested: weft.nn.functional.embedding(weft.tensor([0]), nested),
        lambda x, nested: x.__setitem__(0, nested),
    ],
)
def test_a_rule_that_gets_its_tensor_in_another_place_has_no_answer(call):
    nested = weft.nested.nested_tensor([weft.eye(2), weft.eye(2)], layout=weft.jagged)
    with pytest.raises(NotImplementedError, match="is not implemented for nested tensors: write"):
        call(weft.eye(2), nested)


def test_functions_of_views_and_products_run_as_they_are():
    x = weft.eye(3).to_sparse()
    assert weft.atleast_3d(x).shape == (3, 3, 1)
    assert weft.atleast_3d(x).to_dense().equal(weft.atleast_3d(weft.eye(3)))
    assert weft.tensordot(x, weft.ones(3, 4), 1).equal(weft.ones(3, 4))


def test_rules_are_asked_where_classes_are_not():
    x = weft.eye(2).to_sparse()
    with weft._C.DisableTorchFunctionSubclass():
        assert weft.cat([x, x]).layout is weft.sparse_coo
        assert weft.add(x, other=x).layout is weft.sparse_coo


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
@pytest.mark.parametrize(
    "call",
    [
        lambda x, q: x + q,
        lambda x, q: x @ q,
        lambda x, q: weft.cat([x, q]),
        lambda x, q: weft.eye(2).set_(x),
    ],
)
def test_layouts_that_do_not_go_together_are_named(call):
    q = weft.quantize_per_tensor(weft.ones(2, 2), 0.1, 0, weft.quint8)
    with pytest.raises(NotImplementedError, match="is not implemented for sparse tensors: write"):
        call(weft.eye(2).to_sparse(), q)
    with pytest.raises(
        RuntimeError, match="Could not set tensor of type c10::quint8 to a tensor of type float"
    ):
        weft.eye(2).set_(q)


@pytest.mark.parametrize(
    ("name", "copied"), [("__reduce_ex__", pickle.dumps), ("__deepcopy__", copy.deepcopy)]
)
def test_a_layout_without_a_rule_for_copies_is_refused(monkeypatch, name, copied):
    x = sparse()
    monkeypatch.delitem(x.spec.rules.functions, name)
    with pytest.raises(NotImplementedError, match=f"{name} is not implemented for sparse tensors"):
        copied(x)


def test_members_that_ask_no_rules_ask_none_under_a_mode():
    class Mode(weft.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **kwargs or {})

    x = weft.ones(2).refine_names("row").requires_grad_()
    (x * 2).sum().backward()
    quantized = weft.quantize_per_tensor(weft.ones(3), 0.1, 0, weft.quint8)
    with Mode():
        assert x.grad.tolist() == [2, 2] and quantized.device == weft.device("cpu")
        x.grad = None
        assert x.grad is None


@pytest.mark.parametrize("base", [weft.overrides.TorchFunctionMode, TorchDispatchMode])
def test_lazy_modules_under_modes(base):
    """Once there is a sparse tensor, calls look for layouts. An uninitialized parameter has none."""

    def handle(self, func, types, args=(), kwargs=None):
        return func(*args, **kwargs or {})

    weft.eye(2).to_sparse()
    mode = type("Mode", (base,), {"__torch_function__": handle, "__torch_dispatch__": handle})
    with mode():
        lazy = weft.nn.LazyLinear(3)
        assert lazy(weft.ones(2, 2)).shape == (2, 3)
