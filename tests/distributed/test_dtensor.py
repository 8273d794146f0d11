import copy
import pickle

import pytest
import torch
import torch.distributed.checkpoint
import torch.distributed.tensor
from one_rank import groups, same

import weft


@pytest.fixture(scope="module", autouse=True)
def one_rank():
    with groups():
        yield


def parts(library, *shape):
    """The module, a mesh, a tensor and a DTensor."""
    module, mesh = library.distributed.tensor, library.distributed.init_device_mesh("cpu", (1,))
    x = library.arange(6.0).reshape(2, 3)
    return module, mesh, x, module.distribute_tensor(x, mesh, [module.Shard(0)])


def test_making_and_reading():
    def program(library):
        module, mesh, x, d = parts(library)
        return [
            d,
            d.placements,
            d.device_mesh,
            d.to_local(),
            d.full_tensor(),
            type(d.to_local()) is library.Tensor,
            d.shape,
            isinstance(d, module.DTensor),
            isinstance(x, module.DTensor),
            d.to_local().data_ptr() == x.data_ptr(),
            module.DTensor.from_local(x, mesh, [module.Shard(-1)]),
            module.distribute_tensor(x, mesh),
            d.redistribute(mesh, [module.Replicate()]),
            module.full((2,), 3.0, device_mesh=mesh, placements=[module.Replicate()]),
            module.ones(2, 2, device_mesh=mesh, placements=[module.Shard(0)]),
        ]

    same(program)


def test_a_dtensor_does_not_share_memory_with_the_tensor_it_was_made_of():
    """PyTorch's does where it is replicated."""
    mesh = weft.distributed.init_device_mesh("cpu", (1,))
    module = weft.distributed.tensor
    for placement in (module.Replicate(), module.Shard(0), module.Shard(1)):
        for source in (0, None):
            x = weft.zeros(2, 3)
            d = module.distribute_tensor(x, mesh, [placement], src_data_rank=source)
            d.to_local().fill_(1)
            assert x.sum() == 0


def test_refusals():
    def mixed(library):
        module, mesh, x, d = parts(library)
        return d + x

    def length(library):
        module, mesh, x, d = parts(library)
        return module.distribute_tensor(x, mesh, [module.Shard(0), module.Shard(1)])

    def no_leaf(library):
        module, mesh, x, d = parts(library)
        return module.distribute_tensor(x.requires_grad_() * 2, mesh)

    def partial(library):
        module, mesh, x, d = parts(library)
        return d.redistribute(mesh, [module.Partial()])

    for program in (mixed, length, no_leaf, partial):
        same(program)


@pytest.mark.parametrize(
    "change", [lambda d: d.set_(), lambda d: d.set_(d), lambda d: d.resize_(3), lambda d: d.resize_as_(d)]
)
def test_dtensors_keep_their_memory(change):
    _, _, x, d = parts(weft)
    with pytest.raises(NotImplementedError, match="keeps its memory"):
        change(d)
    assert d.full_tensor().equal(x)


def test_a_part_has_the_sizes_that_belong_to_the_shape():
    """Rules compute on parts with sizes that they work out from those of the whole."""
    module, mesh, x, _ = parts(weft)
    given = module.DTensor.from_local(x, mesh, [module.Shard(0)], shape=(2, 3), stride=(3, 1))
    assert given.full_tensor().equal(x)
    with pytest.raises(
        ValueError, match=r"a part of shape \[2, 3\] is given.*this process has a part of shape \[7, 3\]"
    ):
        module.DTensor.from_local(x, mesh, [module.Shard(0)], shape=(7, 3), stride=(3, 1))


def test_operations_give_the_values():
    def program(library):
        module, mesh, x, d = parts(library)
        results = [
            d + 1,
            2 * d,
            d @ d.t(),
            d.sum(),
            library.relu(d),
            d.mean(0),
            d.reshape(6),
            d.max(1).values,
        ]
        return [isinstance(each, module.DTensor) for each in results], [
            each.full_tensor() for each in results
        ]

    same(program)


