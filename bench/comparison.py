"""The same six programs in weft, PyTorch, NumPy, JAX or tinygrad: the rows of the README's comparison.

    taskset -c 0 python bench/comparison.py weft      # or torch, numpy, jax, tinygrad: each in an environment that has it

Prints the time of each as JSON, in microseconds: the shortest of many calls, after calls that compile. Results are waited for.
"""

import json
import sys
import time

SECONDS = 1.0  # for each program


def shortest(call, least=20):
    """The shortest time of a call, in microseconds."""
    for _ in range(5):
        call()
    best, calls, end = float("inf"), 0, time.perf_counter() + SECONDS
    while calls < least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        calls += 1
    return round(best * 1e6, 2)


def small(call):
    """The time of one of 100 calls that follow each other."""

    def hundred():
        for _ in range(100):
            call()

    return round(shortest(hundred) / 100, 2)


def of_torch(torch):
    """Programs of weft and PyTorch."""
    torch.manual_seed(0)
    a, b = torch.rand(16), torch.rand(16)
    x, y, z = torch.rand(1000, 1000), torch.rand(1000, 1000), torch.rand(1000, 1000)
    m = torch.rand(512, 512)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs, labels = torch.rand(32, 64), torch.randint(10, (32,))

    def step():
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    def read(result):
        result.data_ptr()  # weft waits with elementwise operations until somebody asks

    return {
        "add, 16": small(lambda: a + b),
        "chain": shortest(lambda: read(torch.relu(x * y + z))),
        "sum": shortest(lambda: read(x.sum(0))),
        "softmax": shortest(lambda: read(torch.softmax(x, -1))),
        "product": shortest(lambda: read(m @ m)),
        "training step": shortest(step),
    }


def of_numpy():
    """Programs of NumPy, which has no derivatives."""
    import numpy

    draw = numpy.random.default_rng(0).random
    a, b = draw(16, dtype="f4"), draw(16, dtype="f4")
    x, y, z = (draw((1000, 1000), dtype="f4") for _ in "xyz")
    m = draw((512, 512), dtype="f4")

    def softmax():
        exponentials = numpy.exp(x - x.max(-1, keepdims=True))
        return exponentials / exponentials.sum(-1, keepdims=True)

    return {
        "add, 16": small(lambda: a + b),
        "chain": shortest(lambda: numpy.maximum(x * y + z, 0)),
        "sum": shortest(lambda: x.sum(0)),
        "softmax": shortest(softmax),
        "product": shortest(lambda: m @ m),
    }


def of_jax():
    """Programs of JAX: calls of small arrays as they are, all else compiled by jax.jit."""
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.key(0), 16)
    a, b = jax.random.uniform(keys[0], 16), jax.random.uniform(keys[1], 16)
    x, y, z = (jax.random.uniform(key, (1000, 1000)) for key in keys[2:5])
    m = jax.random.uniform(keys[5], (512, 512))
    weights = [
        jax.random.uniform(keys[6], (64, 64)) / 8,
        jnp.zeros(64),
        jax.random.uniform(keys[7], (64, 10)) / 8,
        jnp.zeros(10),
    ]
    inputs, labels = jax.random.uniform(keys[8], (32, 64)), jax.random.randint(keys[9], (32,), 0, 10)

    def loss(weights):
        w, b, v, c = weights
        scores = jax.nn.log_softmax(jax.nn.relu(inputs @ w + b) @ v + c)
        return -jnp.take_along_axis(scores, labels[:, None], 1).mean()

    @jax.jit
    def step(weights):
        value, gradients = jax.value_and_grad(loss)(weights)
        return value, [weight - 0.1 * gradient for weight, gradient in zip(weights, gradients)]

    chain, total = jax.jit(lambda x, y, z: jax.nn.relu(x * y + z)), jax.jit(lambda x: x.sum(0))
    softmax, product = jax.jit(lambda x: jax.nn.softmax(x, -1)), jax.jit(lambda m: m @ m)
    return {
        "add, 16": small(lambda: (a + b).block_until_ready()),
        "chain": shortest(lambda: chain(x, y, z).block_until_ready()),
        "sum": shortest(lambda: total(x).block_until_ready()),
        "softmax": shortest(lambda: softmax(x).block_until_ready()),
        "product": shortest(lambda: product(m).block_until_ready()),
        "training step": shortest(lambda: float(step(weights)[0])),
    }


def of_tinygrad():
    """Programs of tinygrad, compiled by TinyJit."""
    from tinygrad import Context, Tensor, TinyJit, nn

    Tensor.manual_seed(0)
    a, b = Tensor.rand(16).realize(), Tensor.rand(16).realize()
    x, y, z = (Tensor.rand(1000, 1000).realize() for _ in "xyz")
    m = Tensor.rand(512, 512).realize()
    first, second = nn.Linear(64, 64), nn.Linear(64, 10)
    optimizer = nn.optim.SGD([first.weight, first.bias, second.weight, second.bias], lr=0.1)
    inputs, labels = Tensor.rand(32, 64).realize(), Tensor.randint(32, high=10).realize()

    @TinyJit
    def step():
        with Context(TRAINING=1):
            loss = second(first(inputs).relu()).sparse_categorical_crossentropy(labels)
            optimizer.zero_grad()
            loss.backward()
            return loss.realize(*optimizer.schedule_step())

    def compiled(function, *tensors):
        run = TinyJit(lambda *given: function(*given).realize())
        return shortest(lambda: run(*tensors))

    return {
        "add, 16": small(lambda: (a + b).realize()),
        "chain": compiled(lambda x, y, z: (x * y + z).relu(), x, y, z),
        "sum": compiled(lambda x: x.sum(0), x),
        "softmax": compiled(lambda x: x.softmax(-1), x),
        "product": compiled(lambda m: m @ m, m),
        "training step": shortest(lambda: step().item()),
    }


if __name__ == "__main__":
    name = sys.argv[1]
    begin = time.perf_counter()
    if name in ("weft", "torch"):
        library = __import__(name)
        imported = time.perf_counter() - begin
        found = of_torch(library)
    else:
        __import__(name)
        imported = time.perf_counter() - begin
        found = {"numpy": of_numpy, "jax": of_jax, "tinygrad": of_tinygrad}[name]()
    print(json.dumps({"library": name, "import": round(imported * 1e6), **found}))
