"""Names the numbers of a script: `@check` runs a function, `main()` writes what the functions returned.

A script is an ordinary PyTorch program. Each of its checks seeds the generator, does something with a library and
returns a dictionary: tensors, numbers, strings, lists and dictionaries of these. A check that raises does not stop
the ones after it.
"""

import importlib.metadata
import json
import os
import random
import sys
import time
import traceback
import warnings

import numpy
import torch

MOST = 48  # values of a tensor that are written; of a longer one a sample and two means

_checks = []


def check(function):
    """Run `function` as a check of this script, under its name."""
    _checks.append(function)
    return function


def seed(value=0):
    """Seed every generator that a library may draw from."""
    random.seed(value)
    numpy.random.seed(value)
    torch.manual_seed(value)


def main(*distributions):
    """Run all checks and write a JSON document with their numbers and the versions of `distributions`.

    Arguments of the program: the file to write, then the names of the checks to run (none: all).
    """
    warnings.simplefilter("ignore")
    path, *names = sys.argv[1:] or ["-"]
    report = {
        "torch": torch.__version__,
        "versions": {name: importlib.metadata.version(name) for name in distributions},
        "checks": {},
        "errors": {},
        "seconds": {},
    }
    for function in _checks:
        name = function.__name__
        if names and name not in names:
            continue
        seed()
        start = time.perf_counter()
        try:
            report["checks"][name] = {key: _plain(value) for key, value in function().items()}
        except Exception:
            report["errors"][name] = traceback.format_exc()
        report["seconds"][name] = round(time.perf_counter() - start, 2)
    text = json.dumps(report, indent=1)
    if path == "-":
        print(text)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    sys.stdout.flush()
    os._exit(0)  # threads of a library must not hold up the end, nor decide the exit status


def _plain(value):
    """What JSON can write of `value`; floats keep all of their digits."""
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, numpy.ndarray | numpy.generic):
        return _tensor(torch.from_numpy(numpy.ascontiguousarray(value).reshape(value.shape)))
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | torch.Size):
        return [_plain(entry) for entry in value]
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    return repr(value)


def _tensor(value):
    value = value.detach()
    plain = {"dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape)}
    if value.is_complex():
        value = torch.view_as_real(value)
    if value.dtype in (torch.bfloat16, torch.float16):
        value = value.float()
    values = value.cpu().contiguous().numpy().reshape(-1)
    if values.size > MOST:
        wide = values.astype(numpy.float64)
        plain["mean"], plain["mean magnitude"] = float(wide.mean()), float(abs(wide).mean())
        values = values[numpy.linspace(0, values.size - 1, MOST).astype(int)]
    plain["values"] = values.tolist()
    return plain


def weights(module):
    """The sums of the parameters and buffers of `module`: a step of training shows in them."""
    sums = {}
    for name, value in module.state_dict().items():
        value = value.detach().double()
        sums[name] = [float(value.sum()), float(value.abs().sum())]
    return sums


def gradients(module):
    """The sums of the gradients of the parameters of `module`."""
    return {
        name: [float(value.grad.double().sum()), float(value.grad.double().abs().sum())]
        for name, value in module.named_parameters()
        if value.grad is not None
    }


def train(model, loss_of, steps=3, lr=1e-3, optimizer=torch.optim.AdamW):
    """Take some steps; returns the losses. `loss_of(model)` computes a loss."""
    optimizer = optimizer([p for p in model.parameters() if p.requires_grad], lr=lr)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses
