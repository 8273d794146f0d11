"""Programs of introductions to PyTorch that use a GPU, with the output that the introductions show."""

import re

import numpy as np
import pytest

import weft as torch
from weft import nn


@pytest.fixture(autouse=True)
def _seeded(monkeypatch):
    monkeypatch.setattr(torch.device("cuda").backend.runtime, "multiprocessors", 132)
    torch.manual_seed(1729)


def test_moving_to_an_accelerator(capsys):
    if torch.accelerator.is_available():
        print("We have an accelerator!")
    if torch.accelerator.is_available():
        gpu_rand = torch.rand(2, 2, device=torch.accelerator.current_accelerator())
        print(gpu_rand)
    my_device = (
        torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
    )
    print("Device: {}".format(my_device))  # noqa: UP032 (as it is shown)
    x = torch.rand(2, 2, device=my_device)
    print(x)
    y = torch.rand(2, 2)
    y = y.to(my_device)
    assert y.device == torch.device("cuda:0")
    assert capsys.readouterr().out == (
        "We have an accelerator!\n"
        "tensor([[0.3344, 0.2640],\n        [0.2119, 0.0582]], device='cuda:0')\n"
        "Device: cuda\n"
        "tensor([[0.0024, 0.6778],\n        [0.2441, 0.6812]], device='cuda:0')\n"
    )
    x = torch.rand(2, 2)
    y = torch.rand(2, 2, device="cuda")
    with pytest.raises(RuntimeError):
        x + y


def test_copies_on_several_devices(second):
    t1 = torch.rand(2)
    t2_gpu = torch.rand(2, device="cuda")
    assert re.fullmatch(r"tensor\(\[0\.\d{4}, 0\.\d{4}\], device='cuda:0'\)", str(t2_gpu))
    t1_gpu = t1.to(device="cuda")
    assert str(t1_gpu) == str(t1)[:-1] + ", device='cuda:0')"
    assert torch.equal(t1_gpu, t1.cuda())
    t2 = t2_gpu.to(device="cpu")
    assert "device" not in str(t2) and torch.equal(t2, t2_gpu.cpu())
    t3_gpu = torch.rand(2, device="cuda:0")
    t4_gpu, t5_gpu = t1.to(device="cuda:0"), t1.to(device="cuda:1")
    assert t3_gpu.get_device() == t4_gpu.get_device() == t1.cuda(0).get_device() == 0
    assert t5_gpu.device == t1.cuda(1).device == second and t5_gpu.cpu().tolist() == t1.tolist()


def test_operations_stay_on_the_device():
    points = torch.tensor([[4.0, 1.0], [5.0, 3.0], [2.0, 1.0]])
    points_gpu = 2 * points.to(device="cuda")
    assert points_gpu.is_cuda and points_gpu.cpu().tolist() == [[8, 2], [10, 6], [4, 2]]
    points_gpu = points.to(dtype=torch.float16, device="cuda")
    assert points_gpu.dtype is torch.float16 and points_gpu.is_cuda
    points_np = torch.ones(3, 4, device="cuda").cpu().numpy()
    assert isinstance(points_np, np.ndarray) and points_np.sum() == 12


def test_devices_are_printed(capsys):
    x_cpu = torch.zeros(3, 3)
    print(f"x_cpu device: {x_cpu.device}")
    if torch.cuda.is_available():
        x_gpu = x_cpu.to("cuda")
        print(f"x_gpu device: {x_gpu.device}")
        y_gpu = torch.ones(3, 3, device="cuda")
        print(f"y_gpu device: {y_gpu.device}")
    assert capsys.readouterr().out == "x_cpu device: cpu\nx_gpu device: cuda:0\ny_gpu device: cuda:0\n"


def test_a_benchmark_of_products():
    import weft.utils.benchmark as benchmark

    A_gpu, B_gpu = torch.randn(50, 50, device="cuda"), torch.randn(50, 50, device="cuda")
    timer = benchmark.Timer(stmt="A_gpu @ B_gpu", globals={"A_gpu": A_gpu, "B_gpu": B_gpu})
    assert timer.timeit(5).mean > 0


def test_a_regression_finds_the_true_parameters():
    true_m, true_b = 2.5, 1.0
    X = torch.rand(100, 1) * 10
    y_true = true_m * X + true_b + torch.randn(100, 1) * 0.1

    class LinearRegressionModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(1, 1)

        def forward(self, x):
            return self.linear(x)

    model = LinearRegressionModel()
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)
    X, y_true = X.to(device), y_true.to(device)
    losses = []
    for _ in range(500):
        y_pred = model(X)
        loss = criterion(y_pred, y_true)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert model.linear.weight.is_cuda and losses[-1] < 0.1 < losses[0]
    model.to("cpu")
    predicted_values = model(X.to("cpu")).detach().numpy()
    assert predicted_values.shape == (100, 1)
    assert abs(model.linear.weight.item() - true_m) < 0.05 and abs(model.linear.bias.item() - true_b) < 0.3
