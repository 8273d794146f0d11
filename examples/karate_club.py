"""A graph network finds out who leaves the karate club, from the friendships and the choice of two members (Zachary, 1977)."""

import torch
from torch import nn

torch.manual_seed(0)
FRIENDS = {  # the friends of each member that come after it
    0: [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31],
    1: [2, 3, 7, 13, 17, 19, 21, 30],
    2: [3, 7, 8, 9, 13, 27, 28, 32],
    3: [7, 12, 13],
    4: [6, 10],
    5: [6, 10, 16],
    6: [16],
    8: [30, 32, 33],
    **dict.fromkeys([9, 13, 19, 27, 32], [33]),
    **dict.fromkeys([14, 15, 18, 20, 22, 29, 30, 31], [32, 33]),
    23: [25, 27, 29, 32, 33],
    24: [25, 27, 31],
    25: [31],
    26: [29, 33],
    28: [31, 33],
}
# Who stayed with the teacher; the others went with the president.
STAYED = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21]
TEACHER, PRESIDENT, MEMBERS = 0, 33, 34

pairs = torch.tensor([(one, other) for one, others in FRIENDS.items() for other in others]).T
myself = torch.arange(MEMBERS).expand(2, -1)
edges = torch.cat((pairs, pairs.flip(0), myself), dim=1)
graph = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (MEMBERS, MEMBERS)).coalesce()
print(
    f"{MEMBERS} members, {pairs.shape[1]} friendships: {graph._nnz()} of {graph.numel()} elements are stored"
)

# Each member takes the mean of its friends, where friends of many count less (Kipf and Welling, arXiv:1609.02907).
degree = torch.sparse.sum(graph, dim=1).to_dense()
row, column = graph.indices()
weight = graph.values() / (degree[row] * degree[column]).sqrt()
graph = torch.sparse_coo_tensor(graph.indices(), weight, graph.shape).to_sparse_csr()
print("friends of the teacher:", graph[TEACHER].indices()[0].tolist())


class GraphNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(MEMBERS, 8), nn.Linear(8, 2)

    def forward(self, graph: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(graph @ self.first(torch.eye(MEMBERS)))
        return graph @ self.second(hidden)


model = GraphNetwork()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
known, choice = torch.tensor([TEACHER, PRESIDENT]), torch.tensor([0, 1])
truth = torch.ones(MEMBERS, dtype=torch.long)
truth[STAYED] = 0
for step in range(101):
    scores = model(graph)
    loss = nn.functional.cross_entropy(scores[known], choice)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        right = (scores.argmax(1) == truth).sum()
        print(f"step {step:3}  loss {loss:.4f}  right {right} of {MEMBERS}")
print("wrong about", (model(graph).argmax(1) != truth).nonzero().flatten().tolist())
