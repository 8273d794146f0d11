import inspect
from collections import OrderedDict

import pytest
import torch
from alike import same

import weft
from weft import nn


def add(lib, n=0):
    """A module that adds n and shows it."""

    class Add(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.n = n

        def extra_repr(self):
            return f"n={self.n}"

        def forward(self, x):
            return x + self.n

    return Add()


def some(lib, *ns):
    return [add(lib, n) for n in ns]


def set_item(container, index, value):
    container[index] = value


def del_item(container, index):
    del container[index]


def grown(container, other):
    container += other
    return container


def times(container, n):
    container *= n
    return container


# What is done with a container of a library; what it returns is looked at, and the container after it.
ORDERED = {
    "itself": lambda lib, c: c,
    "items": lambda lib, c: [c[0], c[-1], len(c), list(c), list(reversed(c)), bool(c)],
    "out of range": lambda lib, c: c[4],
    "out of range below": lambda lib, c: c[-5],
    "slices": lambda lib, c: [c[1:3], c[::2], c[:0]],
    "by name": lambda lib, c: c["0"],
    "by float": lambda lib, c: c[1.5],
    "set": lambda lib, c: set_item(c, 1, add(lib, 9)),
    "set from the end": lambda lib, c: set_item(c, -1, add(lib, 9)),
    "set out of range": lambda lib, c: set_item(c, 9, add(lib, 9)),
    "set a number": lambda lib, c: set_item(c, 1, 3),
    "delete": lambda lib, c: del_item(c, 1),
    "delete from the end": lambda lib, c: del_item(c, -1),
    "delete a slice": lambda lib, c: del_item(c, slice(0, 2)),
    "delete out of range": lambda lib, c: del_item(c, 7),
    "append": lambda lib, c: c.append(add(lib, 5)),
    "append a number": lambda lib, c: c.append(3),
    "extend": lambda lib, c: c.extend(some(lib, 5, 6)),
    "insert": lambda lib, c: c.insert(1, add(lib, 7)) and None,
    "insert at the end": lambda lib, c: c.insert(4, add(lib, 7)) and None,
    "pop": lambda lib, c: [c.pop(1), c.pop(-1)],
    "pop out of range": lambda lib, c: c.pop(9),
    "names": lambda lib, c: [name for name in dir(c) if name.isdigit()],
    "membership": lambda lib, c: [c[0] in c, 3 in c],
}
SEQUENTIAL = {
    "call": lambda lib, c: c(lib.ones(1)),
    "sum": lambda lib, c: c + lib.nn.Sequential(*some(lib, 8, 9)),
    "sum with a list": lambda lib, c: c + some(lib, 8),
    "grown": lambda lib, c: grown(c, lib.nn.Sequential(*some(lib, 8, 9))),
    "grown by a list": lambda lib, c: grown(c, some(lib, 8)),
    "times": lambda lib, c: [c * 2, 2 * c],
    "times none": lambda lib, c: c * 0,
    "times a float": lambda lib, c: c * 1.5,
    "grown n times": lambda lib, c: times(c, 3),
    "grown no times": lambda lib, c: times(c, 0),
    "insert before the end": lambda lib, c: c.insert(-1, add(lib, 7)),
    "insert out of range": lambda lib, c: c.insert(5, add(lib, 7)),
    "insert a number": lambda lib, c: c.insert(0, 3),
}
LISTS = {
    "call": lambda lib, c: c(lib.ones(1)),
    "sum": lambda lib, c: c + some(lib, 8, 9),
    "grown": lambda lib, c: grown(c, some(lib, 8, 9)),
    "times": lambda lib, c: c * 2,
    "extend by a number": lambda lib, c: c.extend(3),
    "nested": lambda lib, c: [lib.nn.ModuleList([c, c]), lib.nn.ModuleList([lib.nn.Sequential(*c)] * 2)],
}


def done(lib, container, action):
    return action(lib, container), container, list(container.state_dict())


@pytest.mark.refuses(
    [
        "out of range", "out of range below", "by name", "by float", "set out of range", "set a number",
        "delete out of range", "append a number", "pop out of range", "sum with a list", "grown by a list",
        "times none", "times a float", "grown no times", "insert out of range", "insert a number",
    ]
)  # fmt: skip
@pytest.mark.parametrize("name", [*ORDERED, *SEQUENTIAL])
def test_sequential_as_in_torch(name):
    action = (ORDERED | SEQUENTIAL)[name]
    same(lambda lib: done(lib, lib.nn.Sequential(*some(lib, 0, 1, 2, 3)), action))


@pytest.mark.refuses(
    [
        "out of range", "out of range below", "by name", "by float", "set out of range", "set a number",
        "delete out of range", "append a number", "pop out of range", "call", "times", "extend by a number",
    ]
)  # fmt: skip
@pytest.mark.parametrize("name", [*ORDERED, *LISTS])
def test_module_list_as_in_torch(name):
    action = (ORDERED | LISTS)[name]
    same(lambda lib: done(lib, lib.nn.ModuleList(some(lib, 0, 0, 2, 3)), action))


CONSTRUCTORS = {
    "named": lambda lib: lib.nn.Sequential(OrderedDict(first=add(lib), second=add(lib))),
    "named, a slice": lambda lib: lib.nn.Sequential(OrderedDict(first=add(lib), second=add(lib)))[:1],
    "a dict": lambda lib: lib.nn.Sequential({"first": add(lib)}),
    "a list": lambda lib: lib.nn.Sequential(some(lib, 1)),
    "a number": lambda lib: lib.nn.Sequential(3),
    "empty": lambda lib: [
        lib.nn.Sequential(),
        lib.nn.ModuleList(),
        lib.nn.ModuleDict(),
        lib.nn.Sequential()(3),
    ],
    "list of a number": lambda lib: lib.nn.ModuleList(3),
    "list of a module": lambda lib: lib.nn.ModuleList(add(lib)),
    "list of a generator": lambda lib: lib.nn.ModuleList(add(lib, n) for n in range(2)),
    "dict of pairs": lambda lib: lib.nn.ModuleDict([["a", add(lib)], ("b", add(lib, 1))]),
    "dict of a number": lambda lib: lib.nn.ModuleDict(3),
}


@pytest.mark.refuses(
    ["a dict", "a list", "a number", "list of a number", "list of a module", "dict of a number"]
)
@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_constructors_as_in_torch(name):
    same(CONSTRUCTORS[name])


DICTS = {
    "items": lambda lib, c: [c["a"], len(c), list(c), list(c.keys()), list(c.values()), list(c.items()), c.a],
    "missing": lambda lib, c: c["z"],
    "membership": lambda lib, c: ["a" in c, "z" in c],
    "set": lambda lib, c: set_item(c, "z", add(lib, 9)),
    "set a number": lambda lib, c: set_item(c, "z", 3),
    "set by number": lambda lib, c: set_item(c, 1, add(lib)),
    "set with a dot": lambda lib, c: set_item(c, "a.b", add(lib)),
    "set a method's name": lambda lib, c: set_item(c, "keys", add(lib)),
    "delete": lambda lib, c: del_item(c, "a"),
    "delete what is missing": lambda lib, c: del_item(c, "z"),
    "pop": lambda lib, c: c.pop("a"),
    "clear": lambda lib, c: c.clear(),
    "update": lambda lib, c: c.update({"z": add(lib, 3), "a": add(lib, 4)}),
    "update by pairs": lambda lib, c: c.update([("z", add(lib, 3)), ["y", add(lib, 4)]]),
    "update by itself": lambda lib, c: c.update(c),
    "update by a number": lambda lib, c: c.update(3),
    "update by single elements": lambda lib, c: c.update([("a",)]),
    "call": lambda lib, c: c(1),
}


@pytest.mark.refuses(
    [
        "missing", "set a number", "set by number", "set with a dot", "set a method's name",
        "delete what is missing", "update by a number", "update by single elements", "call",
    ]
)  # fmt: skip
@pytest.mark.parametrize("name", DICTS)
def test_module_dict_as_in_torch(name):
    same(lambda lib: done(lib, lib.nn.ModuleDict({"b": add(lib, 1), "a": add(lib, 2)}), DICTS[name]))


def parameter(lib, *shape):
    return lib.nn.Parameter(lib.zeros(*shape))


PARAMETER_LISTS = {
    "items": lambda lib, c: [c[0], c[-1], len(c), list(c), c[1:3]],
    "kinds": lambda lib, c: [isinstance(each, lib.nn.Parameter) for each in c],
    "out of range": lambda lib, c: c[7],
    "set": lambda lib, c: [set_item(c, 0, parameter(lib, 1)), set_item(c, -1, lib.ones(2))],
    "set out of range": lambda lib, c: set_item(c, 9, parameter(lib, 1)),
    "append": lambda lib, c: c.append(lib.ones(2, 3)).append("x"),
    "extend": lambda lib, c: c.extend([1, parameter(lib, 2)]),
    "extend by a number": lambda lib, c: c.extend(3),
    "extend by a tensor": lambda lib, c: c.extend(parameter(lib, 3)),
    "grown": lambda lib, c: grown(c, lib.nn.ParameterList([parameter(lib, 1)])),
    "call": lambda lib, c: c(1),
    "converted": lambda lib, c: c.to(lib.float64)[0].dtype,
    "names": lambda lib, c: [[name for name, _ in c.named_parameters()], [n for n in dir(c) if n.isdigit()]],
    "nested": lambda lib, c: [lib.nn.ParameterList([c]), lib.nn.ParameterList([add(lib)])],
    "single": lambda lib, c: [lib.nn.ParameterList([parameter(lib, 3)]), lib.nn.ParameterList()],
    "of a number": lambda lib, c: lib.nn.ParameterList(3),
    "of integers": lambda lib, c: lib.nn.ParameterList([lib.ones(2, dtype=lib.int64)]),
}


@pytest.mark.refuses(
    [
        "out of range", "set out of range", "extend by a number", "extend by a tensor", "call", "of a number",
        "of integers",
    ]
)  # fmt: skip
@pytest.mark.parametrize("name", PARAMETER_LISTS)
def test_parameter_list_as_in_torch(name):
    def program(lib):
        values = [parameter(lib, 2), parameter(lib, 3, 2), lib.ones(1), 3]
        return done(lib, lib.nn.ParameterList(values), PARAMETER_LISTS[name])

    same(program)


PARAMETER_DICTS = {
    "items": lambda lib, c: [c["a"], len(c), list(c), list(c.keys()), list(c.values()), list(c.items()), c.a],
    "missing": lambda lib, c: c["z"],
    "membership": lambda lib, c: ["a" in c, "z" in c, list(reversed(c))],
    "get": lambda lib, c: [c.get("a"), c.get("z"), c.get("z", 3)],
    "setdefault": lambda lib, c: [c.setdefault("a"), c.setdefault("z", lib.ones(2)), c.setdefault("y")],
    "set": lambda lib, c: [set_item(c, "z", lib.ones(3)), set_item(c, "y", 3)],
    "set by number": lambda lib, c: set_item(c, 1, lib.ones(1)),
    "set with a dot": lambda lib, c: set_item(c, "a.b", parameter(lib, 1)),
    "delete": lambda lib, c: del_item(c, "a"),
    "delete what is missing": lambda lib, c: del_item(c, "z"),
    "pop": lambda lib, c: [c.pop("a"), c.popitem()],
    "pop what is missing": lambda lib, c: c.pop("z"),
    "clear": lambda lib, c: c.clear(),
    "copy": lambda lib, c: [c.copy(), c.copy()["a"] is c["a"]],
    "fromkeys": lambda lib, c: [c.fromkeys(["x", "y"], parameter(lib, 1)), c.fromkeys(["x"])],
    "update": lambda lib, c: c.update({"z": lib.ones(3), "a": lib.ones(4), "c": lib.ones(1)}),
    "update in order": lambda lib, c: c.update(OrderedDict(z=lib.ones(3), c=lib.ones(1))),
    "update by pairs": lambda lib, c: c.update([("z", lib.ones(3)), ["c", lib.ones(1)]]),
    "update by single elements": lambda lib, c: c.update([("a",)]),
    "joined": lambda lib, c: [c | {"z": lib.ones(1)}, c | c],
    "joined in place": lambda lib, c: c.__ior__(lib.nn.ParameterDict({"a": lib.ones(7)})),
    "call": lambda lib, c: c(1),
    "names": lambda lib, c: [name for name, _ in c.named_parameters()],
    "nested": lambda lib, c: lib.nn.ParameterDict({"x": lib.nn.ParameterList([lib.ones(1)])}),
}


@pytest.mark.refuses(
    [
        "missing", "set by number", "set with a dot", "delete what is missing", "pop what is missing",
        "update by single elements", "call",
    ]
)  # fmt: skip
@pytest.mark.parametrize("name", PARAMETER_DICTS)
def test_parameter_dict_as_in_torch(name):
    def program(lib):
        values = {"b": parameter(lib, 2), "a": parameter(lib, 3), "n": 5}
        return done(lib, lib.nn.ParameterDict(values), PARAMETER_DICTS[name])

    same(program)


def test_a_sequential_may_be_extended_by_itself():
    layers = nn.Sequential(*some(weft, 1, 2))
    assert [layer.n for layer in layers.extend(layers)] == [1, 2, 1, 2]


def test_a_module_list_inserts_as_a_list_does():
    layers = nn.ModuleList(some(weft, 1, 2))
    layers.insert(-1, add(weft, 7))
    layers.insert(9, add(weft, 8))
    assert [layer.n for layer in layers] == [1, 7, 2, 8]


@pytest.mark.parametrize("name", ["Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"])
def test_methods_have_the_parameters_of_pytorchs(name):
    theirs = getattr(torch.nn, name)
    methods = {method: value for method, value in inspect.getmembers(theirs, inspect.isfunction)}
    own = {method for method in methods if not hasattr(torch.nn.Module, method) or method in vars(theirs)}
    for method in own - {"__call__", "_get_item_by_idx", "_get_abs_string_index", "_key_to_attr"}:
        ours = inspect.signature(getattr(getattr(nn, name), method))
        assert list(ours.parameters) == list(inspect.signature(methods[method]).parameters), method
