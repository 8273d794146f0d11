"""safetensors: tensors and models to files and back."""

import hashlib
from pathlib import Path

import torch
from checks import check, main, weights
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from torch import nn

DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")


class Tied(nn.Module):
    """A model in which two layers share their weights."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 5)
        self.inner = nn.Linear(5, 5)
        self.head = nn.Linear(5, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(self.inner(self.embedding(x)).relu())


@check
def files():
    tensors = {name: (torch.randn(3, 4) * 10).to(getattr(torch, name)) for name in DTYPES}
    tensors["complex64"] = torch.randn(2, 2, dtype=torch.complex64)
    tensors["scalar"], tensors["empty"] = torch.tensor(2.5), torch.zeros(0, 3)
    save_file(tensors, "all.safetensors", metadata={"format": "pt"})
    back = load_file("all.safetensors")
    return {
        "hash": hashlib.sha256(Path("all.safetensors").read_bytes()).hexdigest(),
        "names": sorted(back),
        "same": [torch.equal(back[name], tensors[name]) for name in sorted(back)],
        "values": {name: back[name] for name in sorted(back)},
    }


@check
def slices():
    x = torch.arange(60.0).reshape(3, 4, 5)
    save_file({"x": x, "y": x.to(torch.bfloat16)}, "x.safetensors", metadata={"by": "hand"})
    with safe_open("x.safetensors", framework="pt", device="cpu") as file:
        part = file.get_slice("x")
        return {
            "keys": list(file.keys()),
            "metadata": file.metadata(),
            "shape": part.get_shape(),
            "dtype": part.get_dtype(),
            "part": part[1:, 2, ::1],
            "rows": part[:2],
            "whole": file.get_tensor("y"),
        }


@check
def buffers():
    data = save({"a": torch.randn(4), "b": torch.randn(2, 2).t().contiguous()})
    back = load(data)
    return {"length": len(data), "a": back["a"], "b": back["b"]}


@check
def models():
    model = Tied()
    save_model(model, "tied.safetensors")
    torch.manual_seed(1)
    other = Tied()
    missing, unexpected = load_model(other, "tied.safetensors")
    x = torch.arange(7)
    return {
        "missing": sorted(missing),
        "unexpected": sorted(unexpected),
        "weights": weights(other),
        "tied": other.head.weight is other.embedding.weight,
        "same": torch.equal(model(x), other(x)),
        "output": other(x),
    }


@check
def refusals():
    model, problems = Tied(), {}
    x = torch.randn(4, 4)
    for name, tensors in {
        "shared": dict(model.state_dict()),
        "strided": {"x": x.t()},
        "view": {"x": x, "y": x[:2]},
    }.items():
        try:
            save_file(tensors, f"{name}.safetensors")
            problems[name] = "saved"
        except Exception as error:
            problems[name] = [type(error).__name__, str(error).splitlines()[0][:60]]
    return problems


if __name__ == "__main__":
    main("safetensors")
