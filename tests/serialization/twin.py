"""One end of a round trip, in a process with torch or weft alone: python twin.py torch|weft save|check FOLDER

`save` writes every case to the folder in each format, and what the cases are in words; `check` loads them and prints the
cases that are not what the words say.
"""

import collections
import importlib
import json
import sys
import warnings
from pathlib import Path

DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex32 complex64 "
    "complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz"
).split()
NEW = {"uint16", "uint32", "uint64", "complex32"}  # and float8: PyTorch cannot load them from the old format


def layouts(torch, dtype):
    """Tensors of one dtype in many places of their storages."""
    whole = torch.arange(2 * 3 * 4 * 4).remainder(2).to(torch.uint8).to(dtype)
    image = whole.view(2, 3, 4, 4)
    return {
        "contiguous": image,
        "transposed": image.transpose(0, 2),
        "offset": whole[5:],
        "strided": image[1:, ::2, 1::2],
        "expanded": whole[:1].expand(3, 5),
        "channels last": image.clone().contiguous(memory_format=torch.channels_last),
        "empty": whole[:0],
        "no elements": whole[:0].view(0, 3),
        "0-dim": whole[3],
    }


def containers(torch):
    """Objects that are no tensors, or hold them."""
    shared = torch.arange(6.0)
    noted = torch.ones(2)
    noted.note = {"of": "mine"}
    named = torch.nn.Parameter(torch.ones(2))
    named.note = "mine"
    loop: list = [shared]
    loop.append(loop)
    counted = collections.OrderedDict(b=1, a=torch.ones(1))
    counted._metadata = {"": {"version": 1}}
    return {
        "dict": {"a": shared, 1: [shared[2:], (shared.view(2, 3), None)], (1, "x"): {2, 3}},
        "ordered": counted,
        "counter": collections.Counter("aab"),
        "numbers": [True, -1, 255, 256, 65536, -(2**31), 2**70, -(2**100), 1.5, float("inf"), 2j],
        "texts": ["", "ünï", "x" * 300, b"\x00\xff", bytearray(b"ab")],
        "torch's": [torch.Size([2, 3]), torch.Size([]), torch.float16, torch.device("cuda:1"), torch.strided],
        "conj": torch.tensor([1 + 2j, 3 - 1j]).conj(),
        "neg": torch.tensor([1 + 2j, 3 - 1j]).conj().imag,
        "grad": [torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.ones(2), requires_grad=False)],
        "parameters": torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2))]).state_dict(),
        "tied": [named, noted, noted, torch.ones(2, device="meta")],
        "storages": [torch.tensor([1.0, 2.0]).storage()],
        "loop": loop,
    }


def models(torch):
    """State of a training run."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Linear(4, 2)
    )
    found = {"model": model.state_dict()}
    for name, options in (("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adam", {"amsgrad": True}), ("AdamW", {})):
        optimizer = getattr(torch.optim, name)(model.parameters(), **options)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(5, 3)).sum().backward()
            optimizer.step()
            schedule.step()
        found[name] = {"optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(), "epoch": 3}
    return found


def cases(torch, group):
    if group == "layouts":
        return {
            f"{dtype}, {name}": tensor
            for dtype in DTYPES
            for name, tensor in layouts(torch, getattr(torch, dtype)).items()
        }
    return {"containers": containers, "models": models}[group](torch)


GROUPS = ("layouts", "containers", "models")


def described(torch, value, seen):
    """An object in words that JSON has; what is met a second time is named, so that sharing shows."""
    if isinstance(value, (torch.Tensor, dict, list)):
        if id(value) in seen:
            return ["again", seen[id(value)]]
        seen[id(value)] = len(seen)
        seen["alive", len(seen)] = value
    if isinstance(value, torch.Tensor):
        return tensor_in_words(torch, value, seen)
    if isinstance(value, dict):
        items = [[described(torch, key, seen), described(torch, each, seen)] for key, each in value.items()]
        return [
            type(value).__name__,
            items,
            described(torch, dict(vars(value)), seen) if hasattr(value, "__dict__") else 0,
        ]
    if isinstance(value, set):
        return ["set", sorted(map(repr, value))]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [described(torch, each, seen) for each in value]]
    if type(value).__name__ == "TypedStorage":
        return ["storage", str(value.dtype), value.tolist()]
    return [type(value).__name__.lower(), repr(value)]


def tensor_in_words(torch, value, seen):
    words = [
        type(value).__name__, str(value.dtype), list(value.shape), list(value.stride()), value.storage_offset(),
        value.requires_grad, value.is_conj(), value.is_neg(), str(value.device), value.is_leaf,
        sorted(f"{name}={note!r}" for name, note in vars(value).items() if name == "note"),
    ]  # fmt: skip
    if value.device.type == "cpu":
        storage = value.untyped_storage()
        key = ("storage", storage.data_ptr() or id(value))
        seen.setdefault(key, len(seen))
        seen["alive", len(seen)] = storage
        words += [seen[key] if storage.nbytes() else None, bytes(storage.tolist()).hex()]
    return words


def formats(group, name):
    """The formats that a case is written in."""
    old = not (set(name.split(", ")) & NEW or "float8" in name)
    return {"zip": {}, "old": {"_use_new_zipfile_serialization": False}} if old else {"zip": {}}


def save(torch, folder):
    words = {}
    for group in GROUPS:
        for index, (name, value) in enumerate(cases(torch, group).items()):
            for form, options in formats(group, name).items():
                file = f"{group} {index} {form}.pt"
                torch.save(value, folder / file, **options)
                words[f"{group}: {name} ({form})"] = [file, described(torch, value, {})]
    (folder / "words.json").write_text(json.dumps(words))


def check(torch, folder):
    for name, (file, words) in json.loads((folder / "words.json").read_text()).items():
        for options in (
            ({}, {"mmap": True}, {"weights_only": False}) if "zip" in file else ({}, {"weights_only": False})
        ):
            try:
                found = json.loads(json.dumps(described(torch, torch.load(folder / file, **options), {})))
            except Exception as error:
                print(f"{name} {options}: {type(error).__name__}: {error}")
                continue
            if found != words:
                print(f"{name} {options}: {found}\n    instead of {words}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    library, action, folder = sys.argv[1:]
    {"save": save, "check": check}[action](importlib.import_module(library), Path(folder))
