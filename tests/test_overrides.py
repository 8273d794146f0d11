"""`__torch_function__`: subclasses of Tensor and other classes that have a say, side by side with PyTorch."""

import copy
import io
import operator
import pickle
import threading
import types
import warnings

import pytest
import torch

import weft
import weft.overrides
from weft.core.overrides import override_types

LIBRARIES = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])


class Mine(weft.Tensor):
    """A subclass without anything of its own."""


class Theirs(torch.Tensor):
    """Its twin."""


PLAIN = {weft: Mine, torch: Theirs}


def logging_class(lib):
    """A subclass that notes which function is called with which types."""

    class Logging(lib.Tensor):
        log: list = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            kinds = tuple(type(arg).__name__ for arg in args)
            cls.log.append((func.__name__, kinds, tuple(kind.__name__ for kind in types)))
            return super().__torch_function__(func, types, args, kwargs or {})

    return Logging


def duck_class(lib):
    """A class that is no tensor, and answers with the function that it was asked about."""

    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, types, args, kwargs or {}

    return Duck


def declining_class(base, name):
    def decline(cls, func, types, args=(), kwargs=None):
        return NotImplemented

    return type(name, (base,), {"__torch_function__": classmethod(decline)})


# ---- Results are of the subclass ------------------------------------------------------------------------------------


EXPRESSIONS = [
    "x + 1", "1 - x", "x + p", "p + x", "p * x", "p ** x", "p - x", "p @ x", "p < x", "p == x", "-x", "abs(x)", "+x", "x @ p", "x ** 2", "2 ** x",
    "x[0]", "x[x > 1]", "x.view(2, 1)", "x.t()", "x.T", "x.real", "x.data", "x.detach()", "x.clone()", "x.to(lib.float64)", "p.to(x)",
    "x.sum()", "x.max()", "x.add_(1)", "x.zero_()", "p.add(x)", "p.add_(x)", "p.copy_(x)", "x.split(1)[0]", "x.unbind()[1]", "x.max(0)[1]",
    "x.sort().values", "x.new_zeros(2)", "x.new_tensor([1.0])", "x.new(3)", "list(x)[0]", "lib.add(x, p)", "lib.add(p, x, alpha=2)",
    "lib.cat([p, x])", "lib.stack((x, p))", "lib.zeros_like(x)", "lib.rand_like(x)", "lib.where(x > 1, x, p)",
    "lib.einsum('i,i->', p, x)", "lib.broadcast_tensors(p, x)[0]", "lib.atleast_2d(x)", "lib.nn.functional.relu(x)",
    "lib.nn.functional.softmax(x, 0)", "lib.nn.functional.mse_loss(x, p)", "lib.nn.functional.relu_(x)", "lib.linalg.norm(x)",
    "lib.fft.fft(x)", "lib.special.erf(x)", "lib.add(p, p, out=x)", "lib.tensor(x)", "lib.as_tensor(x)", "lib.dropout(x, 0.5, True)",
    "lib.nn.Linear(2, 3)(x)", "lib.nn.ReLU()(x)", "x.as_subclass(lib.Tensor)", "x.shape", "x.dtype", "x.tolist()", "len(x)", "x.numpy()",
    "x.index_put_((lib.tensor([0]),), p[:1])", "p.masked_fill_(x > 1, 0.0)", "x.requires_grad_()", "x.nonzero()",
    "lib.nn.Parameter(x)", "lib.nn.Parameter(p) + 1", "lib.gru_cell(lib.ones(1, 2), lib.ones(1, 1), lib.ones(3, 2).as_subclass(type(x)), lib.ones(3, 1))",
]  # fmt: skip


