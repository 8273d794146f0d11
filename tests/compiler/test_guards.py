"""Compiled functions notice each change of what they read: results are those of the function itself, never those of an older call."""

import builtins
import functools
import operator
import types
from collections import defaultdict, namedtuple

import pytest

import weft
from weft import nn
from weft.compiler import _compiled
from weft.compiler._interpreter import IS_KNOWN
from weft.engine.memory import FENCE

pytestmark = pytest.mark.skipif(not IS_KNOWN, reason="the bytecode of this Python is not known")


class Shared:
    """What the functions below read."""

    def __init__(self):
        self.sizes = [1, 2]
        self.names = ["a"]
        self.items = Items([1, 2])
        self.nested = [[1, 2], [0, 5]]
        self.factors = {"a": 2.0}
        self.counted = defaultdict(int, a=2)
        self.tensors = [weft.ones(2, 3), weft.full((2, 3), 2.0)]
        self.object = Thing()
        self.things = [Thing()]
        self.pair = (Thing(),)
        self.layers = [nn.Linear(3, 3)]
        self.added = functools.partial(weft.add, alpha=2)
        self.module = types.ModuleType("computed")
        self.module.__getattr__ = lambda name: self.object.factor
        self.named = Pair(weft.ones(2, 3), weft.ones(2, 3))


class Thing:
    factor = 2.0
    bias = 1.0

    def scaled(self, x):
        return x * self.factor

    @classmethod
    def made(cls):
        return cls.bias


class OtherThing(Thing):
    def scaled(self, x):
        return x * -1


class Items(list):
    pass


Pair = namedtuple("Pair", "first second")


def of_keywords(x, *, factor=2.0):
    return x * factor


def extended(x, shared):
    found = []
    found.extend(shared.tensors)
    return x * found[0] + found[-1]


def updated(x, shared):
    found = {}
    found.update(shared.factors)
    return x * found["a"]


def popped(x, shared):
    waiting = [shared.layers[0]]
    return waiting.pop(0)(x)


def by_key(x, shared):
    order = [0, 1]
    order.sort(key=lambda k: shared.sizes[k])
    return x * order[0]


def set_to(owner, name, value):
    return lambda shared: setattr(operator.attrgetter(owner)(shared) if owner else shared, name, value)


def set_item(owner, key, value):
    return lambda shared: getattr(shared, owner).__setitem__(key, value)


def other_weight(shared):
    shared.layers[0].weight = nn.Parameter(weft.zeros(3, 3))


CASES = {
    "list compared": (lambda x, s: x * 2 if s.sizes == [1, 2] else x, set_item("sizes", 0, 7)),
    "list joined": (lambda x, s: x * len("".join(s.names)), set_item("names", 0, "bcd")),
    "list in text": (lambda x, s: (x * 1, f"{s.sizes}"), set_item("sizes", 0, 7)),
    "object in text": (lambda x, s: (x * 1, "{.factor}".format(s.object)), set_to("object", "factor", 5.0)),  # noqa: UP032
    "nested list": (lambda x, s: x * s.nested[0][0], lambda s: s.nested[0].__setitem__(0, 7)),
    "nested lists compared": (lambda x, s: x * max(s.nested)[0], lambda s: s.nested[1].__setitem__(0, 7)),
    "list extended by": (extended, set_item("tensors", 0, weft.zeros(2, 3))),
    "dictionary updated by": (updated, set_item("factors", "a", 7.0)),
    "sorted by a key": (by_key, set_item("sizes", 0, 9)),
    "default dictionary": (lambda x, s: x * s.counted["a"], set_item("counted", "a", 7)),
    "missing of a default dictionary": (lambda x, s: x * s.counted["b"], set_item("counted", "b", 7)),
    "object in a list": (lambda x, s: x * s.things[0].factor, lambda s: setattr(s.things[0], "factor", 7.0)),
    "object in a tuple": (lambda x, s: x * s.pair[0].factor, lambda s: setattr(s.pair[0], "factor", 7.0)),
    "module in a list": (lambda x, s: s.layers[0](x), other_weight),
    "module taken from a list": (popped, other_weight),
    "forward of one module": (
        lambda x, s: s.layers[0](x),
        lambda s: setattr(s.layers[0], "forward", lambda x: x * 3),
    ),
    "class variable hidden": (lambda x, s: x * s.object.factor, set_to("object", "factor", 5.0)),
    "method hidden": (lambda x, s: s.object.scaled(x), set_to("object", "scaled", lambda x: x * 9)),
    "another class": (lambda x, s: s.object.scaled(x), set_to("object", "__class__", OtherThing)),
    "keywords of a partial": (lambda x, s: s.added(x, x), lambda s: s.added.keywords.update(alpha=5)),
    "arguments of a partial": (lambda x, s: s.added(x * 2, x), lambda s: None),
    "computed by a module": (lambda x, s: x * s.module.factor, set_to("object", "factor", 5.0)),
    "called by operator.call": (
        lambda x, s: operator.call(lambda y: y * s.object.factor, x),
        set_to("object", "factor", 5.0),
    ),
    "named tuple": (lambda x, s: x * s.named[0], lambda s: s.named[0].fill_(7)),
    "class method": (lambda x, s: x * s.object.made() * Thing.made(), set_to("object", "bias", 5.0)),
    "subclass of list": (lambda x, s: x * s.items[0] + sum(s.items), set_item("items", 0, 7)),
}


