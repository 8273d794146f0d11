import base64
import pickle
import subprocess
import sys

import torch
import torch._utils

import weft
import weft._utils


def tensors(lib):
    return [
        lib.ones(2, 2),
        lib.arange(3),
        lib.zeros(3),
        lib.arange(4, dtype=lib.float64),
        lib.arange(2),
        lib.full((1,), 7.0),
    ]


def shown(value):
    return str(value).replace("weft.", "torch.")


def test_flat_buffers():
    for lib in (torch, weft):
        parts = [each for each in tensors(lib) if each.dtype is lib.float32]
        flat = lib._utils._flatten_dense_tensors(parts)
        assert flat.tolist() == [1, 1, 1, 1, 0, 0, 0, 7]
        views = lib._utils._unflatten_dense_tensors(flat, parts)
        assert [each.shape for each in views] == [each.shape for each in parts]
        assert views[0].data_ptr() == flat.data_ptr()


def test_groups_of_limited_size():
    for limit in (1, 16, 24, 1000):
        theirs, own = (list(lib._utils._take_tensors(tensors(lib), limit)) for lib in (torch, weft))
        assert shown(own) == shown(theirs)
        flat = [each for group in own for each in group]
        assert shown(weft._utils._reorder_tensors_as(flat, tensors(weft))) == shown(tuple(tensors(weft)))


def test_small_helpers():
    class Named:
        @weft._utils.classproperty
        def name(cls):
            return cls.__name__

    assert Named.name == Named().name == "Named"
    assert weft._utils.cpu_count() == torch._utils.cpu_count()
    assert weft._utils.is_compiling() is False
    assert weft._utils._import_dotted_name("os.path.join") is torch._utils._import_dotted_name("os.path.join")


def test_pickles_of_pytorchs_tensors():
    x = torch.arange(6.0).reshape(2, 3)
    text = base64.b64encode(pickle.dumps([x, x.t(), x.bool()])).decode()
    code = f"import base64, pickle, torch; print(pickle.loads(base64.b64decode({text!r})))"
    command = [sys.executable, "-m", "weft", "run", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str([x, x.t(), x.bool()]), done.stderr