def test_gradients():
    def program(library):
        module, mesh, x, d = parts(library)
        p = library.nn.Parameter(d)
        (p * p).sum().backward()
        local = x.clone().requires_grad_()
        module.DTensor.from_local(local, mesh, [module.Replicate()]).to_local().square().sum().backward()
        return (
            isinstance(p, library.nn.Parameter),
            isinstance(p, module.DTensor),
            isinstance(p.grad, module.DTensor),
            p.grad.full_tensor(),
            local.grad,
        )

    same(program)


def test_modules():
    def program(library):
        module, mesh, _, _ = parts(library)
        library.manual_seed(0)
        layer = module.distribute_module(
            library.nn.Linear(3, 2),
            mesh,
            input_fn=lambda owner, inputs, mesh: module.distribute_tensor(inputs[0], mesh),
            output_fn=lambda owner, outputs, mesh: outputs.to_local(),
        )
        optimizer = library.optim.SGD(layer.parameters(), 0.1)
        layer(library.ones(1, 3)).sum().backward()
        optimizer.step()
        return layer.weight.placements, layer.weight.full_tensor().detach().mul(1000).round()

    same(program)


def test_parameters_of_meta_get_memory():
    """fully_shard and optimizers hold the parameters, so these stay the same objects."""

    def program(library):
        module, mesh, _, _ = parts(library)
        with library.device("meta"):
            layer = library.nn.Linear(3, 2)
        places = {"weight": [module.Shard(0)], "bias": [module.Replicate()]}
        for name, place in places.items():
            cut = module.distribute_tensor(getattr(layer, name), mesh, place)
            setattr(layer, name, library.nn.Parameter(cut))
        weight = layer.weight
        found = [weight.is_meta, weight.to_local().is_meta]
        layer.to_empty(device="cpu")
        wraps = library.utils._python_dispatch.is_traceable_wrapper_subclass(weight)
        return [
            *found,
            layer.weight is weight,
            weight.device,
            weight.to_local().device,
            weight.placements,
            wraps,
        ]

    same(program)


def test_wrapped_and_unwrapped():
    _, _, x, d = parts(weft)
    names, rest = d.__tensor_flatten__()
    inner = {name: getattr(d, name) + 1 for name in names}
    again = type(d).__tensor_unflatten__(inner, rest, d.size(), d.stride())
    assert again.placements == d.placements and again.full_tensor().equal(x + 1)


def test_writes_that_have_no_rule():
    module, mesh, _, _ = parts(weft)
    x = weft.arange(4.0)
    d = module.distribute_tensor(x, mesh, [module.Shard(0)])
    assert d.cumsum_(0) is d and d.full_tensor().equal(x.cumsum(0))
    p = weft.nn.Parameter(d)
    with pytest.raises(RuntimeError, match="leaf"):
        p.normal_()
    with pytest.raises(NotImplementedError, match="normal_: it writes to a view of a dim that is cut, or"):
        (p * 2).normal_()
    assert p.full_tensor().equal(x.cumsum(0))


def test_checkpoints_have_the_part(tmp_path):
    import weft.distributed.checkpoint as dcp

    _, _, x, d = parts(weft)
    dcp.save({"d": d}, checkpoint_id=tmp_path)
    into = {"d": torch.zeros(2, 3)}
    torch.distributed.checkpoint.load(into, checkpoint_id=tmp_path)
    assert into["d"].tolist() == x.tolist()
    back = {"d": parts(weft)[3].mul_(0)}
    dcp.load(back, checkpoint_id=tmp_path)
    assert back["d"].to_local().tolist() == x.tolist()


def test_deepcopy():
    module, mesh, x, d = parts(weft)
    p = weft.nn.Parameter(d)
    (p * 2).sum().backward()
    copied = copy.deepcopy(p)
    assert isinstance(copied, weft.nn.Parameter) and copied.placements == p.placements
    assert copied.to_local().data_ptr() != p.to_local().data_ptr()
    assert copied.full_tensor().tolist() == x.tolist() and copied.grad.full_tensor().tolist() == [[2] * 3] * 2
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(p * 2)