@pytest.mark.parametrize("case", CASES)
def test_changes_are_noticed(case):
    function, change = CASES[case]
    compiled, shared = weft.compile(function), Shared()
    for x in (weft.arange(6.0).reshape(2, 3), weft.ones(2, 3)):
        for _ in range(2):
            assert text(compiled(x, shared)) == text(function(x, shared))
        change(shared)
        assert text(compiled(x, shared)) == text(function(x, shared))


def text(result):
    return repr([each.tolist() if isinstance(each, weft.Tensor) else each for each in of_tuple(result)])


def of_tuple(result):
    return result if isinstance(result, tuple) else (result,)


def test_defaults_by_name_are_noticed():
    compiled, x = weft.compile(of_keywords), weft.ones(2)
    original = of_keywords.__kwdefaults__
    try:
        compiled(x)
        original["factor"] = 3.0
        assert compiled(x).tolist() == [3.0, 3.0]
        of_keywords.__kwdefaults__ = {"factor": 4.0}
        assert compiled(x).tolist() == [4.0, 4.0]
    finally:
        of_keywords.__kwdefaults__ = {"factor": 2.0}


def test_names_of_builtins_are_noticed(monkeypatch):
    monkeypatch.setattr(builtins, "weft_factor", 2.0, raising=False)
    compiled = weft.compile(lambda x: x * weft_factor)  # noqa: F821
    assert compiled(weft.ones(1)).item() == 2
    monkeypatch.setattr(builtins, "weft_factor", 3.0)
    assert compiled(weft.ones(1)).item() == 3


def test_a_variable_without_value_raises_the_error_of_the_function():
    def outer():
        factor = 2.0

        def forget():
            nonlocal factor
            del factor

        return lambda x: x * factor, forget

    function, forget = outer()
    compiled = weft.compile(function)
    compiled(weft.ones(1))
    forget()
    with pytest.raises(NameError):
        compiled(weft.ones(1))


def test_lists_from_outside_are_changed_by_each_call():
    nested, flat = [[1]], [1]

    def function(x, argument):
        nested[0].append(1)
        argument[0].append(1)
        return x * len(operator.iadd(flat, [1])) * len(nested[0]) * len(argument[0])

    compiled, argument = weft.compile(function), [[1]]
    for k in range(2, 5):
        assert compiled(weft.ones(1), argument).item() == k**3
        assert len(nested[0]) == len(argument[0]) == len(flat) == k


def test_which_arguments_are_the_same_tensor():
    x, y = weft.ones(2), weft.full((2,), 3.0)
    compared = weft.compile(lambda a, b: (a is b, a * b))
    assert [compared(x, y)[0], compared(x, x)[0], compared(y, x)[0]] == [False, True, False]
    scaled = weft.compile(lambda a: a * x)  # x is the argument, then another tensor is
    assert [scaled(x).tolist(), scaled(y).tolist()] == [[1, 1], [3, 3]]

    def trained(a, b):
        (a * b * b).sum().backward()

    compiled = weft.compile(trained)
    a, b = (weft.tensor([2.0], requires_grad=True) for _ in range(2))
    for _ in range(2):
        compiled(a, b)
        a.grad = b.grad = None
    compiled(a, a)
    assert a.grad.item() == 12 and b.grad is None


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_gradients_that_are_arguments(order):
    def function(*args):
        p, g = args[order[0]], args[order[1]]
        return p.detach() + g * 10 + (0 if p.grad is None else p.grad)

    compiled = weft.compile(function)
    p, other = weft.ones(1, requires_grad=True), weft.full((1,), 3.0)
    p.grad = weft.full((1,), 2.0)
    for g, expected in ((p.grad, 23), (p.grad, 23), (other, 33), (p.grad, 23)):
        pair = p, g
        assert compiled(*(pair[k] for k in order)).item() == expected
    p.grad = None
    assert compiled(*((p, other)[k] for k in order)).item() == 31


