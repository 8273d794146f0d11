import copy
import pickle
from collections import OrderedDict

import pytest
from alike import same

import weft
from weft import nn


def net(lib):
    return lib.nn.Sequential(
        lib.nn.Linear(2, 2), lib.nn.BatchNorm1d(2), lib.nn.Sequential(lib.nn.Linear(2, 1))
    )


def loaded(lib, change, **options):
    """Load a changed state_dict of ones; what load_state_dict says, and the values after it."""
    module = net(lib)
    state = OrderedDict((name, lib.ones_like(tensor)) for name, tensor in module.state_dict().items())
    change(lib, state)
    said = module.load_state_dict(state, **options)
    return said, module.state_dict(), [p.requires_grad for p in module.parameters()]


CHANGES = {
    "nothing": lambda lib, state: None,
    "missing": lambda lib, state: state.pop("0.weight"),
    "unexpected": lambda lib, state: state.update(
        {"x": 1, "0.y": 2, "0.weight.z": 3, "7.x": 4, "2.0.a.b": 5}
    ),
    "another shape": lambda lib, state: state.update({"0.weight": lib.ones(3, 2), "1.bias": lib.ones(())}),
    "one element for none": lambda lib, state: state.update({"1.num_batches_tracked": lib.tensor([5])}),
    "no tensor": lambda lib, state: state.update({"0.weight": [1.0]}),
    "another dtype": lambda lib, state: state.update({"0.weight": lib.ones(2, 2, dtype=lib.float64)}),
    "all at once": lambda lib, state: (state.pop("0.bias"), state.update({"0.weight": lib.ones(1), "y": 1})),
    "nothing left": lambda lib, state: state.clear(),
    "a parameter": lambda lib, state: state.update({"0.weight": lib.nn.Parameter(lib.ones(2, 2))}),
}
OPTIONS = [{}, {"strict": False}, {"assign": True}, {"strict": False, "assign": True}]


@pytest.mark.refuses(
    [
        "missing-{}", "missing-{'assign': True}", "unexpected-{}", "unexpected-{'assign': True}",
        "another shape-{}", "another shape-{'strict': False}", "another shape-{'assign': True}",
        "another shape-{'strict': False, 'assign': True}", "no tensor-{}", "no tensor-{'strict': False}",
        "no tensor-{'assign': True}", "no tensor-{'strict': False, 'assign': True}", "all at once-{}",
        "all at once-{'strict': False}", "all at once-{'assign': True}",
        "all at once-{'strict': False, 'assign': True}", "nothing left-{}", "nothing left-{'assign': True}",
    ]
)  # fmt: skip
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", CHANGES)
def test_loading_as_in_torch(name, options):
    same(lambda lib: loaded(lib, CHANGES[name], **options))


def message(lib, change):
    try:
        loaded(lib, change)
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("name", ["missing", "unexpected", "another shape", "no tensor", "all at once"])
def test_every_line_of_the_message_as_in_torch(name):
    same(lambda lib: message(lib, CHANGES[name]))


@pytest.mark.refuses("all")
def test_what_is_not_a_mapping():
    same(lambda lib: net(lib).load_state_dict([1]))
    same(lambda lib: net(lib).load_state_dict(None))


SAVED = {
    "keys": lambda lib: list(net(lib).state_dict()),
    "prefix": lambda lib: list(net(lib).state_dict(prefix="net.")),
    "metadata": lambda lib: net(lib).state_dict()._metadata,
    "metadata with a prefix": lambda lib: net(lib).state_dict(prefix="net.")._metadata,
    "keep_vars": lambda lib: [t.requires_grad for t in net(lib).state_dict(keep_vars=True).values()],
    "detached": lambda lib: [t.requires_grad for t in net(lib).state_dict().values()],
    "into another": lambda lib: list(net(lib).state_dict(destination=OrderedDict(first=1), prefix="p.")),
    "positional": lambda lib: list(net(lib).state_dict(OrderedDict(), "p.", True)),
    "a plain dict": lambda lib: list(net(lib).state_dict(destination={})),
}


@pytest.mark.parametrize("name", SAVED)
def test_saving_as_in_torch(name):
    same(SAVED[name])


