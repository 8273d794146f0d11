"""Several threads make the same calls for the first time at once: they compile, plan and fill the same caches."""

import threading

import pytest

import weft

OPERATIONS = {
    "add": lambda x: x + 1,
    "promote": lambda x: x.half() * x,
    "exp": lambda x: x.exp(),
    "where": lambda x: weft.where(x > 1, x, -x),
    "sum": lambda x: x.sum(0),
    "variance": lambda x: x.var(1),
    "softmax": lambda x: x.softmax(-1),
    "layer norm": lambda x: weft.nn.functional.layer_norm(x, x.shape[1:]),
    "product": lambda x: x @ x.t(),
    "convolution": lambda x: weft.conv1d(x[None], x[None, :, :3].repeat(2, 1, 1)),
    "sort": lambda x: x.sort(1)[0],
    "running sum": lambda x: x.cumsum(1),
    "gather": lambda x: x.gather(1, x.argsort(1)),
    "concatenate": lambda x: weft.cat([x, x.t().reshape(x.shape)]),
    "pieces": lambda x: weft.cat([each + k for k, each in enumerate(x.split(1, 1))]),
    "indices": lambda x: x[weft.arange(x.shape[0] - 1, -1, -1)],
}
THREADS = 8


def at_once(work):
    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def result_and_gradient(operation, size, wait=lambda: None):
    x = (weft.arange(size * 5.0).reshape(size, 5) / 7).requires_grad_()
    wait()
    result = operation(x)
    (gradient,) = weft.autograd.grad(result, x, weft.full_like(result, 0.3))
    return repr((result.tolist(), gradient.tolist()))


@pytest.mark.parametrize("name", OPERATIONS)
def test_threads_get_the_results_of_one(name):
    operation, sizes = OPERATIONS[name], range(2, 8)
    found = []
    barrier = threading.Barrier(THREADS)

    def work():
        found.append([result_and_gradient(operation, size, lambda: barrier.wait(100)) for size in sizes])

    at_once(work)
    assert found == [[result_and_gradient(operation, size) for size in sizes]] * THREADS


def test_threads_share_a_generator():
    """Each thread gets other numbers, and together they are those of one thread."""
    generator = weft.Generator().manual_seed(5)
    found: list[float] = []

    def work():
        for _ in range(200):
            found.extend(weft.rand(7, generator=generator).tolist())

    at_once(work)
    generator.manual_seed(5)
    expected = [number for _ in range(200 * THREADS) for number in weft.rand(7, generator=generator).tolist()]
    assert sorted(found) == sorted(expected)


def test_threads_allocate_and_free_at_once():
    def work():
        for k in range(300):
            x = weft.full((1 + k % 50, 1000), float(k))
            if not bool((x == k).all()):
                wrong.append(k)

    wrong: list[int] = []
    at_once(work)
    assert wrong == []
