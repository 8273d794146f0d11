import collections
import gc
import importlib
import pickle
import warnings
import weakref
from collections import OrderedDict

import pytest
import torch
from alike import backward, same

import weft
from weft import nn


def linear(lib, n_in=2, n_out=2):
    layer = lib.nn.Linear(n_in, n_out, bias=False)
    layer.weight = lib.nn.Parameter(lib.arange(n_in * n_out).reshape(n_out, n_in) / 10)
    return layer


def recorder(seen, tag, answer=None):
    """A hook that notes what it is given, without the module, and gives `answer(what it was given)`."""

    def hook(module, *given):
        seen.append((tag, given))
        return answer(*given) if answer else None

    return hook


def called(lib, hooks, x=None, layer=None, **register):
    """Call a layer with hooks [(kind, answer, options)] and run backward; what they saw, and what came out."""
    layer = layer or linear(lib)
    seen = []
    for kind, answer, options in hooks:
        getattr(layer, f"register_{kind}")(recorder(seen, kind, answer), **options)
    x = lib.ones(1, 2, requires_grad=True) if x is None else x
    output = layer(x)
    if output.requires_grad:
        backward(output)
    return seen, output, x.grad, layer.weight.grad


FORWARD = {
    "seen": [("forward_pre_hook", None, {}), ("forward_hook", None, {})],
    "replaced": [
        ("forward_pre_hook", lambda args: args[0] * 2, {}),
        ("forward_hook", lambda args, y: y + 1, {}),
    ],
    "a tuple": [("forward_pre_hook", lambda args: (args[0] * 2,), {})],
    "with kwargs": [
        ("forward_pre_hook", lambda args, kwargs: ((), {"input": args[0] * 3}), {"with_kwargs": True}),
        ("forward_hook", lambda args, kwargs, y: y * 2, {"with_kwargs": True}),
    ],
    "with kwargs, wrong": [("forward_pre_hook", lambda args, kwargs: 3, {"with_kwargs": True})],
    "in order": [("forward_hook", lambda args, y: y + 1, {}), ("forward_hook", lambda args, y: y * 2, {})],
    "first": [
        ("forward_hook", lambda args, y: y + 1, {}),
        ("forward_hook", lambda args, y: y * 2, {"prepend": True}),
        ("forward_pre_hook", None, {}),
        ("forward_pre_hook", lambda args: args[0] + 1, {"prepend": True}),
    ],
}
BACKWARD = {
    "full": [("full_backward_hook", None, {}), ("full_backward_pre_hook", None, {})],
    "replaced": [
        ("full_backward_hook", lambda gi, go: (gi[0] * 2,), {}),
        ("full_backward_pre_hook", lambda go: (go[0] * 10,), {}),
    ],
    "several": [
        ("full_backward_hook", lambda gi, go: (gi[0] + 1,), {}),
        ("full_backward_hook", lambda gi, go: (gi[0] * 2,), {"prepend": True}),
        ("full_backward_pre_hook", lambda go: (go[0] + 1,), {}),
        ("full_backward_pre_hook", lambda go: (go[0] * 2,), {"prepend": True}),
    ],
    "wrong number": [("full_backward_hook", lambda gi, go: (gi[0], gi[0]), {})],
    "wrong number before": [("full_backward_pre_hook", lambda go: (go[0], go[0]), {})],
    "both kinds": [("full_backward_hook", None, {}), ("backward_hook", None, {})],
    "both kinds, the other way": [("backward_hook", None, {}), ("full_backward_hook", None, {})],
}


@pytest.mark.refuses(["with kwargs, wrong"])
@pytest.mark.parametrize("name", FORWARD)
def test_forward_hooks_as_in_torch(name):
    same(lambda lib: called(lib, FORWARD[name]))


@pytest.mark.refuses(["wrong number", "wrong number before", "both kinds", "both kinds, the other way"])
@pytest.mark.parametrize("name", BACKWARD)
def test_backward_hooks_as_in_torch(name):
    same(lambda lib: called(lib, BACKWARD[name]))


