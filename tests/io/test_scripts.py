"""Scripts for PyTorch that keep tensors in files: the same output with PyTorch and under `weft run`."""

SCRIPT = """
import io
import os

import h5py
import numpy as np
import torch

os.makedirs("data")
cloud = torch.tensor([[4.0, 1.0], [5.0, 3.0], [2.0, 1.0]])

# PyTorch's own files, by path and by file object.
torch.save(cloud, "data/cloud.t")
with open("data/cloud.t", "wb") as f:
    torch.save(cloud, f)
print(torch.load("data/cloud.t"))
with open("data/cloud.t", "rb") as f:
    print(torch.equal(torch.load(f), cloud))
buffer = io.BytesIO()
torch.save({"cloud": cloud, "row": cloud[1], "step": 3}, buffer)
buffer.seek(0)
state = torch.load(buffer)
state["cloud"][1, 0] = -1
print(state)

# HDF5: arrays, and tensors themselves.
with h5py.File("data/cloud.hdf5", "w") as f:
    f.create_dataset("coords", data=cloud.numpy())
    f.create_dataset("tensor", data=cloud, compression="gzip")
    f.create_group("more")["flags"] = torch.tensor([True, False])
f = h5py.File("data/cloud.hdf5", "r")
dset = f["coords"]
print(dset.shape, dset.dtype, f["tensor"].dtype, f["more/flags"].dtype)
last = torch.from_numpy(dset[-2:])
print(last, last.dtype, torch.from_numpy(f["tensor"][:, 1]), torch.as_tensor(f["more/flags"][...]))
print(torch.tensor(dset), torch.from_numpy(np.asarray(f["tensor"])).sum())
f.close()
last[0, 0] = 9
print(last, cloud)
try:
    torch.from_numpy(cloud)
except TypeError as error:
    print(error)
"""


def test_saving_loading_and_hdf5(run, run_weft, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    outputs = []
    for start in (run, lambda *arguments: run_weft("run", *arguments)):
        done = start("script.py")
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
        for name in ("cloud.t", "cloud.hdf5"):
            (tmp_path / "data" / name).unlink()
        (tmp_path / "data").rmdir()
    assert outputs[0] == outputs[1]
