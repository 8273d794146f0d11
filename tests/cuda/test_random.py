"""Random numbers on CUDA devices: PyTorch's for the same seed, on a device of 132 multiprocessors."""

import functools
import math
import pickle

import numpy as np
import pytest

import weft
from weft.nn import functional as F
from weft.utils.checkpoint import checkpoint

HERE = "cuda"
BLOCKS = 132 * 8  # of 256 threads, which such a device runs at once


@pytest.fixture(autouse=True)
def _multiprocessors(monkeypatch):
    monkeypatch.setattr(weft.device(HERE).backend.runtime, "multiprocessors", 132)
    monkeypatch.setattr(weft.device(HERE).backend.runtime, "threads_per_multiprocessor", 2048)


def philox(seed, counters, threads):
    """The words of Philox 4x32-10 by NumPy, [4, *shape]. Source: Salmon et al. 2011."""
    counters, threads = np.broadcast_arrays(np.uint64(counters), np.uint64(threads))
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    c = [counters & mask, counters >> shift, threads & mask, threads >> shift]
    k = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [second >> shift ^ c[1] ^ k[0], second & mask, first >> shift ^ c[3] ^ k[1], first & mask]
        k = [k[0] + np.uint64(0x9E3779B9) & mask, k[1] + np.uint64(0xBB67AE85) & mask]
    return np.stack(c).astype(np.uint32)