@pytest.mark.refuses(1)
def test_backward_hook_without_a_gradient_for_the_input():
    same(lambda lib: called(lib, BACKWARD["full"], x=lib.ones(1, 2)))
    same(lambda lib: called(lib, BACKWARD["replaced"], x=lib.ones(1, 2)))


def test_backward_hook_where_nothing_is_recorded():
    def program(lib):
        with lib.no_grad():
            return called(lib, BACKWARD["full"])

    same(program)


def test_backward_hook_with_several_inputs_and_outputs():
    def program(lib):
        class Both(lib.nn.Module):
            def forward(self, x, y, z):
                return x * y, x + 1, z

        seen = []
        module = Both()
        module.register_full_backward_hook(recorder(seen, "full"))
        outputs = module(lib.ones(2, requires_grad=True), lib.ones(2), 3)
        backward(outputs[0])
        return seen, outputs

    same(program)


def test_backward_hook_runs_once_for_each_gradient_of_the_output():
    def program(lib):
        class Cube(lib.nn.Module):
            def forward(self, x):
                return x * x * x

        layer, seen = Cube(), []
        layer.register_full_backward_hook(recorder(seen, "full"))
        x = lib.ones(1, 2, requires_grad=True)
        y = layer(x)
        (first,) = lib.autograd.grad(y, x, lib.ones_like(y), create_graph=True)
        backward(first)  # reaches the input around the output
        return seen, x.grad

    same(program)


def test_backward_hook_in_a_second_derivative():
    def program(lib):
        layer, seen = linear(lib), []
        layer.register_full_backward_hook(recorder(seen, "full"))
        x = lib.ones(1, 2, requires_grad=True)
        y = layer(x) ** 2
        (first,) = lib.autograd.grad(y, x, lib.ones_like(y), create_graph=True)
        backward(first)
        return seen, x.grad

    same(program)


def test_the_older_backward_hook_sees_the_last_step():
    def program(lib):
        class Double(lib.nn.Module):
            def forward(self, x):
                return x * 2

        module, seen = Double(), []
        module.register_backward_hook(recorder(seen, "older"))
        backward(module(lib.ones(2, requires_grad=True)))
        return [(tag, given[0][:1], given[1]) for tag, given in seen]

    same(program)


@pytest.mark.parametrize("register", ["full_backward_hook", "full_backward_pre_hook", "forward_hook", "forward_pre_hook"])  # fmt: skip
def test_hooks_of_all_modules_as_in_torch(register):
    def program(lib):
        hooks = importlib.import_module(f"{lib.nn.__name__}.modules.module")
        seen, model = [], lib.nn.Sequential(linear(lib), linear(lib))
        handle = getattr(hooks, f"register_module_{register}")(recorder(seen, register))
        try:
            backward(model(lib.ones(1, 2, requires_grad=True)))
        finally:
            handle.remove()
        backward(model(lib.ones(1, 2, requires_grad=True)))
        return seen

    same(program)


@pytest.mark.parametrize("what", ["parameter", "buffer", "module"])
def test_registration_hooks_as_in_torch(what):
    def program(lib):
        hooks = importlib.import_module(f"{lib.nn.__name__}.modules.module")
        seen = []
        answer = lambda name, value: lib.nn.Parameter(lib.zeros(1)) if name == "replaced" else None  # noqa: E731
        handle = getattr(hooks, f"register_module_{what}_registration_hook")(recorder(seen, what, answer))
        try:
            module = lib.nn.Module()
            module.weight = lib.nn.Parameter(lib.ones(1))
            module.replaced = lib.nn.Parameter(lib.ones(1))
            module.register_buffer("offset", lib.ones(1))
            module.offset = lib.zeros(1)
            module.other = lib.nn.Buffer(lib.ones(1))
            module.child = lib.nn.Module()
            module.child = None
            module.add_module("second", lib.nn.Module())
        finally:
            handle.remove()
        return seen, module.replaced

    same(program)


