"""Data pipes give PyTorch's elements in PyTorch's order."""

import importlib
import operator
import pickle

import pytest
import torch
import torch.utils.data.datapipes.utils.decoder
import torch.utils.data.datapipes.utils.snapshot
import torch.utils.data.graph_settings

import weft
import weft.utils.data.datapipes.utils.decoder
import weft.utils.data.datapipes.utils.snapshot
import weft.utils.data.graph_settings

pytestmark = pytest.mark.filterwarnings("ignore")


def outcome(lib, expression):
    lib.manual_seed(3)
    data = lib.utils.data
    names = {
        "lib": lib,
        "data": data,
        "iter": data.datapipes.iter,
        "map": data.datapipes.map,
        "neg": operator.neg,
        "operator": operator,
    }
    names["I"] = lambda *items: data.datapipes.iter.IterableWrapper(list(items))
    names["M"] = lambda *items: data.datapipes.map.SequenceWrapper(list(items))
    try:
        return plain(eval(expression, names))
    except Exception as error:
        return type(error)


def plain(value):
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value


EXPRESSIONS = """
list(I(1, 2, 3).map(neg))
list(I((1, 2), (3, 4)).map(neg, input_col=1))
list(I((1, 2), (3, 4)).map(operator.add, input_col=(0, 1)))
list(I([1, 2], [3, 4]).map(neg, input_col=0, output_col=1))
list(I([1, 2], [3, 4]).map(neg, input_col=0, output_col=-1))
I(1, 2).map(neg, output_col=1)
list(I({'a': 1}).map(neg, input_col='a', output_col='b'))
list(I(1, 2, 3, 4, 5).batch(2))
list(I(1, 2, 3, 4, 5).batch(2, drop_last=True))
len(I(1, 2, 3, 4, 5).batch(2)), len(I(1, 2, 3, 4, 5).batch(2, drop_last=True))
I(1).batch(0)
list(I(1, 2, 3, 4, 5).batch(2).batch(2).unbatch())
list(I(1, 2, 3, 4, 5).batch(2).batch(2).unbatch(2))
list(I(1, 2, 3, 4, 5).batch(2).batch(2).unbatch(-1))
list(I(1, 2, 3).unbatch(2))
list(I(1, 2, 3, 4).filter(lambda x: x > 2))
list(I((1, 2), (3, 0)).filter(lambda x: x > 1, input_col=1))
list(I(1, 2).filter(neg))
list(I(1, 2).concat(I(3))), len(I(1, 2).concat(I(3)))
list(I(1, 2).zip(I(3))), len(I(1, 2).zip(I(3)))
list(I(1, 2, 3).mux(I(4, 5), I(6, 7, 8))), len(I(1, 2, 3).mux(I(4, 5)))
[list(each) for each in I(1, 2, 3, 4).demux(2, lambda x: x % 2)]
[list(each) for each in I(1, 2, 3).fork(2)]
[list(each) for each in I(1, 2, 3).fork(2, buffer_size=1)]
[next(each) for each in [I(1, 2, 3).fork(2, buffer_size=1)[0].__iter__()] * 2]
[next(each) for each in [I(1, 2, 3).fork(2, buffer_size=2)[0].__iter__()] * 2]
I(1, 2).fork(0)
list(I(0, 1, 1, 2, 1, 0).groupby(lambda x: x, buffer_size=4))
list(I((1, 2, 3, 4)).map(lambda a, b, c: a + b + c, input_col=[0, 1, 3]))
list(I(*range(20)).shuffle())
list(I(*range(20)).shuffle(buffer_size=4))
list(I(*range(20)).shuffle().set_seed(5))
list(I(*range(6)).shuffle().set_shuffle(False))
list(I(*range(6)).batch(2).shuffle(unbatch_level=1))
list(iter.Sampler(I(*range(4))))
list(I(*range(9)).groupby(lambda x: x % 3))
list(I(*range(9)).groupby(lambda x: x % 3, group_size=2))
list(I(*range(9)).groupby(lambda x: x % 3, keep_key=True, group_size=2, buffer_size=4))
list(I(*range(6)).batch(3).collate())
list(I(1.0, 2.0).collate(collate_fn=neg))
list(data.graph_settings.apply_sharding(I(*range(7)).sharding_filter(), 3, 1))
len(data.graph_settings.apply_sharding(I(*range(7)).sharding_filter(), 3, 0))
list(M(1, 2, 3).map(neg)), len(M(1, 2, 3).map(neg))
M(1, 2, 3).batch(2)[1], len(M(1, 2, 3).batch(2)), M(1, 2).concat(M(3))[2], M(1, 2).zip(M(3, 4))[1]
M(1, 2, 3).batch(2, drop_last=True)[1]
list(M(*range(9)).shuffle())
list(M(*range(4)).shuffle(indices=[3, 1]).set_seed(1))
M({'a': 1})[0]
list(data.DataLoader(I(*range(10)).shuffle(), batch_size=4))
list(data.DataLoader(I(*range(10)), batch_size=4, shuffle=True))
list(data.DataLoader(M(*range(10)), batch_size=4, shuffle=True))
list(data.DataLoader(M(*range(10)).map(neg), batch_size=4))
list(data.DataLoader(I(*range(10)).shuffle().sharding_filter(), batch_size=2, num_workers=2))
I(1).nonsense
str(I(1)), repr(I(1).batch(2))
data.IterDataPipe.register_datapipe_as_function('batch', list)
list(data.datapipes.utils.decoder.Decoder(data.datapipes.utils.decoder.basichandlers)(('a.json', b'[1, 2]')).items())
list(data.datapipes.utils.decoder.Decoder(data.datapipes.utils.decoder.basichandlers)(('a.cls', b'7')).items())
data.datapipes.utils.decoder.extension_extract_fn('x/y.tar.gz')
len(data.graph_settings.get_all_graph_pipes(data.graph.traverse_dps(I(1).batch(2).map(neg))))
data.DataChunk([1, 2]).as_str('  ')
issubclass(data.IterDataPipe, data.IterableDataset), issubclass(data.MapDataPipe, data.Dataset)
"""


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_like_pytorch(expression):
    found, expected = (outcome(lib, expression) for lib in (weft, torch))
    assert found == expected