def drawn_words(seed, offset, count, lanes):
    """The words of each element, [count, 4 // lanes], in PyTorch's mapping of threads to elements."""
    threads = min(-(-count // 256), BLOCKS) * 256
    elements = np.arange(count)
    turn, rest = np.divmod(elements, threads * lanes)
    lane, thread = np.divmod(rest, threads)
    words = philox(seed, offset // 4 + turn, thread)
    return np.take_along_axis(words.reshape(lanes, 4 // lanes, count), lane[None, None], 0)[0].T


def test_published_numbers():
    """What programs with PyTorch have printed."""
    weft.manual_seed(1729)
    assert (
        str(weft.rand(2, 2, device=HERE))
        == "tensor([[0.3344, 0.2640],\n        [0.2119, 0.0582]], device='cuda:0')"
    )
    weft.manual_seed(0)
    assert str(weft.rand(5, device=HERE).cpu()) == "tensor([0.3990, 0.5167, 0.0249, 0.9401, 0.9459])"
    weft.cuda.manual_seed(10)
    assert str(weft.randn(3, device=HERE).cpu()) == "tensor([-0.1029,  1.6810, -0.2708])"


@pytest.mark.parametrize("count", [1, 255, 257, 5000, 256 * BLOCKS * 4 + 3])
def test_words_go_to_elements_as_in_pytorch(count):
    seed = 0x123456789ABCDEF0
    generator = weft.Generator(HERE).manual_seed(seed)
    generator.set_offset(8)
    got = weft.empty(count, dtype=weft.int64, device=HERE).random_(0, 2**20, generator=generator)
    expected = drawn_words(seed, 8, count, 4)[:, 0] % 2**20
    assert np.array_equal(got.cpu().numpy(), expected)
    assert generator.get_offset() == 8 + 4 * ((count - 1) // (min(-(-count // 256), BLOCKS) * 1024) + 1)


def test_large_integers_take_two_words():
    generator = weft.Generator(HERE).manual_seed(3)
    got = weft.randint(-5, 2**40, (1000,), generator=generator, device=HERE)
    words = drawn_words(3, 0, 1000, 2).astype(np.uint64)
    wide = words[:, 0] << np.uint64(32) | words[:, 1]
    assert np.array_equal(got.cpu().numpy(), (wide % np.uint64(2**40 + 5)).astype(np.int64) - 5)


def test_uniform_numbers():
    generator = weft.Generator(HERE).manual_seed(4)
    single = weft.rand(3000, generator=generator, device=HERE).cpu().numpy()
    words = drawn_words(4, 0, 3000, 4)[:, 0].astype(np.float32).astype(np.float64)
    expected = (words * 2.0**-32 + 2.0**-33).astype(np.float32)
    assert np.array_equal(single, np.where(expected == 1, np.float32(0), expected))
    double = (
        weft.rand(3000, dtype=weft.float64, generator=generator.manual_seed(4), device=HERE).cpu().numpy()
    )
    words = drawn_words(4, 0, 3000, 2).astype(np.uint64)
    expected = (words[:, 0] ^ words[:, 1] << np.uint64(21)).astype(np.float64) * 2.0**-53 + 2.0**-54
    assert np.array_equal(double, expected)


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
def test_normal_numbers(dtype):
    count = 2000
    generator = weft.Generator(HERE).manual_seed(5)
    got = weft.empty(count, dtype=dtype, device=HERE).normal_(3, 2, generator=generator).cpu().numpy()
    words = philox(5, 0, np.arange(8 * 256)).astype(np.float64)
    if dtype is weft.float32:
        pairs = words.reshape(2, 2, -1)
        radius, angle = (
            np.sqrt(-2 * np.log(pairs[:, 0] * 2.0**-32 + 2.0**-33)),
            (pairs[:, 1] + 0.5) * 2.0**-31 * np.pi,
        )
        normals = np.concatenate(
            [np.stack([r * np.sin(a), r * np.cos(a)]) for r, a in zip(radius, angle, strict=True)]
        )
    else:
        first, second = (
            words[k].astype(np.uint64) ^ words[k + 1].astype(np.uint64) << np.uint64(21) for k in (0, 2)
        )
        radius = np.sqrt(-2 * np.log(first * 2.0**-53 + 2.0**-54))
        angle = (second * 2.0**-52 + 2.0**-53) * np.pi
        normals = np.stack([radius * np.sin(angle), radius * np.cos(angle)])
    expected = normals.reshape(-1)[:count] * 2 + 3
    np.testing.assert_allclose(got, expected, rtol=3e-6 if dtype is weft.float32 else 1e-14, atol=2e-6)


@pytest.mark.parametrize("dtype", [weft.float16, weft.bfloat16, weft.float32, weft.float64])
def test_distributions(dtype):
    weft.manual_seed(6)
    x = weft.empty(200_000, dtype=dtype, device=HERE)
    quarter = lambda values: values.double().quantile(0.25).item()  # noqa: E731
    assert abs(x.uniform_(2, 6).double().mean().item() - 4) < 0.02 and 2 <= x.min() and x.max() <= 6
    assert abs(quarter(x.exponential_(2.0)) - np.log(4 / 3) / 2) < 0.01
    assert x.min() > 0 or dtype is weft.float16  # which rounds the shortest times to zero
    assert abs(x.geometric_(0.25).double().mean().item() - 4) < 0.05 and x.min() == 1
    assert abs(x.bernoulli_(0.3).double().mean().item() - 0.3) < 0.01
    assert abs(quarter(x.cauchy_(1, 2)) - -1) < 0.05
    assert abs(quarter(x.log_normal_(0, 1)) - np.exp(-0.6745)) < 0.02
    assert abs(x.random_(0, 4).double().mean().item() - 1.5) < 0.02


def test_every_dtype_of_integers():
    for dtype in (weft.uint8, weft.int8, weft.int16, weft.int32, weft.int64, weft.bool):
        x = weft.empty(10_000, dtype=dtype, device=HERE).random_().double()
        most = 1 if dtype is weft.bool else weft.iinfo(dtype).max
        assert 0 <= x.min() and x.max() <= most and abs(x.mean().item() / most - 0.5) < 0.02


def test_what_draws_in_another_order_follows_the_seed():
    weights = weft.arange(1.0, 6.0, device=HERE)
    calls = (
        lambda: weft.randperm(20, device=HERE),
        lambda: weft.multinomial(weights, 3),
        lambda: weft.poisson(weights),
        lambda: weft.binomial(weights, weights / 10),
        lambda: weft._standard_gamma(weights),
        lambda: F.rrelu(-weights, training=True),
        lambda: F.dropout(weights),
    )
    for call in calls:
        weft.manual_seed(7)
        first, second = call(), call()
        weft.manual_seed(7)
        assert first.device.type == HERE and first.tolist() == call().tolist()
        assert second.tolist() == call().tolist()
    assert any(calls[0]().tolist() != calls[0]().tolist() for _ in range(3))


def standardized(x, mean, variance):
    return (x.double() - mean).cpu() / math.sqrt(variance)


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
def test_numbers_by_rejection(dtype):
    """The mean and the variance of 40,000 numbers are those of the distribution: for each sampler, within 5 standard errors."""
    weft.manual_seed(11)
    filled = functools.partial(weft.full, (40_000,), dtype=dtype, device=HERE)
    found = [standardized(weft._standard_gamma(filled(a)), a, a) for a in (0.3, 1.0, 7.0, 1e5)]
    found += [standardized(weft.poisson(filled(rate)), rate, rate) for rate in (0.7, 9.9, 10.0, 1e6)]
    for n, p in ((20, 0.3), (20, 0.8), (1000, 0.3), (1000, 0.98)):
        found.append(standardized(weft.binomial(filled(n), filled(p)), n * p, n * p * (1 - p)))
    for numbers in found:
        kurtosis = (numbers**4).mean().item()
        assert abs(numbers.mean().item()) < 5 / 200
        assert abs(numbers.square().mean().item() - 1) < 5 * math.sqrt(kurtosis - 1) / 200
    assert len(set(found[0].tolist())) > 39_000


def test_parameters_without_random_numbers():
    edges = weft.tensor([0.0, 3.0, 5.0, 3.0, math.nan], device=HERE)
    assert weft.poisson(edges[:1]).tolist() == [0]
    assert weft.binomial(edges, weft.tensor([0.5, 0.0, 1.0, 0.0, 0.5], device=HERE))[:4].tolist() == [
        0,
        0,
        5,
        0,
    ]
    assert weft.binomial(edges, edges.new_full((5,), 0.5)).isnan().tolist() == [False] * 4 + [True]
    assert weft._standard_gamma(edges)[0] == weft.finfo(weft.float32).tiny
    assert weft._standard_gamma(edges)[-1].isnan()
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        weft.poisson(edges)
    assert weft._standard_gamma(edges[:0]).numel() == 0


def test_points_of_the_simplex():
    weft.manual_seed(3)
    concentration = weft.tensor([0.5, 2.0, 4.0], device=HERE).expand(20_000, 3)
    points = weft._sample_dirichlet(concentration)
    assert (points.sum(-1) - 1).abs().max() < 1e-5 and points.min() > 0
    assert (points.mean(0) - concentration[0] / 6.5).abs().max() < 0.01


def test_states():
    weft.cuda.manual_seed(8)
    assert weft.cuda.initial_seed() == 8 and weft.cuda.default_generators[0].initial_seed() == 8
    weft.rand(3, device=HERE)
    state = weft.cuda.get_rng_state()
    assert state.tolist() == [8, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0] and state.dtype is weft.uint8
    first = weft.rand(3, device=HERE).tolist()
    weft.cuda.set_rng_state(state)
    assert weft.rand(3, device=HERE).tolist() == first
    weft.cuda.set_rng_state_all([state])
    assert (
        weft.rand(3, device=HERE).tolist() == first
        and len(weft.cuda.get_rng_state_all()) == weft.cuda.device_count()
    )
    with weft.random.fork_rng():
        weft.manual_seed(9)
    with weft.random.fork_rng(devices=[0]):
        weft.rand(3, device=HERE)
    weft.cuda.manual_seed_all(8)
    weft.cuda.set_rng_state(state, 0)
    with weft.random.fork_rng():
        weft.cuda.manual_seed(1)
    assert weft.rand(3, device=HERE).tolist() == first
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        weft.cuda.set_rng_state(state[:5])
    weft.cuda.seed(), weft.cuda.seed_all()
    assert weft.cuda.initial_seed() != 8


def test_a_seed_before_the_first_use(run):
    code = "import weft; weft.manual_seed(0); print(weft.cuda.is_initialized(), weft.cuda.initial_seed())"
    assert run("-c", code).stdout.split() == ["False", "0"]
    code = "import weft; weft.cuda.manual_seed(5); weft.random.fork_rng().__enter__(); print(weft.cuda.initial_seed())"
    assert run("-c", code).stdout.split() == ["5"]


def test_generators():
    generator = weft.Generator(device=HERE).manual_seed(-1)
    assert isinstance(generator, weft.Generator) and generator.device == weft.device("cuda:0")
    assert generator.initial_seed() == 2**64 - 1
    generator.set_offset(12)
    copies = [generator.clone_state(), pickle.loads(pickle.dumps(generator))]
    first = weft.rand(2, generator=generator, device=HERE).tolist()
    assert all(weft.rand(2, generator=each, device=HERE).tolist() == first for each in copies)
    with pytest.raises(RuntimeError, match="offset must be a multiple of 4"):
        generator.set_offset(3)
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        weft.rand(2, generator=generator)
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        weft.rand(2, generator=weft.Generator(), device=HERE)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint_draws_the_same_again(use_reentrant):
    weft.manual_seed(11)
    x = weft.ones(1000, device=HERE, requires_grad=True)
    y = checkpoint(lambda x: F.dropout(x * 2), x, use_reentrant=use_reentrant)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_states_of_the_devices_of_arguments():
    from weft.utils.checkpoint import get_device_states, set_device_states

    devices, states = get_device_states(weft.ones(1), [weft.ones(1, device=HERE)])
    assert devices == [0] and states[0].tolist() == weft.cuda.get_rng_state().tolist()
    first = weft.rand(3, device=HERE).tolist()
    set_device_states(devices, states)
    assert weft.rand(3, device=HERE).tolist() == first


def permutation(seed, n):
    """PyTorch's permutation of n integers, after ATen/native/cuda/Randperm.cu, and the offset behind it."""
    bits = min(64, math.ceil(math.log2(n - (6 * n * n + 1) / (12 * math.log(0.9)))))
    words = drawn_words(seed, 0, n, 2).astype(np.uint64)
    keys = (words[:, 0] << np.uint64(32) | words[:, 1]) % np.uint64(2**32 - 1 if bits <= 32 else 2**64 - 1)
    keys = keys & np.uint64(2**bits - 1)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    offset = 4 * -(-n // (min(-(-n // 256), BLOCKS) * 256 * 2))
    start = 0
    while start < n:
        end = start + 1
        while end < n and keys[end] == keys[start]:
            end += 1
        for turn, i in enumerate(range(end - start - 1, 0, -1)):
            word = philox(seed, offset // 4 + turn // 4, start)[turn % 4]
            chosen = start + int(word) % (i + 1)
            order[start + i], order[chosen] = order[chosen], order[start + i]
        start = end
    return order, offset + -(-n // 4) * 4


@pytest.mark.parametrize("n", [1, 2, 7, 300, 100_000])
def test_permutations_are_pytorchs(n):
    generator = weft.Generator(HERE)
    for seed in (0, 12345, 0xFEDCBA9876543210):
        expected, offset = permutation(seed, n)
        found = weft.randperm(n, device=HERE, generator=generator.manual_seed(seed))
        assert found.dtype == weft.int64 and found.tolist() == expected.tolist()
        assert generator.get_offset() == offset


def test_permutations_with_equal_keys():
    """Of a few integers some have equal keys now and then."""
    generator = weft.Generator(HERE)
    for seed in range(60):
        found = weft.randperm(30, device=HERE, generator=generator.manual_seed(seed))
        assert found.tolist() == permutation(seed, 30)[0].tolist()
    assert weft.randperm(0, device=HERE).shape == (0,)
    assert sorted(weft.randperm(5, dtype=weft.float16, device=HERE).tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("dtype", [weft.float32, weft.float64, weft.float16])
def test_choices_without_replacement_are_pytorchs(dtype):
    """The greatest of the weights divided by exponentials."""
    weights = weft.rand(3, 50, device=HERE).to(dtype)
    for count in (1, 4):
        weft.manual_seed(5)
        found = weft.multinomial(weights, count)
        weft.manual_seed(5)
        waits = weft.empty_like(weights).exponential_()
        assert weft.equal(found, (weights / waits).topk(count).indices)
    single = weft.multinomial(weights[0], 50)
    assert sorted(single.tolist()) == list(range(50))


def test_choices_with_replacement():
    weights = weft.tensor([[0.0, 1.0, 0.0, 3.0, 0.0], [2.0, 0.0, 0.0, 0.0, 2.0]], device=HERE)
    found = weft.multinomial(weights, 20_000, replacement=True)
    for row, wanted in zip(found, weights / 4, strict=True):
        share = row.bincount(minlength=5) / 20_000
        assert (share[wanted == 0] == 0).all() and weft.allclose(share, wanted, atol=0.02)
    one = weft.multinomial(weft.tensor([0.0, 0.0, 5.0], device=HERE).half(), 7, replacement=True)
    assert one.tolist() == [2] * 7


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), 0.0])
def test_bad_weights_raise_the_cpus_errors(bad, replacement):
    weights = weft.tensor([[bad, 0.0, 0.0], [1.0, 2.0, 3.0]])
    messages = []
    for where in ("cpu", HERE):
        with pytest.raises(RuntimeError) as error:
            weft.multinomial(weights.to(where), 2, replacement=replacement)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