def test_a_hook_that_is_always_called():
    def program(lib):
        layer, seen = linear(lib), []
        layer.register_forward_hook(recorder(seen, "always"), always_call=True)
        layer.register_forward_hook(recorder(seen, "not"))
        try:
            layer(lib.ones(1, 7))
        except RuntimeError:
            return seen

    same(program)


def test_an_error_in_a_hook_that_is_always_called_is_a_warning():
    layer = linear(weft)
    layer.register_forward_hook(lambda *_: 1 / 0, always_call=True)
    with pytest.warns(UserWarning, match="always_call"), pytest.raises(RuntimeError, match="."):
        layer(weft.ones(1, 7))


def test_a_hook_may_remove_itself():
    layer, seen = linear(weft), []

    def hook(*_):
        seen.append(1)
        handle.remove()

    handle = layer.register_forward_hook(hook)
    layer(weft.ones(1, 2))
    layer(weft.ones(1, 2))
    assert seen == [1] and not layer._forward_hooks


def test_a_handle_as_context_and_in_a_pickle():
    layer = linear(weft)
    with layer.register_forward_hook(print, with_kwargs=True):
        assert layer._forward_hooks and layer._forward_hooks_with_kwargs
    assert not layer._forward_hooks and not layer._forward_hooks_with_kwargs
    handle = layer.register_forward_hook(print)
    copied, hooks = pickle.loads(pickle.dumps((handle, layer._forward_hooks)))
    copied.remove()
    assert not hooks and layer._forward_hooks


def test_new_hooks_spare_the_ids_of_unpickled_ones():
    layer = linear(weft)
    next_id = layer.register_forward_hook(print).id + 1
    layer._forward_hooks[next_id] = print
    assert layer.register_forward_hook(print).id != next_id and len(layer._forward_hooks) == 3


def test_a_handle_keeps_no_module_alive():
    gc.disable()
    try:
        layer = nn.Linear(1, 1)
        handle, gone = layer.register_full_backward_hook(print), weakref.ref(layer)
        del layer
        assert gone() is None
        handle.remove()
    finally:
        gc.enable()


def test_a_hooked_output_that_is_no_tensor_warns():
    class Dict(nn.Module):
        def forward(self, x):
            return {"x": x}

    module = Dict()
    module.register_full_backward_hook(print)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors"):
        assert list(module(weft.ones(1, requires_grad=True))) == ["x"]


def test_torch_has_the_same_hooks():
    hooks = importlib.import_module("torch.nn.modules.module")
    ours = importlib.import_module("weft.nn.modules.module")
    public = {name for name in vars(hooks) if name.startswith("register_module_")}
    assert public == {name for name in vars(ours) if name.startswith("register_module_")}
    assert {name for name in dir(torch.nn.Module) if not name.startswith("_")} - {
        "ipu",
        "xpu",
        "mtia",
    } <= set(dir(nn.Module)) | {"T_destination"}


def test_the_output_of_a_hooked_module_must_not_be_written_to():
    for library in (torch, weft):
        layer = linear(library)
        layer.register_full_backward_hook(lambda *_: None)
        with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
            layer(library.ones(1, 2, requires_grad=True)).mul_(2)


@pytest.mark.parametrize("library", [weft, torch])
def test_assigning_the_dictionaries_of_global_hooks_removes_the_hooks(library):
    """PyTorch's tests tidy up like this."""
    module = importlib.import_module(f"{library.__name__}.nn.modules.module")
    called, linear = [], library.nn.Linear(2, 2)
    module.register_module_forward_hook(lambda *given: called.append("forward"))
    module.register_module_forward_pre_hook(lambda *given: called.append("before"))
    module.register_module_full_backward_hook(lambda *given: called.append("backward"))
    linear(library.ones(1, 2)).sum().backward()
    assert called == ["before", "forward", "backward"]
    for name in ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks"):
        assert len(getattr(module, name)) == 1
        setattr(module, name, OrderedDict())
    linear(library.ones(1, 2)).sum().backward()
    assert len(called) == 3
    handle = module.register_module_forward_hook(lambda *given: called.append("again"))
    linear(library.ones(1, 2))
    handle.remove()
    linear(library.ones(1, 2))
    assert called[3:] == ["again"] and not module._global_forward_hooks