def outcome(expression, lib, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(expression, {"lib": lib, "x": x, "p": lib.tensor([3.0, 4.0])})


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_type_of_results(expression):
    names = {Mine: "subclass", Theirs: "subclass"}
    found, expected = (type(outcome(expression, lib, PLAIN[lib]([1.0, 2.0]))) for lib in (weft, torch))
    assert names.get(found, found.__name__) == names.get(expected, expected.__name__)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_function_and_types_that_handlers_see(expression):
    logs = []
    for lib in (weft, torch):
        cls = logging_class(lib)
        x = cls([1.0, 2.0])
        cls.log.clear()
        outcome(expression, lib, x)
        logs.append(
            [
                (name.removeprefix("special_"), *(kinds if name != "einsum" else ()))
                for name, kinds, _ in cls.log
                if name not in ("dim", "is_floating_point")
            ]
        )
    found, expected = logs
    if expression in ("lib.as_tensor(x)", "lib.nn.ReLU()(x)", "lib.nn.functional.softmax(x, 0)"):
        return  # PyTorch asks with other arguments, or not at all
    assert [each[0] for each in found] == [each[0] for each in expected]
    if "functional" not in expression and "dropout" not in expression:
        assert [each[1:2] for each in found if "unbind" not in each] == [
            each[1:2] for each in expected if "unbind" not in each
        ]


@pytest.mark.parametrize(
    "symbol", "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift lt le gt ge eq ne".split()
)
def test_operators_name_their_methods(symbol):
    logs = []
    for lib in (weft, torch):
        cls = logging_class(lib)
        x, p = lib.tensor([5, 6]).as_subclass(cls), lib.tensor([1, 2])
        cls.log.clear()
        function = getattr(operator, symbol)
        for left, right in ((x, x), (x, 2), (2, x), (p, x), (x, p)):
            assert type(function(left, right)) is cls
        in_place = getattr(operator, f"i{symbol.rstrip('_')}", None)
        if in_place and symbol != "truediv":
            assert in_place(x, 1) is x
        logs.append([(name, kinds) for name, kinds, _ in cls.log])
    assert logs[0] == logs[1]


@LIBRARIES
def test_methods_and_functions_are_told_apart(lib):
    seen = []

    class Watching(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x, p = Watching([1.0]), lib.ones(1)
    (
        lib.add(x, 1),
        x.add(1),
        x + 1,
        p + x,
        p.add(x),
        p.add_(x),
        x.shape,
        lib.sum(x),
        x.sum(),
        lib.nn.functional.relu(x),
    )
    assert lib.add is not lib.Tensor.add
    method = lib.Tensor.add
    expected = [lib.add, method, method, method, method, lib.Tensor.add_, lib.Tensor.shape.__get__]
    expected += [lib.sum, lib.Tensor.sum, lib.nn.functional.relu]
    assert seen == expected


def test_results_are_views_of_plain_tensors_in_the_graph():
    for lib in (weft, torch):
        x = PLAIN[lib]([1.0, 2.0]).requires_grad_()
        y = x * 2
        assert y.grad_fn.name() == "AliasBackward0" and type(y._base) is lib.Tensor
        (y * y).sum().backward()
        assert type(x.grad) is lib.Tensor and x.grad.tolist() == [8.0, 16.0]
        (dx,) = lib.autograd.grad((x * x).sum(), x)
        assert type(dx) is PLAIN[lib] and dx.tolist() == [2.0, 4.0]
        t = lib.ones(2, requires_grad=True)
        PLAIN[lib](t).sum().backward()
        assert t.grad.tolist() == [1.0, 1.0]


def test_rules_of_backward_are_not_asked_about():
    for lib in (weft, torch):
        cls = logging_class(lib)
        x = cls([1.0, 2.0]).requires_grad_()
        loss = (x * x).exp().sum().as_subclass(lib.Tensor)
        cls.log.clear()
        loss.backward()
        assert cls.log == []


def test_printing():
    for x, y in (
        (Mine([1.0, 2.0]), Theirs([1.0, 2.0])),
        (Mine([1.0]).requires_grad_() * 2, Theirs([1.0]).requires_grad_() * 2),
    ):
        assert repr(x) == repr(y).replace("Theirs(", "Mine(")


@LIBRARIES
def test_copies_and_pickles_keep_the_class(lib):
    x = PLAIN[lib]([1.0, 2.0])
    x.note = "kept"
    file = io.BytesIO()
    lib.save(x, file)
    file.seek(0)
    copies = [copy.copy(x), pickle.loads(pickle.dumps(x)), lib.load(file, weights_only=False)]
    if lib is weft:  # PyTorch asks for a `new_empty` that gives the subclass
        copies.append(copy.deepcopy(x))
    for y in copies:
        assert type(y) is PLAIN[lib] and y.note == "kept" and y.tolist() == [1.0, 2.0]


@LIBRARIES
def test_switching_it_off(lib):
    x = PLAIN[lib]([1.0])
    for off in (lib._C.DisableTorchFunctionSubclass, lib._C.DisableTorchFunction):
        with off():
            assert type(x + 1) is type(lib.add(x, 1)) is type(x.view(1, 1)) is lib.Tensor
            assert x.add_(1) is x
            assert not lib.overrides.has_torch_function((x,))
        assert type(x + 1) is PLAIN[lib]


@LIBRARIES
def test_making_subclasses(lib):
    cls, t = PLAIN[lib], lib.ones(2)
    x = lib.Tensor._make_subclass(cls, t, True)
    assert (
        type(x) is cls and x.is_leaf and x.requires_grad and x.data_ptr() == t.data_ptr() and x._base is None
    )
    assert t.as_subclass(cls)._base is t
    for call, error in (
        (lambda: lib.Tensor._make_subclass(int, t), TypeError),
        (lambda: lib.Tensor._make_subclass(cls, 3), TypeError),
        (lambda: t.as_subclass(int), TypeError),
        (lambda: lib.Tensor._make_subclass(cls, t.long(), True), RuntimeError),
    ):
        with pytest.raises(error):
            call()


@LIBRARIES
def test_classes_have_the_members_of_tensor(lib):
    """`Class.size is Tensor.size` is how programs ask whether a class overrides a member."""
    cls = logging_class(lib)

    class Own(lib.Tensor):
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise NotImplementedError

    for name in ("add", "__add__", "__radd__", "dtype", "device", "layout", "requires_grad", "shape"):
        assert getattr(cls, name) is getattr(lib.Tensor, name), name
    for name in ("size", "stride", "dim", "numel"):
        assert getattr(Own, name) is getattr(lib.Tensor, name), name
    x = lib.ones(2).as_subclass(cls)
    assert (cls.add(x, 1).tolist(), cls.view(x, 1, 2).shape, cls.size(x)) == ([2, 2], (1, 2), (2,))
    assert [name for name, *_ in cls.log if name != "tolist"] == ["add", "view", "__get__", "size"]


@LIBRARIES
def test_reflected_operators_of_two_classes(lib):
    class Declines(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    class Reflects(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "reflected" if func is lib.Tensor.__rpow__ else NotImplemented

    assert Declines([1.0]) ** Reflects([1.0]) == "reflected"


# ---- Classes of users -----------------------------------------------------------------------------------------------


@LIBRARIES
def test_own_methods_call_those_of_tensor(lib):
    class Doubling:
        def mean(self):
            return "mixed in"

    class Special(Doubling, lib.Tensor):
        def add(self, other):
            return super().add(2 * other)

        @property
        def shape(self):
            return tuple(super().shape)

    x = Special([1.0, 2.0])
    assert type(x.add(1)) is Special and x.add(1).tolist() == [3.0, 4.0]
    assert x.mean() == "mixed in" and x.shape == (2,)
    assert isinstance(x, lib.Tensor) and issubclass(Special, lib.Tensor)

    class Further(Special):
        __slots__ = ("mark",)

    y = Further([1.0])
    y.mark = 1
    assert type(y * 2) is Further and type(y + x) is Further and type(x + y) is Further


@LIBRARIES
def test_scalar_times_identity(lib):
    """The example of PyTorch's documentation: a class that is no tensor, with a table of functions."""
    handled = {}

    def implements(function):
        def register(implementation):
            handled[function] = implementation
            return implementation

        return register

    class Scalar:
        def __init__(self, n, value):
            self._n, self._value = n, value

        def tensor(self):
            return self._value * lib.eye(self._n)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in handled or not all(issubclass(t, (lib.Tensor, Scalar)) for t in types):
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    @implements(lib.mean)
    def mean(input):
        return float(input._value) / input._n

    @implements(lib.add)
    def add(input, other):
        return lib.add(*(each.tensor() if isinstance(each, Scalar) else each for each in (input, other)))

    two = Scalar(2, 2)
    assert lib.mean(two) == 1.0
    assert lib.add(two, lib.ones(2, 2)).tolist() == [[3.0, 1.0], [1.0, 3.0]]
    assert lib.add(lib.ones(2, 2), two).tolist() == [[3.0, 1.0], [1.0, 3.0]]
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.mul'"):
        lib.mul(two, 3)
    with pytest.raises(TypeError, match="no implementation found for 'torch.nn.functional.relu' on types"):
        lib.nn.functional.relu(two)


@LIBRARIES
def test_metadata_travels(lib):
    """A wrapper with data beside the tensor, as in PyTorch's documentation."""

    class Metadata:
        def __init__(self, data, metadata=None):
            self._t, self._metadata = lib.as_tensor(data), metadata

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            metadata = next(each._metadata for each in args if hasattr(each, "_metadata"))
            args = [getattr(each, "_t", each) for each in args]
            return Metadata(func(*args, **(kwargs or {})), metadata=metadata)

    x = Metadata([[1.0], [2.0]], "metres")
    for result in (lib.add(x, lib.ones(1)), lib.mul(lib.tensor(3.0), x), lib.sum(x, dim=0), lib.ones(1) + x):
        assert result._metadata == "metres" and isinstance(result._t, lib.Tensor)
    assert lib.mul(lib.tensor(3.0), x)._t.tolist() == [[3.0], [6.0]]


@LIBRARIES
def test_units_travel(lib):
    """A subclass with an attribute that its handler passes on."""

    class Measured(lib.Tensor):
        @staticmethod
        def __new__(cls, values, unit):
            return super().__new__(cls, values)

        def __init__(self, values, unit):
            self.unit = unit

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs or {})
            if isinstance(result, cls):
                result.unit = next(each.unit for each in args if isinstance(each, cls))
            return result

    x = Measured([1.0, 2.0], "m")
    for y in (
        x * 2,
        2 - x,
        lib.ones(2) - x,
        x[0],
        lib.sum(x),
        x.view(2, 1),
        lib.nn.Linear(2, 2)(lib.ones(2)) * x,
    ):
        assert isinstance(y, Measured) and y.unit == "m"


@LIBRARIES
def test_functions_of_autograd_see_the_class_forward(lib):
    seen = []

    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            seen.append(type(x))
            return x * 2

        @staticmethod
        def backward(ctx, ct):
            seen.append(type(ctx.saved_tensors[0]))
            return ct * 2

    x = PLAIN[lib]([1.0, 2.0]).requires_grad_()
    y = Double.apply(x)
    y.sum().backward()
    assert type(y) is PLAIN[lib] and seen == [PLAIN[lib]] * 2 and x.grad.tolist() == [2.0, 2.0]


@LIBRARIES
def test_the_switch_is_of_its_thread(lib):
    found = []
    with lib._C.DisableTorchFunctionSubclass():
        thread = threading.Thread(target=lambda: found.append(type(PLAIN[lib]([1.0]) + 1)))
        thread.start()
        thread.join()
    assert found == [PLAIN[lib]]


@LIBRARIES
def test_order_of_types(lib):
    asked = []

    def handler(cls, func, types, args=(), kwargs=None):
        asked.append(cls.__name__)
        return NotImplemented

    def define(name, *bases):
        return type(name, bases, {"__torch_function__": classmethod(handler)})

    base = define("Base", lib.Tensor)
    derived, duck = define("Derived", base), define("Duck", object)
    a, b, d = lib.ones(2).as_subclass(base), lib.ones(2).as_subclass(derived), duck()
    for args, order in (
        ((a, b), ["Derived", "Base"]),
        ((a, a), ["Base"]),
        ((d, a), ["Duck", "Base"]),
        ((a, d), ["Base", "Duck"]),
    ):
        asked.clear()
        with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.add'"):
            lib.add(*args)
        assert asked == order
    asked.clear()
    with pytest.raises(TypeError, match="torch.stack"):
        lib.stack([a, d, b])
    assert asked == ["Derived", "Base", "Duck"]
    for function, left, right in (
        (operator.add, a, b),
        (operator.add, lib.ones(2), d),
        (operator.matmul, d, lib.ones(2)),
    ):
        with pytest.raises(TypeError, match="unsupported operand"):
            function(left, right)
    with pytest.raises(TypeError, match=r"torch.Tensor.shape.__get__"):
        a.shape  # noqa: B018


@LIBRARIES
def test_handler_that_is_no_class_method(lib):
    class Old:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return self

    old = Old()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns once in a process
        assert lib.mean(old) is old
    if lib is weft:
        with pytest.warns(UserWarning, match="as a plain method is deprecated"):
            lib.mean(old)


@LIBRARIES
def test_parameters_have_no_say(lib):
    parameter = lib.nn.Parameter(lib.ones(2))
    assert type(parameter + 1) is type(lib.add(1, parameter)) is lib.Tensor
    assert not lib.overrides.has_torch_function_unary(parameter)
    assert type(parameter).__torch_function__ is lib._C._disabled_torch_function_impl

    class Silent(lib.Tensor):
        __torch_function__ = lib._C._disabled_torch_function_impl

    assert type(Silent([1.0]) + 1) is lib.Tensor and type(lib.sum(Silent([1.0]))) is lib.Tensor

    class Loud(lib.nn.Parameter):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    loud = Loud(lib.ones(2))
    assert loud + 1 == "add" and lib.mul(1, loud) == "mul" and loud.sum() == "sum"


# ---- Other classes ----------------------------------------------------------------------------------------------------


DUCKS = [
    "lib.mean(e, dim=0)", "lib.cat([e, e])", "lib.cat((p, e), 0)", "lib.add(p, e, alpha=2)", "p.add(e)", "p.add_(e)", "p + e", "e + p", "p @ e",
    "p - e", "p ** e", "p > e", "p / e", "e / p", "p[e]", "lib.stack([e])", "lib.zeros_like(e)", "lib.sum(p, dim=e)", "lib.linalg.norm(e)",
    "lib.broadcast_tensors(e, p)", "lib.einsum('i', e)", "lib.argsort(e)", "lib.max(p, e)", "lib.nn.functional.linear(p, e)",
    "lib.nn.functional.relu(e, inplace=True)", "lib.exp(e)", "lib.exp(p, out=e)", "lib.mm(p, e)", "p.copy_(e)", "p.mul(e)", "lib.clamp(p, e)",
    "lib.div(p, e, rounding_mode='floor')", "lib.fft.fft(e)", "lib.special.erf(e)",
]  # fmt: skip


@pytest.mark.parametrize("first", [True, False], ids=["never seen before", "known"])
@pytest.mark.parametrize("expression", DUCKS)
def test_ducks(expression, first, monkeypatch):
    seen = []
    for lib in (torch, weft):
        duck, p = duck_class(lib)(), lib.ones(2)
        if first and lib is weft:
            before = set(override_types)
            override_types.clear()
        elif lib is weft:
            override_types.add(type(duck))
        func, kinds, args, kwargs = eval(expression, {"lib": lib, "e": duck, "p": p})
        names = [type(arg).__name__ for arg in args]
        name = func.__name__.removeprefix("linalg_").removeprefix("special_").removeprefix("fft_")
        seen.append((name, names, sorted(kwargs)))
        assert type(duck) in kinds
    if first:
        override_types.update(before)
    assert seen[0] == seen[1]


def test_every_overridable_function_asks():
    duck = duck_class(weft)()
    listed = weft.overrides.get_overridable_functions()
    attempts = ((duck,), (duck, duck), (duck, duck, duck), *((duck,) * n for n in (4, 5, 6)))
    for known_before in (True, False):
        silent = []
        for namespace, functions in listed.items():
            for function in functions if isinstance(namespace, types.ModuleType) else ():
                before = set(override_types)
                override_types.clear()
                override_types.update({type(duck)} if known_before else ())
                if not any(asks(function, args) for args in attempts):
                    silent.append(function.__name__)
                override_types.update(before)
        assert silent == []


def asks(function, args):
    try:
        return function(*args)[0] is function
    except (TypeError, ValueError, AttributeError, RuntimeError):  # not enough arguments
        return False


def test_every_method_asks():
    asked = []

    class Asked(weft.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func)
            return None

    x = weft.ones(2).as_subclass(Asked)
    for func in weft.overrides.get_overridable_functions()[weft.Tensor]:
        asked.clear()
        if func.__name__ == "__get__":
            func.__self__.__get__  # noqa: B018
            name = weft.overrides.resolve_name(func).split(".")[2]
            getattr(x, name)
        else:
            getattr(x, next(name for name, member in vars(weft.Tensor).items() if member is func))(1)
        assert len(asked) == 1


# ---- torch.overrides ---------------------------------------------------------------------------------------------------


@LIBRARIES
def test_questions(lib):
    o, x, duck, p = lib.overrides, PLAIN[lib]([1.0]), duck_class(lib)(), lib.ones(1)
    assert [o.is_tensor_like(each) for each in (x, duck, p, 3)] == [True, True, True, False]
    assert [o.has_torch_function((each,)) for each in (x, duck, p, 3)] == [True, True, False, False]
    assert o.has_torch_function_variadic(p, x) and not o.has_torch_function_unary(p)
    assert o.is_tensor_method_or_property(lib.Tensor.add) and o.is_tensor_method_or_property(
        lib.Tensor.T.__get__
    )
    assert not o.is_tensor_method_or_property(lib.add)
    for function, name in (
        (lib.add, "torch.add"),
        (lib.Tensor.add, "torch.Tensor.add"),
        (lib.Tensor.shape.__get__, "torch.Tensor.shape.__get__"),
        (lib.nn.functional.gelu, "torch.nn.functional.gelu"),
        (lib.linalg.norm, "torch.linalg.norm"),
        (len, None),
    ):
        assert o.resolve_name(function) == name
    assert lib.Tensor.grad.__get__ in o.get_default_nowrap_functions()
    listed = o.get_overridable_functions()
    assert (
        lib.add in listed[lib]
        and lib.Tensor.add in listed[lib.Tensor]
        and lib.tensor in o.get_ignored_functions()
    )


@LIBRARIES
def test_functions_of_users(lib):
    def double(x):
        if lib.overrides.has_torch_function((x,)):
            return lib.overrides.handle_torch_function(double, (x,), x)
        return x + x

    @lib.overrides.wrap_torch_function(lambda x: (x,))
    def triple(x):
        return 3 * x

    duck = duck_class(lib)()
    assert double(duck)[0] is double and triple(duck)[0] is triple and triple(2) == 6
    declining = declining_class(lib.Tensor, "Declining")([1.0])
    with pytest.raises(TypeError, match="no implementation found for '.*double' on types that implement"):
        double(declining)


@LIBRARIES
def test_handlers_of_einsum_get_the_operands_one_by_one(lib):
    duck = duck_class(lib)()
    for operands in ((duck, duck), ([duck, duck],), ((duck, lib.ones(1)),)):
        function, _, args, _ = lib.einsum("i,i", *operands)
        assert function is lib.einsum
        assert len(args) == 3 and args[0] == "i,i" and args[1] is duck


def test_writes_to_objects_of_subclasses_are_recorded():
    class Tagged(weft.Tensor):
        pass

    a, b = weft.ones(2, requires_grad=True), weft.ones(2, requires_grad=True)
    tagged = (a * 1).as_subclass(Tagged)
    tagged.add_(b).mul_(3)
    tagged.as_subclass(weft.Tensor).sum().backward()
    assert type(tagged) is Tagged and a.grad.tolist() == b.grad.tolist() == [3, 3]