def test_a_state_dict_shares_memory():
    layer = nn.Linear(2, 2)
    layer.state_dict()["weight"].zero_()
    assert not layer.weight.any()


def test_a_state_dict_survives_a_pickle():
    state = pickle.loads(pickle.dumps(net(weft).state_dict()))
    assert state._metadata["1"] == {"version": 2}
    assert repr(net(weft).load_state_dict(state)) == "<All keys matched successfully>"


def test_assign_takes_the_tensors_themselves():
    layer, given = nn.Linear(2, 2, device="meta"), weft.ones(2, 2)
    layer.bias.requires_grad_(False)
    layer.load_state_dict({"weight": given, "bias": weft.ones(2)}, assign=True)
    assert layer.weight.data_ptr() == given.data_ptr() and type(layer.weight) is nn.Parameter
    assert layer.weight.requires_grad and not layer.bias.requires_grad


def test_loading_values_into_meta_warns():
    with pytest.warns(UserWarning, match="which is a no-op"):
        nn.Linear(2, 2, device="meta").load_state_dict(nn.Linear(2, 2).state_dict())


def hooked(lib, register, hook):
    """What a hook is given, and what saving and loading say."""
    module, seen = net(lib), []

    def noting(*given):
        seen.append(given)
        return hook(*given)

    getattr(module[0], register)(noting)
    state = module.state_dict()
    return list(state), module.load_state_dict(net(lib).state_dict(), strict=False), seen


HOOKS = [
    "register_state_dict_pre_hook",
    "register_state_dict_post_hook",
    "_register_state_dict_hook",
    "register_load_state_dict_pre_hook",
    "_register_load_state_dict_pre_hook",
    "register_load_state_dict_post_hook",
]


@pytest.mark.parametrize("register", HOOKS)
def test_hooks_are_given_what_torch_gives_them(register):
    same(lambda lib: hooked(lib, register, lambda *given: None))


@pytest.mark.refuses(["register_state_dict_post_hook", "register_load_state_dict_post_hook"])
@pytest.mark.parametrize("register", HOOKS)
def test_what_hooks_return_as_in_torch(register):
    same(lambda lib: hooked(lib, register, lambda *given: {}))


def test_hooks_may_change_what_they_are_given():
    def program(lib):
        module = net(lib)
        module[0].register_load_state_dict_pre_hook(
            lambda m, state, prefix, *rest: state.pop(prefix + "bias")
        )
        module[2].register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.append("mine"))
        module[1].register_state_dict_post_hook(
            lambda m, state, prefix, *rest: state.__delitem__(prefix + "weight")
        )
        return module.load_state_dict(module.state_dict(), strict=False)

    same(program)


def test_extra_state():
    def program(lib):
        class Extra(lib.nn.Module):
            extra = 1

            def get_extra_state(self):
                return self.extra

            def set_extra_state(self, state):
                self.extra = state

        model, plain = lib.nn.Sequential(Extra()), lib.nn.Sequential(lib.nn.Module())
        state = model.state_dict()
        state["0._extra_state"] = 5
        return [
            state,
            model.load_state_dict(state),
            model[0].extra,
            model.load_state_dict({}, strict=False),
            plain.load_state_dict(state, strict=False),
        ]

    same(program)


def test_a_subclass_extends_loading():
    def program(lib):
        class Renamed(lib.nn.Linear):
            _version = 2

            def _load_from_state_dict(self, state, prefix, metadata, *rest):
                if metadata.get("version", 1) < 2:
                    state[prefix + "weight"] = state.pop(prefix + "w")
                super()._load_from_state_dict(state, prefix, metadata, *rest)

        model = lib.nn.Sequential(Renamed(1, 1, bias=False))
        given = {"0.w": lib.ones(1, 1)}
        return model.load_state_dict(given), model[0].weight, list(given), model.state_dict()._metadata

    same(program)


def test_loading_changes_neither_what_is_given_nor_its_metadata():
    state = net(weft).state_dict()
    before = list(state), copy.deepcopy(state._metadata)
    net(weft).load_state_dict(state, assign=True)
    assert (list(state), state._metadata) == before