WARNED = {
    "a list as input": lambda lib: (lambda m: (m[0].clone(), m[1].clone()), ["a", "b"]),
    "a list as output": lambda lib: (lambda a, b: [a.clone(), b.clone()], "a", "b"),
    "two nodes": lambda lib: (lambda a, b: (a.clone(), b.clone()), "a", "b"),
    "a chain": lambda lib: (lambda a: a.clone().clone(), "a"),
    "nothing that is missing": lambda lib: (lambda a: a.clone(), "c"),
}


@pytest.mark.parametrize("name", WARNED)
def test_an_older_backward_hook_says_what_it_does_not_see(name):
    def program(lib):
        tensors = {each: lib.rand(2, requires_grad=True) for each in "ab"}
        tensors["c"] = tensors["a"] * 2
        forward, *args = WARNED[name](lib)
        module = type("M", (lib.nn.Module,), {"forward": staticmethod(forward)})()
        module.register_backward_hook(lambda *given: None)
        args = [[tensors[e] for e in each] if isinstance(each, list) else tensors[each] for each in args]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            module(*args)
        return [(each.category.__name__, str(each.message)) for each in caught]

    mine, theirs = program(weft), program(torch)
    assert mine == theirs and len(mine) == (name != "nothing that is missing")


def test_backward_hooks_keep_named_tuples():
    Pair = collections.namedtuple("Pair", "first second")
    for lib in (weft, torch):
        module = type("M", (lib.nn.Module,), {"forward": lambda self, x: Pair(x * 2, 3)})()
        seen = []
        module.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append(grad_out))  # noqa: B023
        result = module(lib.ones(2, requires_grad=True))
        result.first.sum().backward()
        assert type(result) is Pair and result.second == 3 and len(seen) == 1


def test_hooks_of_all_modules_are_marked_and_can_be_taken_away():
    for lib in (weft, torch):
        module = lib.nn.modules.module
        handle = module.register_module_forward_hook(lambda *given: None, with_kwargs=True, always_call=True)
        marks = (module._global_forward_hooks_with_kwargs, module._global_forward_hooks_always_called)
        assert [len(each) for each in marks] == [1, 1]
        assert handle.hooks_dict_ref() is module._global_forward_hooks
        handle.remove()
        assert len(marks[1]) == len(handle.hooks_dict_ref()) == 0
        marks[0].clear()  # PyTorch forgets this


def test_a_hook_of_the_state_is_public_or_private():
    for lib in (weft, torch):

        def hook(module, state, prefix, metadata):
            pass

        module = lib.nn.Linear(1, 1)
        module.register_state_dict_post_hook(hook)
        assert hook._from_public_api
        with pytest.raises(RuntimeError, match="previously registered via register_state_dict_post_hook"):
            module._register_state_dict_hook(hook)


@pytest.mark.parametrize("library", [weft, torch], ids=["weft", "torch"])
@pytest.mark.parametrize("kind", ["parameter", "buffer", "module"])
def test_registration_hooks_are_in_pytorchs_dictionaries(library, kind):
    module, called = library.nn.modules.module, []
    name = f"_global_{kind}_registration_hooks"
    register = getattr(module, f"register_module_{kind}_registration_hook")
    handle = register(lambda owner, name, value: called.append(name))
    assert list(getattr(module, name)) == [handle.id]
    library.nn.Sequential(library.nn.BatchNorm1d(2))
    assert called
    del called[:]
    setattr(module, name, OrderedDict())
    library.nn.Sequential(library.nn.BatchNorm1d(2))
    assert not called and not getattr(module, name)
