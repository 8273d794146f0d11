"""The package safetensors itself, under `weft run`: its functions for PyTorch's models."""

import pytest

pytest.importorskip("safetensors")

PROGRAM = """
import torch
from safetensors.torch import load_file, load_model, safe_open, save_file, save_model

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.register_buffer("v", torch.arange(6.0).view(2, 3))
        self.register_buffer("w", self.v)

model, other = Model(), Model()
save_model(model, "model.safetensors")
print(sorted(load_file("model.safetensors")))
print(load_model(other, "model.safetensors"))
assert all(torch.equal(*pair) for pair in zip(model.state_dict().values(), other.state_dict().values(), strict=True))
assert other.a.weight is other.b.weight
for wrong in (model.state_dict(), {"a": torch.zeros(2, 3).t()}):
    try:
        save_file(wrong, "wrong.safetensors")
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__)
save_file({"x": torch.arange(6, dtype=torch.bfloat16).view(2, 3)}, "x.safetensors", metadata={"format": "pt"})
with safe_open("x.safetensors", "pt") as file:
    print(file.keys(), file.get_slice("x")[0:1], file.metadata())
"""


def test_models_with_shared_tensors(run_weft):
    done = run_weft("run", "-c", PROGRAM)
    assert done.stdout.splitlines() == [
        "['a.bias', 'a.weight', 'b.bias', 'v']",
        "(set(), [])",
        "RuntimeError",
        "ValueError",
        "['x'] tensor([[0., 1., 2.]], dtype=torch.bfloat16) {'format': 'pt'}",
    ], done.stderr