@pytest.mark.parametrize("lib", [weft, torch])
def test_files(lib, tmp_path):
    (tmp_path / "b.txt").write_text("second")
    (tmp_path / "a.txt").write_text("first")
    (tmp_path / "c.json").write_text("[3]")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "d.txt").write_text("fourth")
    pipes = lib.utils.data.datapipes.iter
    names = [path.rpartition("/")[2] for path in pipes.FileLister(str(tmp_path), "*.txt")]
    assert names == ["a.txt", "b.txt"]
    deep = [path.rpartition("/")[2] for path in pipes.FileLister(str(tmp_path), "*.txt", recursive=True)]
    assert deep == ["a.txt", "b.txt", "d.txt"]
    opened = pipes.FileOpener(pipes.FileLister(str(tmp_path), ["*.txt"]), mode="b")
    assert [content for _, content in pipes.StreamReader(opened)] == [b"first", b"second"]
    opened = pipes.FileLister(str(tmp_path), "c.*").open_files(mode="b")
    assert [content for _, content in opened.routed_decode()] == [[3]]


@pytest.mark.parametrize("lib", [weft, torch])
def test_only_the_last_iterator_goes_on(lib):
    pipe = lib.utils.data.datapipes.iter.IterableWrapper(range(3))
    first = iter(pipe)
    assert next(first) == 0
    second = iter(pipe)
    assert next(second) == 0
    with pytest.raises(RuntimeError, match="invalidated"):
        next(first)


