"""Programs with FullyShardedDataParallel for several ranks, see several_ranks.py."""

import functools
import importlib

from fsdp_programs import fsdp_of, loss_of, losses_of, model_of


def _options(torch):
    fsdp, wrap = fsdp_of(torch), importlib.import_module(f"{torch.__name__}.distributed.fsdp.wrap")
    _, layer = model_of(torch)
    layers = functools.partial(wrap.transformer_auto_wrap_policy, transformer_layer_cls={layer})
    large = functools.partial(wrap.size_based_auto_wrap_policy, min_num_params=60)
    strategy = fsdp.ShardingStrategy
    narrow = fsdp.MixedPrecision(
        param_dtype=torch.bfloat16, reduce_dtype=torch.float32, buffer_dtype=torch.float32
    )
    return {
        "nothing": {},
        "layers": {"auto_wrap_policy": layers, "use_orig_params": True},
        "large modules": {"auto_wrap_policy": large},
        "classes": {"auto_wrap_policy": wrap.ModuleWrapPolicy({torch.nn.Linear}), "forward_prefetch": True},
        "gradients only": {"auto_wrap_policy": layers, "sharding_strategy": strategy.SHARD_GRAD_OP},
        "no shards": {"auto_wrap_policy": layers, "sharding_strategy": strategy.NO_SHARD},
        "narrow": {"auto_wrap_policy": layers, "mixed_precision": narrow},
    }


def _wrapped(torch, **options):
    model, layer = model_of(torch)
    if "auto_wrap_policy" in options and hasattr(options["auto_wrap_policy"], "keywords"):
        keywords = options["auto_wrap_policy"].keywords
        if "transformer_layer_cls" in keywords:
            keywords["transformer_layer_cls"] = {layer}
    return fsdp_of(torch).FullyShardedDataParallel(model, device_id=torch.device("cpu"), **options)


def wrapped_training(torch, rank, size):
    """Each rank has another batch; gradients are clipped, and those of two batches are added up before they are sent."""
    options = _options(torch)
    options.pop("narrow")
    return _curves(torch, rank, options)


def narrow_training(torch, rank, size):
    return _curves(torch, rank, {"narrow": _options(torch)["narrow"]})


def _curves(torch, rank, cases):
    found = []
    for name, options in cases.items():
        model = _wrapped(torch, **options)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        losses = []
        for step in range(4):
            if step == 1:
                with model.no_sync():
                    loss_of(torch, model, rank, 9).backward()
            loss = loss_of(torch, model, rank, step)
            loss.backward()
            norm = model.clip_grad_norm_(0.5)
            optimizer.step()
            optimizer.zero_grad()
            losses += [loss.item(), norm.item()]
        model.eval()
        with torch.no_grad():
            losses.append(loss_of(torch, model, rank, 0).item())
        found.append((name, losses))
    return found


def wrapped_state_dicts(torch, rank, size):
    """Saved by one model, loaded by another one, whole and in parts."""
    fsdp, found = fsdp_of(torch), []
    FSDP, kinds = fsdp.FullyShardedDataParallel, fsdp.StateDictType
    options = _options(torch)["layers"]

    def made():
        model = _wrapped(torch, **options)
        return model, torch.optim.Adam(model.parameters(), lr=0.1)

    for kind in (kinds.FULL_STATE_DICT, kinds.SHARDED_STATE_DICT):
        (model, optimizer), (other, of_other) = made(), made()
        loss_of(torch, model, rank, 0).backward()
        optimizer.step()
        with FSDP.state_dict_type(model, kind):
            state, states = model.state_dict(), FSDP.optim_state_dict(model, optimizer)
            found += [list(state), sorted(states.get("state", {}))]
            if kind is kinds.FULL_STATE_DICT:
                found += list(state.values())
        found.append(str(FSDP.get_state_dict_type(model).state_dict_type).rpartition(".")[2])
        with FSDP.state_dict_type(other, kind):
            found.append(str(other.load_state_dict(state)))
            of_other.load_state_dict(FSDP.optim_state_dict_to_load(other, of_other, states))
        # On the CPU, PyTorch's whole states of optimizers are wrong: `exp_avg` has the numbers of `exp_avg_sq`.
        steps = (1,) if kind is kinds.FULL_STATE_DICT else (1, 2)
        found += losses_of(torch, other, of_other, rank, steps)
    return found


def whole_parameters(torch, rank, size):
    FSDP = fsdp_of(torch).FullyShardedDataParallel
    model = _wrapped(torch, **_options(torch)["layers"])
    found = [type(model.module).__name__, len(FSDP.fsdp_modules(model)), type(model.layers[0]).__name__]
    with FSDP.summon_full_params(model):
        found += [(name, each.detach().clone()) for name, each in model.named_parameters()]
        with torch.no_grad():
            for each in model.parameters():
                each.mul_(0.5)
    found.append(loss_of(torch, model, rank, 0).item())
    return found


