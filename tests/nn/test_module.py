import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
import torch
from alike import same

import weft
from weft import nn


def scale(lib):
    """A class of modules with one parameter and two buffers."""

    class Scale(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.tensor([2.0]))
            self.register_buffer("offset", lib.tensor([1.0]))
            self.register_buffer("scratch", lib.tensor([3]), persistent=False)

        def forward(self, x):
            return x * self.weight + self.offset

    return Scale


def net(lib):
    """Modules inside of modules, one of them twice."""
    shared = scale(lib)()
    return lib.nn.Sequential(shared, lib.nn.Sequential(scale(lib)(), shared), lib.nn.Module())


class Scale(nn.Module):
    """The same, where pickle finds it."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(weft.tensor([2.0]))


def without_init(lib, set_up):
    class Net(lib.nn.Module):
        def __init__(self):
            set_up(self)

    return Net()


def assigned(lib, name, value):
    module = scale(lib)()
    module.child = lib.nn.Module()
    setattr(module, name, value)
    parts = (module._parameters, module._buffers, module._modules, module._non_persistent_buffers_set)
    return [list(part) for part in parts], name in module.__dict__


def after(module, change):
    change(module)
    return module


ATTRIBUTES = {
    "missing": lambda lib: scale(lib)().nothing,
    "deleted": lambda lib: list(after(scale(lib)(), lambda m: delattr(m, "weight")).state_dict()),
    "deleting what is missing": lambda lib: delattr(scale(lib)(), "nothing"),
    "listed": lambda lib: [n for n in dir(net(lib)[0]) if n in ("weight", "offset", "0", "forward", "training")],
    "assigned None": lambda lib: [assigned(lib, name, None) for name in ("weight", "offset", "child")],
    "replaced by a parameter": lambda lib: [
        assigned(lib, name, lib.nn.Parameter(lib.ones(1))) for name in ("weight", "offset", "scratch", "child", "x")
    ],
    "replaced by a module": lambda lib: [
        assigned(lib, name, lib.nn.Module()) for name in ("offset", "child", "x")
    ],
    "buffer replaced": lambda lib: [
        assigned(lib, name, value) for name in ("offset", "x") for value in (lib.nn.Buffer(lib.ones(1)), lib.ones(1))
    ],
    "buffer that is not saved": lambda lib: assigned(lib, "x", lib.nn.Buffer(lib.ones(1), persistent=False)),
    "parameter: tensor": lambda lib: assigned(lib, "weight", lib.ones(1)),
    "parameter: number": lambda lib: assigned(lib, "weight", 3),
    "buffer: number": lambda lib: assigned(lib, "offset", 3),
    "child: number": lambda lib: assigned(lib, "child", 3),
    "too early: module": lambda lib: without_init(lib, lambda m: setattr(m, "a", lib.nn.Module())),
    "too early: parameter": lambda lib: without_init(lib, lambda m: setattr(m, "a", lib.nn.Parameter(lib.ones(1)))),
    "too early: buffer": lambda lib: without_init(lib, lambda m: setattr(m, "a", lib.nn.Buffer(lib.ones(1)))),
    "too early: register_buffer": lambda lib: without_init(lib, lambda m: m.register_buffer("a", lib.ones(1))),
    "too early: register_parameter": lambda lib: without_init(lib, lambda m: m.register_parameter("a", None)),
    "number before init": lambda lib: without_init(lib, lambda m: setattr(m, "a", 3)).a,
    "no forward": lambda lib: lib.nn.Module()(1),
    "arguments of init": lambda lib: lib.nn.Module(1),
    "keywords of init": lambda lib: lib.nn.Module(a=1),
}  # fmt: skip


@pytest.mark.refuses(
    [
        "missing", "deleting what is missing", "parameter: tensor", "parameter: number", "buffer: number",
        "child: number", "too early: module", "too early: parameter", "too early: buffer",
        "too early: register_buffer", "too early: register_parameter", "no forward", "arguments of init",
        "keywords of init",
    ]
)  # fmt: skip
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_as_in_torch(name):
    same(ATTRIBUTES[name])


@pytest.mark.refuses(
    [
        "register_parameter-3", "register_parameter-", "register_parameter-a.b",
        "register_parameter-training", "register_parameter-forward", "register_parameter-offset",
        "register_buffer-3", "register_buffer-", "register_buffer-a.b", "register_buffer-training",
        "register_buffer-forward", "register_buffer-weight", "add_module-3", "add_module-", "add_module-a.b",
        "add_module-training", "add_module-forward", "add_module-weight", "add_module-offset",
        "register_module-3", "register_module-", "register_module-a.b", "register_module-training",
        "register_module-forward", "register_module-weight", "register_module-offset",
    ]
)  # fmt: skip
@pytest.mark.parametrize("name", [3, "", "a.b", "training", "forward", "weight", "offset", "new"])
@pytest.mark.parametrize("method", ["register_parameter", "register_buffer", "add_module", "register_module"])
def test_registration_checks_names_as_in_torch(method, name):
    same(lambda lib: getattr(scale(lib)(), method)(name, None))


@pytest.mark.refuses({"register_parameter": 2, "register_buffer": 1, "add_module": 2})
@pytest.mark.parametrize("method", ["register_parameter", "register_buffer", "add_module"])
def test_registration_checks_values_as_in_torch(method):
    same(lambda lib: getattr(scale(lib)(), method)("new", 3))
    same(lambda lib: getattr(scale(lib)(), method)("new", lib.ones(1)))


def test_a_result_cannot_be_a_parameter():
    result = weft.ones(1, requires_grad=True) * 1
    result.__class__ = nn.Parameter
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'a'"):
        nn.Module().register_parameter("a", result)


WALKS = {
    f"{method}({', '.join(f'{k}={v!r}' for k, v in options.items())})": (method, options)
    for method, options in [
        ("named_parameters", {}),
        ("named_parameters", {"prefix": "net"}),
        ("named_parameters", {"recurse": False}),
        ("named_parameters", {"remove_duplicate": False}),
        ("named_buffers", {}),
        ("named_buffers", {"prefix": "net", "remove_duplicate": False}),
        ("named_modules", {}),
        ("named_modules", {"prefix": "net"}),
        ("named_modules", {"remove_duplicate": False}),
        ("named_children", {}),
        ("parameters", {}),
        ("buffers", {"recurse": False}),
        ("modules", {}),
        ("children", {}),
    ]
}


@pytest.mark.parametrize("walk", WALKS)
def test_walks_as_in_torch(walk):
    method, options = WALKS[walk]
    same(lambda lib: list(getattr(net(lib), method)(**options)))


@pytest.mark.refuses(
    [
        "get_submodule-3", "get_submodule-0.weight", "get_submodule-1.0.weight", "get_submodule-1.0.offset",
        "get_submodule-1.x.y", "get_submodule-2.weight", "get_parameter-", "get_parameter-0",
        "get_parameter-1.0", "get_parameter-3", "get_parameter-1.0.offset", "get_parameter-1.x.y",
        "get_parameter-2.weight", "get_buffer-", "get_buffer-0", "get_buffer-1.0", "get_buffer-3",
        "get_buffer-0.weight", "get_buffer-1.0.weight", "get_buffer-1.x.y", "get_buffer-2.weight",
    ]
)  # fmt: skip
@pytest.mark.parametrize(
    "path", ["", "0", "1.0", "3", "0.weight", "1.0.weight", "1.0.offset", "1.x.y", "2.weight"]
)
@pytest.mark.parametrize("method", ["get_submodule", "get_parameter", "get_buffer"])
def test_paths_as_in_torch(method, path):
    same(lambda lib: getattr(net(lib), method)(path))


@pytest.mark.refuses(
    {
        "-False": 2,
        "-True": 2,
        "0-False": 1,
        "0-True": 1,
        "1.0-False": 1,
        "1.0-True": 1,
        "new-False": 1,
        "new-True": 2,
        "1.new-False": 1,
        "1.new-True": 2,
        "0.weight-False": 2,
        "0.weight-True": 2,
        "x.y-False": 2,
        "x.y-True": 2,
    }
)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("path", ["", "0", "1.0", "new", "1.new", "0.weight", "x.y"])
def test_set_submodule_as_in_torch(path, strict):
    same(lambda lib: after(net(lib), lambda m: m.set_submodule(path, lib.nn.Sequential(), strict=strict)))
    same(lambda lib: net(lib).set_submodule("0", 3))


def converted(lib, convert):
    module = net(lib)
    weight = module[0].weight
    weight.grad = lib.ones(1)
    result = convert(module)
    tensors = [t for m in module.modules() for t in (*m.parameters(False), *m.buffers(False))]
    return result is module, module[0].weight is weight, tensors, module[0].weight.grad


CONVERSIONS = {
    "double": lambda lib, m: m.double(),
    "half": lambda lib, m: m.half(),
    "bfloat16": lambda lib, m: m.bfloat16(),
    "float": lambda lib, m: m.double().float(),
    "type": lambda lib, m: m.type(lib.float64),
    "type by name": lambda lib, m: m.type("torch.DoubleTensor"),
    "cpu": lambda lib, m: m.cpu(),
    "to dtype": lambda lib, m: m.to(lib.float64),
    "to device": lambda lib, m: m.to("cpu"),
    "to device and dtype": lambda lib, m: m.to("cpu", lib.float64),
    "to keywords": lambda lib, m: m.to(dtype=lib.float16, non_blocking=True),
    "to tensor": lambda lib, m: m.to(lib.ones(1, dtype=lib.float64)),
    "to meta": lambda lib, m: m.to("meta"),
    "to integers": lambda lib, m: m.to(lib.int32),
    "to nothing": lambda lib, m: m.to(1, 2, 3, 4),
    "from meta": lambda lib, m: m.to("meta").to("cpu"),
    "to_empty": lambda lib, m: m.to_empty(device="meta"),
}


@pytest.mark.refuses(["to integers", "to nothing", "from meta"])
@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions_as_in_torch(name):
    same(lambda lib: converted(lib, lambda module: CONVERSIONS[name](lib, module)))


def test_memory_format_is_for_images():
    same(
        lambda lib: [
            p.stride()
            for p in lib.nn.Sequential(lib.nn.Conv2d(2, 3, 3), lib.nn.Linear(2, 2))
            .to(memory_format=lib.channels_last)
            .parameters()
        ]
    )


def graded(lib, zero):
    module = net(lib)
    for parameter in module.parameters():
        parameter.grad = lib.ones(1)
    zero(module)
    return [parameter.grad for parameter in module.parameters()]


OTHERS = {
    "zero_grad": lambda lib: graded(lib, lambda m: m.zero_grad()),
    "zero_grad in place": lambda lib: graded(lib, lambda m: m.zero_grad(set_to_none=False)),
    "requires_grad_": lambda lib: [p.requires_grad for p in net(lib).requires_grad_(False).parameters()],
    "eval": lambda lib: [m.training for m in net(lib).eval().modules()],
    "train": lambda lib: [m.training for m in net(lib).eval().train().modules()],
    "train: not a bool": lambda lib: net(lib).train("yes"),
    "apply": lambda lib: after(
        [], lambda seen: net(lib).apply(lambda m: seen.append(len(list(m.children()))))
    ),
    "call": lambda lib: scale(lib)()(lib.ones(2)),
    "keywords": lambda lib: scale(lib)()(x=lib.ones(2)),
}


@pytest.mark.refuses(["train: not a bool"])
@pytest.mark.parametrize("name", OTHERS)
def test_others_as_in_torch(name):
    same(OTHERS[name])


def test_printing_as_in_torch():
    def program(lib):
        class Layer(lib.nn.Module):
            def __init__(self, extra, *children):
                super().__init__()
                self.extra = extra
                for i, child in enumerate(children):
                    self.add_module(f"child{i}", child)

            def extra_repr(self):
                return self.extra

        leaves = Layer(""), Layer("a=1"), Layer("a=1\nb=2")
        return [*leaves, Layer("", *leaves), Layer("a=1", Layer("x", *leaves)), Layer("a\nb", None, *leaves)]

    same(program)


def test_pickle_and_deepcopy():
    module = nn.Sequential(Scale(), Scale()).eval()
    module[0].note = ["mine"]
    for copied in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert repr(copied) == repr(module) and not copied.training and copied[0].note == ["mine"]
        assert copied[0].weight is not module[0].weight
        copied[0].weight.data.zero_()
    assert module[0].weight.item() == 2


def test_a_pickle_from_before_a_kind_of_hook_loads():
    state = Scale().__dict__.copy()
    del state["_load_state_dict_post_hooks"]
    module = Scale.__new__(Scale)
    module.__setstate__(state)
    assert not module.load_state_dict(module.state_dict()).missing_keys


def test_super_init_goes_on_if_asked_to():
    class Other:
        def __init__(self, value):
            self.value = value

    class Net(nn.Module, Other):
        call_super_init = True

        def __init__(self):
            super().__init__(value=3)

    assert Net().value == 3


def test_a_module_is_freed_without_the_garbage_collector():
    gc.disable()
    try:
        module = Scale()
        gone = weakref.ref(module)
        module.register_forward_hook(lambda *_: None).remove()
        del module
        assert gone() is None
    finally:
        gc.enable()


def test_compile_keeps_the_parameters():
    module = Scale()
    assert module.compile() is None and module.weight.item() == 2


def test_a_buffer_may_become_persistent():
    module = nn.Module()
    module.register_buffer("mean", weft.ones(1), persistent=False)
    assert list(module.state_dict()) == []
    module.register_buffer("mean", weft.zeros(1))
    assert list(module.state_dict()) == ["mean"]
    module.register_buffer("mean", weft.zeros(1), persistent=False)
    assert list(module.state_dict()) == []


def test_a_parameter_of_two_modules_is_given_once():
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    second.weight = first.weight
    net = nn.Sequential(first, second)
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert len(list(net.parameters())) == 3
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4


def test_buffers_that_are_assigned():
    def run(library):
        nn, found = library.nn, []

        class Like:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                raise NotImplementedError

        class Old(nn.Linear):
            def __init__(self, persistent):
                super().__init__(2, 2)
                self.bar = nn.Buffer(library.ones(2), persistent)

            def register_buffer(self, name, value):
                super().register_buffer(name, value, True)

        def attempt(function):
            try:
                found.append(function())
            except Exception as error:
                found.append((type(error), str(error).splitlines()[0]))

        module = nn.Module()
        like = Like()
        module.register_buffer("like", like)
        module.like = like
        found.append(module.get_buffer("like") is like)
        module.other = 5
        attempt(lambda: setattr(module, "other", nn.Buffer(library.ones(2))))
        module.weight = nn.Parameter(library.ones(1))
        attempt(lambda: setattr(module, "weight", nn.Buffer(library.ones(2))))
        attempt(lambda: module.register_buffer("wrong", 5))
        attempt(lambda: setattr(module, "like", 5))
        attempt(lambda: list(dict(Old(True).named_buffers())))
        attempt(lambda: Old(False))
        del module.like
        module.given = nn.Buffer(library.ones(2), persistent=False)
        found.append(list(module.state_dict()))
        return found

    assert run(weft) == run(torch)


def test_channels_that_do_not_fit_are_found_without_a_batch():
    for library in (weft, torch):
        norm = library.nn.InstanceNorm2d(3, affine=True)
        assert norm._get_no_batch_dim() == 3
        with pytest.raises(ValueError, match="dim=0 to match num_features"):
            norm(library.ones(2, 4, 4))


@pytest.mark.parametrize("name", ["conv2d", "tanh", "add"])
def test_functions_as_attributes_of_a_class_do_not_become_methods(name):
    arrays = (np.ones((1, 1, 3, 3)), np.full((1, 1, 2, 2), 2.0))[: 1 if name == "tanh" else 2]
    results = []
    for library in (weft, torch):
        cls = type("Holder", (library.nn.Module,), {"function": getattr(library, name)})
        assert cls.function is getattr(library, name)
        tensors = [library.tensor(each[..., :2, :2] if name == "add" else each) for each in arrays]
        results.append(cls().function(*tensors).numpy())
    np.testing.assert_allclose(*results)


def test_functions_of_python_as_attributes_of_a_class_become_methods():
    cls = type("Holder", (weft.nn.Module,), {"function": lambda self: self})
    module = cls()
    assert module.function() is module


@pytest.mark.parametrize(
    "name", ["Conv2d", "ConvTranspose1d", "ReLU", "MaxUnpool2d", "Softmax", "LazyConv2d"]
)
def test_errors_about_arguments_name_the_class_that_was_called(name):
    with pytest.raises(
        TypeError, match=rf"^{name}\.__init__\(\) got an unexpected keyword argument 'colour'"
    ):
        getattr(nn, name)(colour=1)


def test_constructors_of_classes_outside_weft_are_inherited():
    class Own(nn.modules.conv._Conv):
        _n = 2

    assert "__init__" not in vars(Own)
