import copy
import functools

import one_rank
import pytest
import torch
import torch.distributed.fsdp
from one_rank import same

import weft
import weft.distributed._composable
import weft.distributed.fsdp.wrap


def module_of(library):
    nn = library.nn
    return nn.Sequential(
        nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 3), nn.ReLU()), nn.ModuleList([nn.Linear(3, 1)])
    )


@pytest.mark.parametrize("recurse", [True, False])
@pytest.mark.parametrize("numel", [5, 100])
def test_policies(recurse, numel):
    def program(library):
        wrap, nn = library.distributed.fsdp.wrap, library.nn
        policies = [
            wrap.always_wrap_policy,
            functools.partial(wrap.size_based_auto_wrap_policy, min_num_params=50),
            functools.partial(wrap.transformer_auto_wrap_policy, transformer_layer_cls={nn.Linear}),
            functools.partial(
                wrap.lambda_auto_wrap_policy, lambda_fn=lambda module: len(list(module.children())) > 1
            ),
            wrap.ModuleWrapPolicy({nn.Linear, nn.MultiheadAttention}),
        ]
        modules = [
            nn.Linear(2, 1),
            nn.ReLU(),
            nn.ModuleList(),
            nn.MultiheadAttention(2, 1),
            module_of(library),
        ]
        return [policy(module, recurse, numel) for policy in policies for module in modules]

    same(program)


def test_recursive_wrapping():
    def program(library):
        wrap, nn = library.distributed.fsdp.wrap, library.nn
        outcomes = []
        for least in (1, 9, 20):
            policy = functools.partial(wrap.size_based_auto_wrap_policy, min_num_params=least)
            outcomes.append(wrap._recursive_wrap(module_of(library), policy, nn.DataParallel, set(), set()))
        chosen = wrap.CustomPolicy(lambda module: isinstance(module, nn.Linear) and {"a": 1})
        outcomes.append([*chosen._run_policy(module_of(library), set(), {"b": 2}).values()])
        with wrap.enable_wrap(wrapper_cls=nn.DataParallel):
            outcomes.append(wrap.wrap(nn.ReLU()))
        outcomes.append(wrap.wrap(nn.ReLU()))
        return outcomes

    same(program)


def test_settings():
    for name in torch.distributed.fsdp.api.__all__:
        theirs, ours = getattr(torch.distributed.fsdp, name), getattr(weft.distributed.fsdp, name)
        if hasattr(theirs, "__members__"):
            assert {key: value.value for key, value in ours.__members__.items()} == {
                key: value.value for key, value in theirs.__members__.items()
            }
        elif name not in ("StateDictSettings", "MixedPrecision"):
            assert repr(ours()) == repr(theirs())
    assert weft.distributed.fsdp.MixedPrecision(param_dtype=weft.bfloat16).param_dtype == weft.bfloat16


def test_a_model_is_no_fsdp():
    assert not isinstance(weft.nn.Linear(2, 1), weft.distributed.fsdp.FullyShardedDataParallel)


def test_whole_parameters_are_freed_until_the_backward_pass(run):
    code = """
import weft as torch
from weft.distributed.fsdp import fully_shard
dist = torch.distributed
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
layer = fully_shard(torch.nn.Linear(1000, 1000, bias=False))
x = torch.ones(1, 1000, requires_grad=True)
allocated = lambda: torch.cpu.memory_stats()["allocated_bytes.all.current"] // 4_000_000
before = allocated()
y = layer(x)
print(allocated() - before, type(layer.weight).__name__)
expected = layer.weight.full_tensor().detach().sum(0)
y.sum().backward()
print(torch.allclose(x.grad[0], expected, atol=1e-4), layer.weight.grad.shape == layer.weight.shape)
"""
    assert run("-c", code).stdout.split() == ["0", "DTensor", "True", "True"]


def test_gradients_are_averaged_while_the_backward_pass_goes_on():
    fsdp, nn = weft.distributed.fsdp, weft.nn
    weft.distributed.init_process_group("fake", rank=0, world_size=2)
    try:
        model = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 2))
        for layer in model:
            fsdp.fully_shard(layer)
        fsdp.fully_shard(model)
        complete, seen = [], []
        for each in model.parameters():
            each.register_post_accumulate_grad_hook(complete.append)
        hidden = model[0](weft.ones(3, 2))
        hidden.register_hook(lambda gradient: seen.append(model[1].weight.grad))
        model[1](hidden).sum().backward()
        assert seen == [None]  # it is on its way when the layer before begins
        assert len(complete) == 4 and all(each.grad is not None for each in model.parameters())
        weight = model[1].weight
        found = weft.autograd.grad(model(weft.ones(3, 2)).sum(), weight)
        assert found[0].placements == weight.placements
    finally:
        weft.distributed.destroy_process_group()


def test_what_cannot_be_sharded():
    fsdp = weft.distributed.fsdp
    scaled = weft.nn.Linear(2, 2)
    scaled.scale = weft.nn.Parameter(weft.tensor(1.0))
    with one_rank.groups(), pytest.raises(ValueError, match="Change scale to a 1D tensor"):
        fsdp.fully_shard(scaled)
    with pytest.raises(ValueError, match="containers that do not implement forward"):
        fsdp.fully_shard(weft.nn.ModuleList([weft.nn.Linear(2, 2)]))


def test_modules_in_parts_are_not_copied():
    composable = weft.distributed._composable
    with one_rank.groups():
        for change in (weft.distributed.fsdp.fully_shard, composable.replicate):
            with pytest.raises(AssertionError, match="does not support deepcopy"):
                copy.deepcopy(change(weft.nn.Linear(2, 2)))
        with pytest.raises(RuntimeError, match="already managed by `fully_shard`"):
            composable.replicate(weft.distributed.fsdp.fully_shard(weft.nn.Linear(2, 2)))


def test_options_that_are_not_there():
    fsdp = weft.distributed.fsdp
    layer = weft.nn.Linear(2, 2)
    wide = fsdp.MixedPrecision(keep_low_precision_grads=True)
    for options, said in (
        ({"device_id": "cuda"}, "leave device_id out"),
        ({"mixed_precision": wide}, "keep_low"),
    ):
        with pytest.raises(NotImplementedError, match=said):
            fsdp.FullyShardedDataParallel(layer, **options)
    with pytest.raises(NotImplementedError, match="wrap the layers in it"):
        fsdp.FullyShardedDataParallel(weft.nn.ModuleList([layer]))


def test_a_parameter_that_is_replaced_has_to_lie_as_before():
    with one_rank.groups():
        layer = weft.distributed.fsdp.fully_shard(weft.nn.Linear(2, 2))
        layer.load_state_dict({"weight": weft.ones(2, 2), "bias": weft.ones(2)}, assign=True)
        with pytest.raises(RuntimeError, match=r"Linear.weight was replaced by a Parameter of size \[2, 2\]"):
            layer(weft.ones(1, 2))
