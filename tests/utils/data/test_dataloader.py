import os
import pickle
import random
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import weft

LETTERS = list("abcdefghij")


class Counting:
    """Mixed into an IterableDataset of either library."""

    length = None

    def __init__(self, count=5):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


class Measured(Counting):
    def __len__(self):
        return 3

    def __repr__(self):
        return "Measured"


def names_for(module):
    data = module.utils.data
    return {
        **vars(data),
        "DataLoader": data.DataLoader,
        "t": module,
        "letters": LETTERS,
        "numbers": range(10),
        "It": type("It", (Counting, data.IterableDataset), {}),
        "ItL": type("ItL", (Measured, data.IterableDataset), {}),
        "set_": lambda target, name, value: (setattr(target, name, value), getattr(target, name))[1],
    }


def outcome(expression, module):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = repr(eval(expression, names_for(module)))
        except Exception as error:
            result = type(error), str(error)
    texts = [(warning.category, str(warning.message)) for warning in caught]
    return result, [text for text in texts if text[0] is not DeprecationWarning]


@pytest.mark.parametrize(
    "expression",
    [
        "DataLoader()",
        "DataLoader(letters, num_workers=-1)",
        "DataLoader(letters, num_workers='a')",
        "DataLoader(letters, timeout=-1)",
        "DataLoader(letters, prefetch_factor=2)",
        "DataLoader(letters, num_workers=1, prefetch_factor=-2)",
        "DataLoader(letters, num_workers=1).prefetch_factor",
        "DataLoader(letters).prefetch_factor",
        "DataLoader(letters, persistent_workers=True)",
        "DataLoader(It(), shuffle=True)",
        "DataLoader(It(), shuffle=False).batch_size",
        "DataLoader(It(), shuffle=3)",
        "DataLoader(It(), sampler=[1])",
        "DataLoader(It(), batch_sampler=[1])",
        "DataLoader(letters, shuffle=True, sampler=[1])",
        "list(DataLoader(letters, shuffle=False, sampler=[1]))",
        "DataLoader(letters, batch_size=2, batch_sampler=[[1]])",
        "DataLoader(letters, drop_last=True, batch_sampler=[[1]])",
        "DataLoader(letters, shuffle=True, batch_sampler=[[1]])",
        "DataLoader(letters, sampler=[1], batch_sampler=[[1]])",
        "DataLoader(letters, batch_size=None, drop_last=True)",
        "DataLoader(letters, batch_size=0)",
        "DataLoader(letters, batch_size=-1)",
        "DataLoader(letters, batch_size=1.5)",
        "DataLoader(letters, batch_size=True)",
        "DataLoader(letters, batch_size='a')",
        "DataLoader(letters, drop_last=3)",
        "DataLoader(letters, multiprocessing_context='fork')",
        "DataLoader(letters, multiprocessing_context='nope', num_workers=1)",
        "DataLoader(letters, multiprocessing_context=3, num_workers=1)",
        "DataLoader(letters, num_workers=1, multiprocessing_context='spawn').multiprocessing_context.get_start_method()",
        "DataLoader([], shuffle=True)",
        "list(DataLoader([]))",
        "next(iter(DataLoader([])))",
        "list(DataLoader(numbers, pin_memory=True))",
        "list(DataLoader(numbers, pin_memory=True, pin_memory_device='cuda'))",
        "list(DataLoader(numbers, pin_memory_device='cuda'))",
        "len(DataLoader(It()))",
        "len(DataLoader(ItL()))",
        "len(DataLoader(ItL(), batch_size=2))",
        "len(DataLoader(ItL(), batch_size=2, drop_last=True))",
        "len(DataLoader(ItL(), batch_size=None))",
        "len(DataLoader(letters, batch_size=None))",
        "[len(DataLoader(letters, batch_size=3, drop_last=drop)) for drop in (False, True)]",
        "len(iter(DataLoader(letters, 4)))",
        "set_(DataLoader(letters), 'batch_size', 3)",
        "set_(DataLoader(letters), 'dataset', 3)",
        "set_(DataLoader(letters), 'sampler', 3)",
        "set_(DataLoader(letters), 'num_workers', 3)",
        "set_(DataLoader(letters), 'multiprocessing_context', 'fork')",
        "list(DataLoader(numbers, 4))",
        "list(DataLoader(numbers, 4, drop_last=True))",
        "list(DataLoader(numbers, 4, sampler=[7, 1, 2]))",
        "list(DataLoader(numbers, batch_sampler=[[7], [1, 2]]))",
        "list(DataLoader(numbers, None))",
        "list(DataLoader(It(), 4))",
        "list(DataLoader(It(), 4, drop_last=True))",
        "list(DataLoader(It(), None))",
        "list(DataLoader(numbers, 4, collate_fn=sum))",
        "list(DataLoader(numbers, None, collate_fn=str))",
        "list(DataLoader(Subset(numbers, [3, 4]), 2))",
        "(lambda loader: (len(loader), list(loader)))(DataLoader(ItL()))",
        "list(DataLoader({0: 1}))",
        "list(DataLoader([object], 1))",
        "list(DataLoader([[1, 2], [3]], batch_size=2))",
        "list(DataLoader(TensorDataset(t.arange(6).reshape(3, 2), t.ones(3)), 2))",
        "sorted(name for name in vars(DataLoader(letters)))",
        "iter(DataLoader(letters)).__getstate__()",
    ],
)
def test_loaders_do_what_pytorch_does(expression):
    assert outcome(expression, weft) == outcome(expression, torch)