class _Counting:
    """Is its own iterator."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.numbers = iter(range(4))

    def __next__(self):
        return next(self.numbers)


class _Sharded:
    def apply_sharding(self, count, number):
        self.number = number


# PyTorch pickles pipes to find which they are made of, so these classes are global.
class _Counting1(_Counting, weft.utils.data.IterDataPipe):
    pass


class _Counting2(_Counting, torch.utils.data.IterDataPipe):
    pass


class _Sharded1(_Sharded, weft.utils.data.IterDataPipe):
    pass


class _Sharded2(_Sharded, torch.utils.data.IterDataPipe):
    pass


COUNTING, SHARDED = {weft: _Counting1, torch: _Counting2}, {weft: _Sharded1, torch: _Sharded2}


@pytest.mark.parametrize("lib", [weft, torch])
def test_a_pipe_that_is_its_own_iterator(lib):
    pipe = COUNTING[lib]()
    assert list(pipe) == list(pipe) == [0, 1, 2, 3]
    first = iter(pipe)
    assert next(first) == 0
    second = iter(pipe)  # begins anew at once
    with pytest.raises(RuntimeError, match="invalidated"):
        next(first)
    assert [next(pipe), next(second)] == [0, 1]


@pytest.mark.parametrize("lib", [weft, torch])
def test_generations_of_a_fork(lib):
    one, two = lib.utils.data.datapipes.iter.IterableWrapper(range(3)).fork(2)
    assert list(one) == list(two) == [0, 1, 2]
    assert list(one.mux(two)) == [0, 0, 1, 1, 2, 2]
    assert list(one) == list(pickle.loads(pickle.dumps(two))) == [0, 1, 2]
    first = iter(two)
    with pytest.warns(UserWarning, match="child DataPipes are not exhausted"):
        second = iter(two)
    with pytest.raises(RuntimeError, match="invalidated"):
        next(first)
    third = iter(one)  # belongs to the generation of `second`
    assert [next(second), next(third), next(second)] == [0, 0, 1]


@pytest.mark.parametrize("lib", [weft, torch])
@pytest.mark.parametrize(
    "make",
    [
        lambda lib, source: source.shuffle().batch(2).map(operator.neg, input_col=0),
        lambda lib, source: (lambda one, two: one.zip(two))(*source.shuffle().fork(2)),
        lambda lib, source: COUNTING[lib](),
    ],
)
def test_an_iteration_that_goes_on(lib, make):
    data = lib.utils.data
    pipe, seeds = make(lib, data.datapipes.iter.IterableWrapper(range(10))), lib.Generator()
    restore = data.datapipes.utils.snapshot._simple_graph_snapshot_restoration
    data.graph_settings.apply_random_seed(pipe, seeds.manual_seed(5))
    everything = list(pipe)
    for _ in range(2):
        restore(pipe, 2, seeds.manual_seed(5))
        with pytest.raises(RuntimeError, match="cannot be applied"):
            restore(pipe, 2)
        assert list(pipe) == everything[2:]
    with pytest.raises(RuntimeError, match="exceeds the number of samples"):
        restore(pipe, 20)


@pytest.mark.parametrize("lib", [weft, torch])
def test_a_restored_pipe_keeps_its_state(lib):
    """A copy of a shuffled pipe in the middle of an iteration goes on with the elements that it had read."""
    from_torch = importlib.import_module(f"{lib.__name__}.utils.data.datapipes._hook_iterator")
    pipe = lib.utils.data.datapipes.map.SequenceWrapper(range(10)).shuffle()
    iterator = iter(pipe)
    next(iterator)
    again = pickle.loads(pickle.dumps(pipe))
    again._snapshot_state = from_torch._SnapshotState.Restored
    assert list(again) == list(iterator)


@pytest.mark.parametrize("lib", [weft, torch])
def test_what_has_no_length(lib):
    pipe = SHARDED[lib]()
    made = [
        pipe.map(operator.neg),
        pipe.batch(2),
        pipe.concat(pipe),
        pipe.zip(pipe),
        pipe.shuffle(),
    ]
    for each in made:
        with pytest.raises(TypeError, match=f"{type(each).__name__} instance doesn't have valid length"):
            len(each)
    with pytest.raises(AssertionError, match="__len__"):
        lib.utils.data.datapipes.iter.Sampler(pipe)


@pytest.mark.parametrize("lib", [weft, torch])
def test_sharding_without_groups_and_decoded_files(lib, tmp_path):
    pipe = SHARDED[lib]()
    lib.utils.data.graph_settings.apply_sharding(pipe, 3, 2)
    assert pipe.number == 2
    (tmp_path / "a.json").write_text("[3]")
    file = open(tmp_path / "a.json", "rb")
    source = lib.utils.data.datapipes.iter.IterableWrapper([("a.json", file)], deepcopy=False)
    assert list(source.routed_decode()) == [("a.json", [3])] and file.closed


@pytest.mark.parametrize("lib", [weft, torch])
def test_own_pipes(lib):
    data = lib.utils.data

    @data.functional_datapipe(f"twice_{lib.__name__}")
    class Twice(data.IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for each in self.source:
                yield each
                yield each

    source = data.datapipes.iter.IterableWrapper([1, 2])
    assert list(getattr(source, f"twice_{lib.__name__}")()) == [1, 1, 2, 2]