def for_files(library):
    """Four objects for files."""
    module = library.distributed.tensor
    mesh = library.distributed.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    cut = module.distribute_tensor(
        library.arange(6.0).reshape(3, 2), mesh, [module.Shard(0), module.Replicate()]
    )
    sums = module.DTensor.from_local(library.ones(2), mesh["tp"], [module.Partial("avg")])
    weight = library.nn.Parameter(cut)
    weight.note = "an attribute"
    return {"cut": cut, "weight": weight, "sums": sums, "mesh": mesh}


def seen(loaded):
    return [
        (
            str(each.placements),
            str(each.device_mesh),
            each.requires_grad,
            tuple(each.stride()),
            each.full_tensor().tolist(),
        )
        if name != "mesh"
        else str(each)
        for name, each in loaded.items()
    ]


@pytest.mark.parametrize("writer, reader", [(weft, weft), (weft, torch), (torch, weft)])
def test_files(tmp_path, writer, reader):
    """Files of DTensors are those of PyTorch, and are read without trust."""
    written = for_files(writer)
    writer.save(written, tmp_path / "d.pt")
    read = reader.load(tmp_path / "d.pt")
    assert seen(read) == seen(written)
    assert read["mesh"] == for_files(reader)["mesh"]
    assert (
        isinstance(read["weight"], reader.nn.Parameter)
        and (read["cut"] + 1).placements == read["cut"].placements
    )


def test_pickle_and_copy():
    _, mesh, _, d = parts(weft)
    assert copy.copy(d).to_local().data_ptr() == d.to_local().data_ptr()
    again, other = pickle.loads(pickle.dumps((d, mesh)))
    assert again.full_tensor().tolist() == d.full_tensor().tolist() and other == mesh == copy.deepcopy(mesh)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.update(_local_tensor=weft.zeros(1, 3)),
        lambda state: state.update(_local_tensor=weft.zeros(2, 3, dtype=weft.float64)),
        lambda state: state.update(_local_tensor=None),
        lambda state: state.update(_spec=None),
        lambda state: state["_spec"].__dict__.update(placements=(weft.distributed.tensor.Shard(2),)),
        lambda state: state["_spec"].__dict__.update(placements=()),
        lambda state: state["_spec"].__dict__.update(mesh=None),
        lambda state: state["_spec"].__dict__.update(tensor_meta=(2, 3)),
    ],
)
def test_wrong_states_of_files_are_refused(tmp_path, change):
    """The part of a DTensor has the shape that its placements say, because views of parts rely on that."""
    _, _, _, d = parts(weft)
    function, (made, cls, arguments, (_, state)) = d.__reduce_ex__(2)
    change(state)

    class Changed:
        def __reduce__(self):
            return function, (made, cls, arguments, (None, state))

    weft.save(Changed(), tmp_path / "d.pt")
    with pytest.raises((pickle.UnpicklingError, TypeError, ValueError), match="DTensor|placements"):
        weft.load(tmp_path / "d.pt")


def test_asking_costs_nothing(run):
    """A class with `__torch_function__` makes every call slower, so there is none before the first DTensor."""
    code = "import weft; from weft.core.overrides import override_types; from weft.distributed.tensor import DTensor; print(len(override_types))"
    assert run("-c", code).stdout.split() == ["0"]


def test_without_dtensors_nothing_is_watched(run):
    """Calls of plain tensors pay for a watch, and functions are not compiled while there is one."""
    code = """
import weft as torch
from weft.autograd.carried import carriers
from weft.core.dispatch import watchers
dist = torch.distributed
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
d = dist.tensor.distribute_tensor(torch.ones(2), dist.init_device_mesh("cpu", (1,)))
print(len(watchers), len(carriers))
del d
torch.ones(2) @ torch.ones(2)
print(len(watchers), len(carriers))
"""
    assert run("-c", code).stdout.split() == ["1", "1", "0", "0"]
