"""Training of a graph network with one graph at a time, each with its own numbers of nodes and edges."""

import random
from collections.abc import Callable
from typing import Any

from bench.new_sizes.setting import MEASURED, Measured, Setting

GRAPHS, WARM_UP = 500, 5
FEATURES, WIDTH, CLASSES = 8, 32, 4
Graph = tuple[Any, Any, Any, Any]  # features of nodes, sources and targets of edges, class


def measure(setting: Setting) -> Measured:
    step = trainer(setting.torch)
    # The number of nodes is odd in one part and even in the other.
    graphs = [graph(setting.torch, k, odd=setting.part == MEASURED) for k in range(setting.count(GRAPHS))]
    setting.seconds(step, [graph(setting.torch, k, odd=False) for k in range(WARM_UP)])
    return Measured.single(*setting.seconds(step, graphs))


def graph(torch: Any, seed: int, odd: bool) -> Graph:
    generator = random.Random(seed)
    nodes = 2 * generator.randint(5, 100) + odd
    edges = generator.randint(2 * nodes, 6 * nodes)
    source, target = (torch.randint(0, nodes, (edges,)) for _ in range(2))
    return torch.rand(nodes, FEATURES), source, target, torch.tensor([seed % CLASSES])


def trainer(torch: Any) -> Callable[[Graph], float]:
    """A function that trains the network to classify one graph, and returns the loss."""
    weights = [
        (torch.randn(*shape) / shape[0] ** 0.5).requires_grad_()
        for shape in ((FEATURES, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, CLASSES))
    ]
    optimizer = torch.optim.SGD(weights, lr=1e-3)

    def step(graph: Graph) -> float:
        x, source, target, label = graph
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(scores(torch, weights, x, source, target), label)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def scores(torch: Any, weights: list[Any], x: Any, source: Any, target: Any) -> Any:
    """Each layer adds up the messages of a node's neighbours, divided by how many there are."""
    *layers, out = weights
    degree = torch.zeros(len(x)).index_add(0, target, torch.ones(len(target))).clamp(min=1)
    for weight in layers:
        messages = (x @ weight)[source]
        gathered = torch.zeros(len(x), messages.shape[1]).index_add(0, target, messages)
        x = torch.relu(gathered / degree.unsqueeze(1) + x @ weight)
    return x.mean(0, keepdim=True) @ out