def _hooks(torch):
    return importlib.import_module(f"{torch.__name__}.distributed.algorithms._comm_hooks.default_hooks")


def _losses_with_hook(torch, rank, name, hook, state):
    model = _wrapped(torch, **_options(torch)[name])
    model.register_comm_hook(state, hook)
    return model, losses_of(torch, model, torch.optim.SGD(model.parameters(), lr=0.2), rank, range(3))


def hooks_of_wrappers(torch, rank, size):
    hooks = _hooks(torch)
    state, found = hooks.DefaultState(torch.distributed.group.WORLD), []
    for name, hook in (("layers", hooks.reduce_scatter_hook), ("no shards", hooks.allreduce_hook)):
        model, losses = _losses_with_hook(torch, rank, name, hook, state)
        found.append(losses)
    found += [state.gradient_predivide_factor, state.gradient_postdivide_factor]
    for wrapper, given in ((model, hook), (model.layers[0], hook), (_wrapped(torch), 1)):
        try:
            wrapper.register_comm_hook(state, given)
        except (AssertionError, ValueError) as error:
            found.append(str(error))
    return found


def narrow_hooks_of_wrappers(torch, rank, size):
    """PyTorch's hooks of 16 bits need streams. Its hooks of 32 bits compute the same, but for rounding."""
    hooks, found = _hooks(torch), []
    state = hooks.LowPrecisionState(torch.distributed.group.WORLD)
    for narrow in ("fp16_compress_hook", "bf16_compress_hook"):
        for name, wide in (("layers", hooks.reduce_scatter_hook), ("no shards", hooks.allreduce_hook)):
            hook = wide if torch.__name__ == "torch" else getattr(hooks, narrow)
            found.append(_losses_with_hook(torch, rank, name, hook, state)[1])
    return found


def _goes_on_from_whole_tensors(torch, rank):
    """Whether another model with the whole state of a model and of its optimizer has the same losses."""
    fsdp = fsdp_of(torch)
    pairs = []
    for _ in range(2):
        model = _wrapped(torch)
        pairs.append((model, torch.optim.Adam(model.parameters(), lr=0.1)))
    losses_of(torch, *pairs[0], rank, [0])
    FSDP = fsdp.FullyShardedDataParallel
    state, states = pairs[0][0].state_dict(), FSDP.optim_state_dict(*pairs[0])
    pairs[1][0].load_state_dict(state)
    pairs[1][1].load_state_dict(FSDP.optim_state_dict_to_load(*pairs[1], states))
    of_other, of_first = (losses_of(torch, *pair, rank, [1, 2]) for pair in reversed(pairs))
    return of_other == of_first


def only_in_weft(torch, rank, size):
    """What PyTorch does with memory of the CPU only on GPUs, or ends with a crash: values of the first process, and state dicts on it."""
    if torch.__name__ == "torch":
        return None
    fsdp = fsdp_of(torch)
    FSDP, kinds = fsdp.FullyShardedDataParallel, fsdp.StateDictType
    plain, _ = model_of(torch)
    expected = loss_of(torch, plain, rank, 0).item()
    with torch.no_grad():
        for each in plain.parameters():
            each.add_(rank)
    model = FSDP(
        plain, sync_module_states=True, auto_wrap_policy=_options(torch)["large modules"]["auto_wrap_policy"]
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    loss = loss_of(torch, model, rank, 0)
    loss.backward()
    optimizer.step()
    found = [abs(loss.item() - expected) < 1e-6]
    with FSDP.summon_full_params(model, writeback=False), torch.no_grad():
        before = loss_of(torch, model.module, rank, 1).item()
        for each in model.parameters():
            each.zero_()
    found.append(abs(before - loss_of(torch, model, rank, 1).item()) < 1e-6)
    configs = fsdp.FullStateDictConfig(rank0_only=True), fsdp.FullOptimStateDictConfig(rank0_only=True)
    with FSDP.state_dict_type(model, kinds.FULL_STATE_DICT, *configs):
        state, states = model.state_dict(), FSDP.optim_state_dict(model, optimizer)
        found += [len(state) == (0 if rank else 21), len(states) == (0 if rank else 2)]
        before = [each.to_local().clone() for each in optimizer.state[model.out.weight].values() if each.ndim]
        optimizer.load_state_dict(FSDP.optim_state_dict_to_load(model, optimizer, states))
        after = [each.to_local() for each in optimizer.state[model.out.weight].values() if each.ndim]
        found.append(all(torch.equal(a, b) for a, b in zip(before, after, strict=True)))
    found.append(_goes_on_from_whole_tensors(torch, rank))
    with FSDP.state_dict_type(model, kinds.LOCAL_STATE_DICT):
        state = model.state_dict()
        found += [
            type(state["out.weight"]) is torch.Tensor,
            str(model.load_state_dict(state)).count("match") == 1,
        ]
    return found
