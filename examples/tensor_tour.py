"""A tensor is a view of a storage: how sizes, strides and offsets tell which."""

import torch

points = torch.arange(12, dtype=torch.float32).reshape(3, 4)
print(points)
print("size", points.size(), "stride", points.stride(), "offset", points.storage_offset())

# Views share the storage and differ in size, stride and offset.
for name, view in {
    "points[1]": points[1],
    "points[:, 2]": points[:, 2],
    "points[::2, 1:3]": points[::2, 1:3],
    "points.t()": points.t(),
    "points.unsqueeze(1).expand(3, 2, 4)": points.unsqueeze(1).expand(3, 2, 4),
}.items():
    shared = view.untyped_storage().data_ptr() == points.untyped_storage().data_ptr()
    print(
        f"{name:36} {tuple(view.shape)!s:10} {view.stride()!s:10} {view.storage_offset():2} shared: {shared}"
    )

column = points[:, 2]
column.mul_(10)  # written through the view, seen in the matrix
print(points)

transposed = points.t()
print(
    "contiguous:", points.is_contiguous(), transposed.is_contiguous(), transposed.contiguous().is_contiguous()
)
try:
    transposed.view(12)
except RuntimeError as error:
    print("RuntimeError:", str(error).splitlines()[0])
print(transposed.reshape(12))

# The same bytes, read through strides that somebody made up: overlapping windows of a signal.
signal = torch.arange(8)
windows = signal.as_strided((6, 3), (1, 1))
print(windows)
print("moving average", windows.to(torch.float64).mean(dim=1))

# Dtypes meet in the middle; a Python number does not widen a tensor.
print(
    (torch.tensor([1, 2]) + torch.tensor([0.5, 0.25])).dtype, (torch.ones(2, dtype=torch.float16) * 3.0).dtype
)
print(torch.tensor([1.5, -2.5, float("inf")]).to(torch.bfloat16))
print(torch.tensor([[True, False], [False, True]]), torch.tensor(7), torch.tensor([1e-5, 1.0, 1e5]))