@pytest.mark.parametrize(
    "expression",
    [
        "list(DataLoader(numbers, 4, num_workers=2))",
        "list(DataLoader(numbers, 4, num_workers=1, pin_memory=True))",
        "list(DataLoader(numbers, None, num_workers=2))",
        "list(DataLoader(It(), 2, num_workers=2))",
        "list(DataLoader(It(), 2, num_workers=2, drop_last=True))",
        "list(DataLoader(It(1), None, num_workers=2))",
        "(lambda loader: (len(loader), list(loader)))(DataLoader(ItL(), num_workers=2))",
        "(lambda loader: [list(loader) for _ in range(3)])(DataLoader(It(), 2, num_workers=2, persistent_workers=True))",
        "(lambda loader: [list(loader) for _ in range(3)])(DataLoader(numbers, 4, num_workers=2, persistent_workers=True))",
        "(lambda loader: [next(iter(loader)) for _ in range(3)])"
        "(DataLoader(It(), 2, num_workers=2, persistent_workers=True))",
        "sorted(list(DataLoader(numbers, None, num_workers=2, in_order=False)))",
        "sorted(list(DataLoader(It(), None, num_workers=2, in_order=False)))",
        "list(DataLoader([None, None], 1, num_workers=1, collate_fn=lambda items: items[0]))",
    ],
)
def test_workers_do_what_pytorch_does(expression):
    assert outcome(expression, weft) == outcome(expression, torch)


def test_workers_need_something_to_do():
    with pytest.raises(AssertionError, match="prefetch_factor"):
        iter(weft.utils.data.DataLoader(LETTERS, num_workers=1, prefetch_factor=0))


class Drawing:
    """A sampler that draws from the default generator when a pass begins, and for every index."""

    def __init__(self, module):
        self.module = module
        self.started = 0

    def __iter__(self):
        self.started += 1
        first = self.module.randint(100, ()).item()
        return iter([first % 7, *(self.index() for _ in range(3))])

    def index(self):
        return self.module.randint(7, ()).item()

    def __len__(self):
        return 4


def orders(module, epochs, with_generator, sampler, **options):
    """All batches of some epochs, and where they leave the generators."""
    module.manual_seed(17)
    generator = module.Generator().manual_seed(23) if with_generator else None
    data = module.utils.data
    samplers = {
        "weighted": lambda: data.WeightedRandomSampler(range(1, 24), 30, generator=generator),
        "replacement": lambda: data.RandomSampler(range(23), True, 50, generator=generator),
        "many": lambda: data.RandomSampler(range(23), num_samples=60, generator=generator),
        "subset": lambda: data.SubsetRandomSampler([3, 5, 8, 11, 2], generator=generator),
        "drawing": lambda: Drawing(module),
    }
    if sampler in samplers:
        options["sampler"] = samplers[sampler]()
    else:
        options["shuffle"] = sampler == "shuffle"
    loader = data.DataLoader(range(23), generator=generator, **options)
    passes = []
    for _ in range(epochs):
        passes.append([batch.tolist() if hasattr(batch, "tolist") else batch for batch in loader])
        passes.append(module.rand(1).item())  # what a training step may draw
    if generator is not None:
        passes.append(module.rand(1, generator=generator).item())
    return passes


SAMPLERS = ("shuffle", "sequential", "weighted", "replacement", "many", "subset", "drawing")


@given(
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from(SAMPLERS),
    st.one_of(st.none(), st.integers(1, 25)),
    st.booleans(),
)
def test_shuffles_as_pytorch(epochs, with_generator, sampler, batch_size, drop_last):
    options = {"batch_size": batch_size, "drop_last": drop_last and batch_size is not None}
    got = orders(weft, epochs, with_generator, sampler, **options)
    assert got == orders(torch, epochs, with_generator, sampler, **options)


@pytest.mark.parametrize(("with_generator", "persistent_workers"), [(False, True), (True, False)])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_shuffles_as_pytorch_with_workers(sampler, with_generator, persistent_workers):
    options = {"batch_size": 5, "num_workers": 2, "persistent_workers": persistent_workers}
    got = orders(weft, 2, with_generator, sampler, **options)
    assert got == orders(torch, 2, with_generator, sampler, **options)


def seeds_of(module):
    class Seeds(module.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            worker = module.utils.data.get_worker_info()
            drawn = module.rand(3).tolist(), random.random(), np.random.rand(3).tolist()
            told = worker.id, worker.num_workers, worker.seed, type(worker.dataset).__name__
            return drawn, told, worker.rng, worker.worker_method, module.get_num_threads()

    module.manual_seed(5)
    options = {"batch_size": None, "num_workers": 2, "multiprocessing_context": "fork"}
    return list(module.utils.data.DataLoader(Seeds(), **options, collate_fn=lambda item: item))


def test_workers_have_the_seeds_of_pytorch():
    assert seeds_of(weft) == seeds_of(torch)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("abandon_after", [0, 1, 2])
def test_an_abandoned_pass_leaves_the_generator_where_pytorch_does(shuffle, abandon_after):
    def drawn(module):
        module.manual_seed(3)
        iterator = iter(module.utils.data.DataLoader(range(9), 2, shuffle=shuffle))
        batches = [next(iterator).tolist() for _ in range(abandon_after)]
        return batches, module.rand(1).item()

    assert drawn(weft) == drawn(torch)


def test_iterators_cannot_be_pickled():
    with pytest.raises(NotImplementedError):
        pickle.dumps(iter(weft.utils.data.DataLoader([1])))


def test_loading_data_does_not_import_multiprocessing():
    code = (
        "import sys, weft.utils.data as d; list(d.DataLoader(range(3)));"
        "print([m for m in ('multiprocessing', 'scipy') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["_collate_fn_t", "_worker_init_fn_t"])
def test_types_of_functions_that_libraries_annotate_with(name):
    own, other = (getattr(library.utils.data.dataloader, name) for library in (weft, torch))
    assert own == other or str(own) == str(other)