def test_offsets_that_count_from_the_begin_of_the_memory():
    base = weft.arange(12.0)
    compiled = weft.compile(lambda x: x.as_strided((2,), (1,), 1) * 1)
    assert compiled(base[:6]).tolist() == compiled(base[6:]).tolist() == [1, 2]


def test_which_arguments_are_the_same_list():
    items = [1]
    compiled = weft.compile(lambda x, given, pair: (x * 1, given is items, pair[0] is pair[1]))
    assert compiled(weft.ones(1), [1], [items, [1]])[1:] == (False, False)
    assert compiled(weft.ones(1), items, [items, items])[1:] == (True, True)


def test_slices_and_lists_of_unusual_objects_are_arguments():
    end = weft.tensor(1)
    compiled = weft.compile(lambda x, part: x[part] * 2)
    assert compiled(weft.ones(3), slice(0, end)).shape == (1,)
    end.fill_(2)
    assert compiled(weft.ones(3), slice(0, end)).shape == (2,)
    within_itself = []
    within_itself.append(within_itself)
    assert weft.compile(lambda x, items: x * len(items))(weft.ones(1), within_itself).item() == 1


def test_a_list_that_is_returned_twice_is_one_object():
    def function(x):
        found = [x + 1]
        return found, found

    compiled = weft.compile(function)
    for _ in range(2):
        a, b = compiled(weft.ones(1))
        assert a is b


def test_gradients_of_modules_in_lists():
    layers = [nn.Linear(3, 3)]
    compiled = weft.compile(lambda x: layers[0](x))
    for k in range(1, 4):
        compiled(weft.ones(2, 3)).sum().backward()
        assert layers[0].bias.grad.tolist() == [2.0 * k] * 3


def test_class_methods_need_one_record():
    thing = Thing()
    compiled = _compiled.Compiled(lambda x: x * thing.made() * Thing.made())
    for _ in range(4):
        compiled(weft.ones(1))
    assert len(compiled.records) <= 1


def test_batched_cotangents():
    function = lambda x: (x * x * x).tanh()  # noqa: E731
    compiled, x = weft.compile(function), weft.tensor([0.5, 1.0, 2.0], requires_grad=True)
    compiled(x).sum().backward()
    for _ in range(2):
        found, expected = (
            weft.autograd.grad(each(x), x, weft.eye(3), is_grads_batched=True)[0]
            for each in (compiled, function)
        )
        assert found.tolist() == expected.tolist()


def test_offsets_are_not_repeated():
    base = weft.arange(4.0)
    compiled = weft.compile(lambda x: x * weft.Tensor.storage_offset(x))
    assert [compiled(base[k : k + 1]).item() for k in (1, 2)] == [1, 4]


def test_a_warning_is_issued_once_for_each_call():
    compiled = weft.compile(lambda x: nn.functional.mse_loss(x, weft.ones(1, 3)))
    for _ in range(2):
        with pytest.warns(UserWarning, match="target size") as caught:
            compiled(weft.ones(2, 3))
        assert len(caught) == 1


def test_classes_with_torch_function_leave_the_records_of_plain_tensors():
    """Libraries define such classes, `torch.nn.attention.bias` does, and programs that import them are recorded as others."""

    class Told(weft.Tensor):
        pass

    told = weft.ones(3).as_subclass(Told)
    weft.add(told, 1)
    compiled = weft.compile(lambda x: (x * 2).exp())
    for _ in range(3):
        compiled(weft.ones(3))
    inner = next(iter(compiled.__closure__)).cell_contents
    assert FENCE or len(inner.records) == 1
    assert type(compiled(told)) is Told
    with_closure = weft.compile(lambda x: x + told)
    assert type(with_closure(weft.ones(3))) is type(with_closure(weft.ones(3))) is Told
