"""What happens when torchvision asks for its compiled libraries."""

import numpy as np
import pytest

import weft


@pytest.fixture(scope="module", autouse=True)
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "torchvision"
    folder.mkdir()
    for name in ("_C_stable.so", "_C.so", "image.so"):
        folder.joinpath(name).touch()
        weft.ops.load_library(str(folder / name))


def test_another_library_cannot_be_loaded(tmp_path):
    path = tmp_path / "elsewhere.so"
    path.touch()
    with pytest.raises(OSError, match="Could not load this library"):
        weft.ops.load_library(path)


def test_operators_are_there_under_their_names():
    boxes = weft.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]])
    kept = weft.ops.torchvision.nms(boxes, weft.tensor([0.5, 0.9, 0.1]), 0.5)
    assert kept.tolist() == [1, 2]
    assert weft.ops.torchvision._cuda_version() == -1
    assert str(weft.ops.torchvision.roi_pool.default._schema) == (
        "torchvision::roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> "
        "(Tensor, Tensor)"
    )
    with pytest.raises(NotImplementedError, match="torchvision::qnms"):
        weft.ops.torchvision.qnms(boxes, boxes[:, 0], 0.5)


def test_operators_have_one_derivative():
    image = weft.rand(1, 1, 4, 4, requires_grad=True)
    found = weft.ops.torchvision.roi_align(image, weft.tensor([[0.0, 0, 0, 4, 4]]), 1.0, 2, 2, 1, True)
    (grad,) = weft.autograd.grad(found.square().sum(), image, create_graph=True)
    with pytest.raises(RuntimeError, match="double backwards"):
        grad.sum().backward()


def test_operators_compute_in_float32_under_autocast():
    image, box = weft.rand(1, 1, 4, 4).bfloat16(), weft.tensor([[0.0, 0, 0, 4, 4]]).bfloat16()
    with pytest.raises(NotImplementedError, match="bfloat16"):
        weft.ops.torchvision.roi_align(image, box, 1.0, 2, 2, 1, True)
    with weft.autocast("cpu", dtype=weft.bfloat16):
        found = weft.ops.torchvision.roi_align(image, box, 1.0, 2, 2, 1, True)
        kept = weft.ops.torchvision.nms(box[:, 1:], box[:, 0], 0.5)
    expected = weft.ops.torchvision.roi_align(image.float(), box.float(), 1.0, 2, 2, 1, True)
    assert found.equal(expected.bfloat16()) and kept.tolist() == [0]


def test_operators_are_differentiable_without_further_registration():
    image = weft.ones(1, 1, 4, 4, requires_grad=True)
    found = weft.ops.torchvision.roi_align(image, weft.tensor([[0.0, 0, 0, 4, 4]]), 1.0, 2, 2, 1, True)
    found.sum().backward()
    assert image.grad.sum() == 4


@pytest.mark.parametrize("suffix", ["png", "jpeg"])
def test_pictures_come_back(suffix, tmp_path):
    pytest.importorskip("PIL")
    rows, columns = np.mgrid[:16, :24].astype(np.uint8)
    picture = weft.from_numpy(np.stack([rows * 9, columns * 7, rows + columns]))
    encoded = getattr(weft.ops.image, f"encode_{suffix}")(picture, 9 if suffix == "png" else 100)
    weft.ops.image.write_file(str(tmp_path / "picture"), encoded)
    read = weft.ops.image.read_file(str(tmp_path / "picture"))
    assert read.equal(encoded)
    decoded = weft.ops.image.decode_image(read, 0)
    assert decoded.shape == picture.shape and decoded.is_contiguous() is False  # channels last
    difference = (decoded.int() - picture.int()).abs().max()
    assert difference == 0 if suffix == "png" else difference < 8
    assert weft.ops.image.decode_image(read, 1).shape == (1, 16, 24)


def test_a_program_that_has_defined_an_operator_before(run, tmp_path):
    """As programs do for installations whose compiled library cannot be loaded."""
    folder = tmp_path / "torchvision"
    folder.mkdir()
    for name in ("_C_stable.so", "_C.so"):
        folder.joinpath(name).touch()
    code = f"""
import weft as torch

library = torch.library.Library("torchvision", "DEF")
library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
library.define("roi_pool(Tensor input) -> Tensor")
library.impl("roi_pool", lambda input: input + 1, "CPU")
for name in ("_C_stable.so", "_C.so"):
    torch.ops.load_library({str(folder)!r} + "/" + name)
boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]])
print(torch.ops.torchvision.nms(boxes, torch.tensor([0.5, 0.9, 0.1]), 0.5).tolist())
print(torch.ops.torchvision.roi_pool(torch.ones(1)).tolist(), torch.ops.torchvision.ps_roi_pool)
"""
    done = run("-c", code)
    assert done.stdout.splitlines() == ["[1, 2]", "[2.0] torchvision.ps_roi_pool"], done.stderr
