"""torch_geometric: graph layers, batches, loaders, pooling, transforms, models."""

import warnings

import torch
from checks import check, gradients, main, seed, train, weights
from torch import nn
from torch_geometric import nn as gnn
from torch_geometric import transforms as T
from torch_geometric import utils
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader

warnings.simplefilter("ignore")


def graph(nodes=8, edges=24, features=5):
    index = torch.randint(0, nodes, (2, edges))
    return Data(
        x=torch.randn(nodes, features), edge_index=index, edge_attr=torch.randn(edges, 3),
        edge_weight=torch.rand(edges), y=torch.randint(0, 3, (nodes,)), pos=torch.randn(nodes, 3),
    )  # fmt: skip


LAYERS = {
    "GCNConv": lambda: gnn.GCNConv(5, 4),
    "SAGEConv": lambda: gnn.SAGEConv(5, 4),
    "GATConv": lambda: gnn.GATConv(5, 4, heads=2),
    "GATv2Conv": lambda: gnn.GATv2Conv(5, 4, heads=2),
    "GINConv": lambda: gnn.GINConv(nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 4))),
    "GraphConv": lambda: gnn.GraphConv(5, 4, aggr="max"),
    "TransformerConv": lambda: gnn.TransformerConv(5, 4),
    "TAGConv": lambda: gnn.TAGConv(5, 4),
    "SGConv": lambda: gnn.SGConv(5, 4, K=2),
    "ChebConv": lambda: gnn.ChebConv(5, 4, K=3),
    "ARMAConv": lambda: gnn.ARMAConv(5, 4),
    "APPNP": lambda: gnn.APPNP(K=3, alpha=0.1),
    "EdgeConv": lambda: gnn.EdgeConv(nn.Linear(10, 4)),
    "PNAConv": lambda: gnn.PNAConv(
        5, 4, ["mean", "max", "std"], ["identity", "amplification"], torch.tensor([0, 2, 4, 2])
    ),
    "GatedGraphConv": lambda: gnn.GatedGraphConv(6, 2),
    "ResGatedGraphConv": lambda: gnn.ResGatedGraphConv(5, 4),
    "LEConv": lambda: gnn.LEConv(5, 4),
    "ClusterGCNConv": lambda: gnn.ClusterGCNConv(5, 4),
    "SuperGATConv": lambda: gnn.SuperGATConv(5, 4),
    "FAConv": lambda: gnn.FAConv(5),
    "GENConv": lambda: gnn.GENConv(5, 4),
}


@check
def layers():
    found = {}
    for name, make in LAYERS.items():
        seed()
        layer, data = make(), graph()
        data.x.requires_grad_()
        arguments = (data.x, data.x, data.edge_index) if name == "FAConv" else (data.x, data.edge_index)
        out = layer(*arguments)
        out.square().sum().backward()
        found[name] = {"out": out, "x": data.x.grad, "gradients": gradients(layer)}
    return found


@check
def node_classification():
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = gnn.GCNConv(5, 16), gnn.GCNConv(16, 3)

        def forward(self, data):
            x = self.first(data.x, data.edge_index, data.edge_weight).relu()
            return self.second(nn.functional.dropout(x, training=self.training), data.edge_index)

    data, model = graph(), Network()
    losses = train(model, lambda model: nn.functional.cross_entropy(model(data), data.y), lr=1e-2, steps=5)
    return {"losses": losses, "weights": weights(model), "repr": repr(model)}


@check
def graph_classification():
    graphs = [graph(nodes=4 + i % 3, edges=10) for i in range(12)]
    for i, data in enumerate(graphs):
        data.y = torch.tensor([i % 2])
    loader = DataLoader(graphs, batch_size=4, shuffle=True)
    model = gnn.GIN(5, 8, num_layers=2)
    head = nn.Linear(8, 2)
    both = nn.ModuleList([model, head])
    optimizer = torch.optim.Adam(both.parameters(), 1e-2)
    losses = []
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            out = head(gnn.global_mean_pool(model(batch.x, batch.edge_index), batch.batch))
            loss = nn.functional.cross_entropy(out, batch.y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    batch = Batch.from_data_list(graphs[:3])
    return {
        "losses": losses,
        "weights": weights(both),
        "ptr": batch.ptr,
        "repr": repr(batch),
        "back": repr(batch[1]),
    }


@check
def pooling_and_norms():
    data = graph()
    batch = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])
    top = gnn.TopKPooling(5, ratio=0.5)(data.x, data.edge_index, batch=batch)
    return {
        "topk": top[0],
        "edges": top[1],
        "add": gnn.global_add_pool(data.x, batch),
        "max": gnn.global_max_pool(data.x, batch),
        "set2set": gnn.aggr.Set2Set(5, 2)(data.x, batch),
        "softmax": gnn.aggr.SoftmaxAggregation(learn=True)(data.x, batch),
        "median": gnn.aggr.MedianAggregation()(data.x, batch),
        "lstm": gnn.aggr.LSTMAggregation(5, 4)(data.x, batch),
        "graph norm": gnn.GraphNorm(5)(data.x, batch),
        "pair norm": gnn.PairNorm()(data.x, batch),
        "layer norm": gnn.LayerNorm(5)(data.x, batch),
        "jumping": gnn.JumpingKnowledge("lstm", 5, 2)([data.x, data.x * 2]),
    }


