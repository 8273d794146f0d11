import copy
from importlib import import_module

import pytest
from alike import same


def classes(lib):
    """A layer, and the same that learns the size of its input."""
    mixin = import_module(f"{lib.nn.__name__}.modules.lazy").LazyModuleMixin

    class Scale(lib.nn.Module):
        def __init__(self, n):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(n))

        def forward(self, x):
            return x * self.weight

    class LazyScale(mixin, Scale):
        cls_to_become = Scale

        def __init__(self, forget=False):
            super().__init__(0)
            self.forget = forget
            self.weight = lib.nn.UninitializedParameter()

        def initialize_parameters(self, x):
            if self.has_uninitialized_params() and not self.forget:
                with lib.no_grad():
                    self.weight.materialize(x.shape[-1:])
                    self.weight.fill_(2.0)

    return Scale, LazyScale


def first_call(lib):
    module = classes(lib)[1]()
    before = repr(module), module.has_uninitialized_params(), list(module.state_dict().values())
    output = module(lib.ones(3))
    return before, output, repr(module), module._forward_pre_hooks, module._load_state_dict_pre_hooks


PROGRAMS = {
    "first call": first_call,
    "forgotten": lambda lib: classes(lib)[1](forget=True)(lib.ones(3)),
    "converted before": lambda lib: classes(lib)[1]().double()(lib.ones(3)).dtype,
    "to a dtype before": lambda lib: lib.nn.LazyLinear(2).to(lib.float64)(lib.ones(1, 3, dtype=lib.float64)).dtype,
    "to a device before": lambda lib: lib.nn.LazyBatchNorm1d().to("cpu", lib.float64).running_mean.dtype,
    "buffers to a dtype before": lambda lib: (
        lambda lazy: (type(lazy.running_mean).__name__, lazy(lib.ones(4, 3, dtype=lib.float64)), lazy.state_dict())
    )(lib.nn.LazyBatchNorm1d().double()),
    "sharing memory": lambda lib: classes(lib)[1]().share_memory(),
    "loaded before": lambda lib: (lambda lazy: (lazy.load_state_dict(classes(lib)[0](4).state_dict()), lazy.weight))(
        classes(lib)[1]()
    ),
    "loaded from its like": lambda lib: classes(lib)[1]().load_state_dict(classes(lib)[1]().state_dict()),
    "loaded from one without shape": lambda lib: classes(lib)[0](4).load_state_dict(classes(lib)[1]().state_dict()),
    "not defined": lambda lib: type("Bare", (classes(lib)[1].__bases__[0], lib.nn.Module), {})()(1),
}  # fmt: skip


@pytest.mark.refuses(
    [
        "forgotten",
        "to a memory format before",
        "sharing memory",
        "loaded from one without shape",
        "not defined",
    ]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_lazy_modules_as_in_torch(name):
    same(PROGRAMS[name])


def test_a_copy_of_a_lazy_module_learns_its_own_shape():
    def program(lib):
        module = classes(lib)[1]()
        copied = copy.deepcopy(module)
        return module(lib.ones(2)), copied(lib.ones(3)), copied._forward_pre_hooks

    same(program)