@check
def heterogeneous():
    data = HeteroData()
    data["paper"].x, data["author"].x = torch.randn(6, 4), torch.randn(5, 3)
    data["author", "writes", "paper"].edge_index = torch.stack(
        [torch.randint(0, 5, (10,)), torch.randint(0, 6, (10,))]
    )
    data["paper", "cites", "paper"].edge_index = torch.randint(0, 6, (2, 9))
    conv = gnn.HeteroConv(
        {
            ("author", "writes", "paper"): gnn.SAGEConv((3, 4), 5),
            ("paper", "cites", "paper"): gnn.GATConv((4, 4), 5, add_self_loops=False),
        }
    )
    out = conv(data.x_dict, data.edge_index_dict)
    homogeneous = gnn.Sequential(
        "x, i", [(gnn.SAGEConv((-1, -1), 4), "x, i -> x"), nn.ReLU(), (nn.Linear(4, 2), "x -> x")]
    )
    model = gnn.to_hetero(Small(), T.ToUndirected()(data).metadata())
    undirected = T.ToUndirected()(data)
    with torch.no_grad():
        lazily = model(undirected.x_dict, undirected.edge_index_dict)
    return {
        "paper": out["paper"],
        "repr": repr(data),
        "sequential": homogeneous(data["paper"].x, data["paper", "cites", "paper"].edge_index),
        "to_hetero": lazily,
    }


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = gnn.SAGEConv((-1, -1), 4)
        self.out = gnn.Linear(-1, 2)

    def forward(self, x, edge_index):
        return self.out(self.conv(x, edge_index).relu())


@check
def tools():
    data = graph()
    index, weight = utils.add_self_loops(data.edge_index, data.edge_weight)
    dense, mask = utils.to_dense_batch(data.x, torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]))
    return {
        "loops": index,
        "degree": utils.degree(data.edge_index[0], 8),
        "softmax": utils.softmax(data.edge_weight, data.edge_index[1], num_nodes=8),
        "scatter": utils.scatter(data.edge_attr, data.edge_index[0], 0, 8, "mean"),
        "coalesce": utils.coalesce(data.edge_index, data.edge_weight),
        "undirected": utils.to_undirected(data.edge_index),
        "dense": dense,
        "mask": mask,
        "adjacency": utils.to_dense_adj(data.edge_index),
        "subgraph": utils.subgraph([0, 1, 2, 3], data.edge_index, relabel_nodes=True)[0],
        "k hops": utils.k_hop_subgraph(0, 2, data.edge_index)[0],
        "negative": utils.negative_sampling(data.edge_index, 8, 6).shape,
        "laplacian": utils.get_laplacian(data.edge_index, normalization="sym", num_nodes=8),
        "dropout": utils.dropout_edge(data.edge_index, 0.3)[0],
        "homophily": utils.homophily(data.edge_index, data.y),
    }


@check
def transforms():
    data = graph()
    pipeline = T.Compose(
        [
            T.NormalizeFeatures(),
            T.Distance(),
            T.LocalDegreeProfile(),
            T.RandomNodeSplit(num_val=2, num_test=2),
        ]
    )
    out = pipeline(data.clone())
    loops = T.AddSelfLoops()(data.clone())
    walk = T.AddRandomWalkPE(3)(data.clone())
    return {
        "x": out.x,
        "attr": out.edge_attr,
        "train": out.train_mask,
        "walk": walk.random_walk_pe,
        "repr": repr(out),
        "loops": loops.edge_index,
    }


@check
def files_and_models():
    data = graph()
    torch.save(data, "graph.pt")
    back = torch.load("graph.pt", weights_only=False)
    seed()
    values = {"same": torch.equal(back.x, data.x), "keys": sorted(back.keys())}
    for name, make in {"GAT": gnn.GAT, "GraphSAGE": gnn.GraphSAGE, "EdgeCNN": gnn.EdgeCNN}.items():
        model = make(5, 8, num_layers=2, out_channels=3, jk="cat").eval()
        values[name] = model(data.x, data.edge_index)
    autoencoder = gnn.GAE(gnn.GCN(5, 8, num_layers=2, out_channels=4))
    z = autoencoder.encode(data.x, data.edge_index)
    values["gae"] = autoencoder.decode(z, data.edge_index)
    schnet = gnn.SchNet(
        hidden_channels=16, num_filters=16, num_interactions=2, interaction_graph=None, cutoff=5.0
    )
    values["schnet"] = sum(p.numel() for p in schnet.parameters())
    return values


if __name__ == "__main__":
    main("torch_geometric")
