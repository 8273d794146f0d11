"""torchvision: classification and detection models, operators, transforms v2, image tools."""

import warnings
from collections import Counter

import numpy
import torch
import torchvision
from checks import check, gradients, main, seed, train, weights
from PIL import Image
from torch.ao.quantization import convert, get_default_qconfig, prepare
from torchvision import models, ops, tv_tensors
from torchvision.transforms import v2

warnings.simplefilter("ignore")


def classified(name, size=64, **options):
    seed()
    model = getattr(models, name)(weights=None, num_classes=5, **options).eval()
    x = torch.randn(2, 3, size, size)
    out = model(x)
    out.square().sum().backward()
    total = {k: v for k, v in list(gradients(model).items())[:3]}
    return {"logits": out, "gradients": total, "parameters": sum(p.numel() for p in model.parameters())}


@check
def classification():
    names = (
        "resnet18",
        "mobilenet_v2",
        "mobilenet_v3_small",
        "squeezenet1_1",
        "shufflenet_v2_x0_5",
        "mnasnet0_5",
    )
    return {name: classified(name) for name in names}


@check
def more_classification():
    found = {
        name: classified(name)
        for name in ("densenet121", "regnet_y_400mf", "efficientnet_b0", "resnext50_32x4d")
    }
    found["alexnet"] = classified("alexnet")
    found["vit_b_32"] = classified("vit_b_32", image_size=64)
    found["swin_t"] = classified("swin_t")
    found["convnext_tiny"] = classified("convnext_tiny", 32)
    found["googlenet"] = classified("googlenet", init_weights=False, aux_logits=False)
    return found


@check
def quantized():
    """Models of floats become models of bytes, and answer as before."""
    found = {}
    for name in ("resnet18", "googlenet", "shufflenet_v2_x1_0", "mobilenet_v3_large"):
        seed()
        model = getattr(models.quantization, name)(weights=None, quantize=False, num_classes=5).eval()
        model.fuse_model(is_qat=False)
        model.qconfig = get_default_qconfig("fbgemm")
        observed, x = prepare(model), torch.rand(2, 3, 96, 96)
        with torch.no_grad():
            observed(x)
            small = convert(observed)
            before, after = model(x), small(x)
        found[name] = {
            "layers": Counter(type(layer).__name__ for layer in small.modules()),
            "dtypes": Counter(str(getattr(value, "dtype", None)) for value in small.state_dict().values()),
            "like before": bool((after - before).norm() <= 0.05 * before.norm()),
        }
    return found


@check
def training():
    # Images large enough for the last norms to have more than a number for each image: else rounding decides.
    model = models.resnet18(num_classes=4).train()
    x, y = torch.randn(4, 3, 96, 96), torch.arange(4)
    losses = train(
        model, lambda model: torch.nn.functional.cross_entropy(model(x), y), optimizer=torch.optim.SGD
    )
    return {"losses": losses, "weights": weights(model)}


@check
def segmentation_and_video():
    seed()
    model = models.segmentation.lraspp_mobilenet_v3_large(num_classes=3, weights_backbone=None).eval()
    out = model(torch.randn(1, 3, 64, 64))["out"]
    video = models.video.r3d_18(num_classes=3).eval()
    with torch.no_grad():
        frames = video(torch.randn(1, 3, 4, 32, 32))
    return {"segmentation": out, "video": frames}


@check
def operators():
    boxes = torch.rand(12, 4) * 20
    boxes[:, 2:] += boxes[:, :2] + 1
    scores = torch.rand(12)
    x = torch.randn(2, 4, 12, 12, requires_grad=True)
    regions = torch.cat([torch.tensor([[0.0]] * 6 + [[1.0]] * 6), boxes / 3], 1)
    offsets, weight = torch.randn(2, 18, 10, 10) * 0.3, torch.randn(5, 4, 3, 3)
    found = {
        "nms": ops.nms(boxes, scores, 0.3),
        "batched": ops.batched_nms(boxes, scores, torch.arange(12) % 3, 0.3),
        "iou": ops.box_iou(boxes[:4], boxes[4:8]),
        "giou": ops.generalized_box_iou_loss(boxes[:4], boxes[4:8]),
        "convert": ops.box_convert(boxes[:3], "xyxy", "cxcywh"),
        "roi_align": ops.roi_align(x, regions, 3, 0.8, 2, True),
        "roi_pool": ops.roi_pool(x, regions, 2),
        "ps_roi_align": ops.ps_roi_align(x, regions, 2, 1.0, 2),
        "ps_roi_pool": ops.ps_roi_pool(x, regions, 2),
        "deform": ops.deform_conv2d(x, offsets, weight),
        "focal": ops.sigmoid_focal_loss(torch.randn(3, 4), torch.rand(3, 4).round(), reduction="mean"),
        "drop": ops.stochastic_depth(torch.ones(6, 2), 0.5, "row"),
        "masks": ops.masks_to_boxes(torch.ones(1, 4, 5, dtype=torch.bool)),
    }
    for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform"):
        x.grad = None
        found[name].square().sum().backward(retain_graph=True)
        found[f"{name} gradient"] = x.grad
    return found


def detected(make, **options):
    seed()
    model = make(weights=None, weights_backbone=None, num_classes=3, min_size=64, max_size=96, **options)
    images = [torch.rand(3, 60, 70), torch.rand(3, 64, 64)]
    targets = [
        {"boxes": torch.tensor([[5.0, 5, 40, 50], [20, 20, 60, 55]]), "labels": torch.tensor([1, 2])},
        {"boxes": torch.tensor([[10.0, 12, 50, 60]]), "labels": torch.tensor([2])},
    ]
    for target, image in zip(targets, images):
        masks = torch.zeros(len(target["boxes"]), *image.shape[1:], dtype=torch.uint8)
        for mask, (left, top, right, bottom) in zip(masks, target["boxes"].int().tolist()):
            mask[top:bottom, left:right] = 1
        target["masks"] = masks
        target["boxes"] = target["boxes"].double()
    # In double precision: 50 layers of random weights enlarge the rounding of float32 to one part in a hundred.
    losses = model.train().double()([image.double() for image in images], targets)
    sum(losses.values()).backward()
    model.eval().float()
    with torch.no_grad():
        predictions = model(images)
    names = [k for k, p in model.named_parameters() if p.grad is not None]
    totals = gradients(model)  # converted to float32 with the model
    return {
        "losses": losses,
        "gradients": {k: totals[k] for k in names[:2] + names[-2:]},
        "count": [len(p["scores"]) for p in predictions],
        "boxes": predictions[0]["boxes"][:5],
        "scores": predictions[0]["scores"][:5],
    }


@check
def faster_rcnn():
    return detected(
        models.detection.fasterrcnn_mobilenet_v3_large_320_fpn,
        box_score_thresh=0.0,
        box_detections_per_img=10,
    )


@check
def retinanet():
    return detected(models.detection.retinanet_resnet50_fpn, score_thresh=0.0, detections_per_img=10)


@check
def mask_rcnn():
    return detected(models.detection.maskrcnn_resnet50_fpn, box_score_thresh=0.0, box_detections_per_img=5)


@check
def fcos():
    return detected(models.detection.fcos_resnet50_fpn, score_thresh=0.0, detections_per_img=10)


@check
def transforms():
    x = torch.randint(0, 256, (3, 40, 50), dtype=torch.uint8)
    pipelines = {
        "crop": v2.Compose(
            [
                v2.RandomResizedCrop(24, antialias=True),
                v2.RandomHorizontalFlip(),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize([0.5] * 3, [0.2] * 3),
            ]
        ),
        "color": v2.ColorJitter(0.3, 0.3, 0.3, 0.1),
        "affine": v2.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 5),
        "perspective": v2.RandomPerspective(p=1.0),
        "blur": v2.GaussianBlur(5),
        "augment": v2.RandAugment(),
        "trivial": v2.TrivialAugmentWide(),
        "augmix": v2.AugMix(),
        "erase": v2.RandomErasing(p=1.0),
        "elastic": v2.ElasticTransform(30.0),
        "gray": v2.RandomGrayscale(1.0),
        "posterize": v2.RandomPosterize(3, 1.0),
        "equalize": v2.RandomEqualize(1.0),
        "sharpness": v2.RandomAdjustSharpness(2.0, 1.0),
        "resize": v2.Resize(20),
        "bicubic": v2.Resize((30, 33), interpolation=v2.InterpolationMode.BICUBIC),
        "pad": v2.Pad(3, padding_mode="reflect"),
        "rotate": v2.RandomRotation(30, interpolation=v2.InterpolationMode.BILINEAR),
        "five": v2.FiveCrop(16),
    }
    found = {}
    for name, pipeline in pipelines.items():
        seed()
        found[name] = pipeline(x)
    return found


@check
def boxes_and_masks():
    sample = {
        "image": tv_tensors.Image(torch.randint(0, 256, (3, 40, 50), dtype=torch.uint8)),
        "boxes": tv_tensors.BoundingBoxes(
            [[5, 5, 20, 30], [10, 3, 45, 20]], format="XYXY", canvas_size=(40, 50)
        ),
        "mask": tv_tensors.Mask(torch.rand(40, 50).round()),
        "label": 3,
    }
    pipeline = v2.Compose(
        [
            v2.RandomHorizontalFlip(1.0),
            v2.RandomRotation(20, expand=True),
            v2.RandomIoUCrop(),
            v2.Resize((32, 32)),
            v2.ClampBoundingBoxes(),
            v2.SanitizeBoundingBoxes(labels_getter=None),
            v2.ConvertBoundingBoxFormat("CXCYWH"),
        ]
    )
    out = pipeline(sample)
    mixed = v2.MixUp(num_classes=4)(torch.rand(4, 3, 8, 8), torch.arange(4))
    cut = v2.CutMix(num_classes=4)(torch.rand(4, 3, 8, 8), torch.arange(4))
    return {
        "types": {key: type(value).__name__ for key, value in out.items()},
        "image": out["image"], "boxes": out["boxes"], "mask": out["mask"], "repr": repr(sample["boxes"]),
        "mixup": mixed[0], "mixup labels": mixed[1], "cutmix": cut[0],
        "kept": type(sample["boxes"].clone()).__name__, "plain": type(sample["boxes"] + 1).__name__,
    }  # fmt: skip


@check
def pictures():
    picture = Image.fromarray(numpy.random.randint(0, 256, (30, 40, 3), dtype=numpy.uint8))
    old = torchvision.transforms
    pipeline = old.Compose(
        [old.Resize(20), old.CenterCrop(16), old.ToTensor(), old.Normalize([0.5] * 3, [0.5] * 3)]
    )
    x = torch.randint(0, 256, (3, 30, 40), dtype=torch.uint8)
    boxes = torch.tensor([[2.0, 3, 20, 25]])
    return {
        "pipeline": pipeline(picture),
        "back": numpy.asarray(old.ToPILImage()(x)),
        "grid": torchvision.utils.make_grid(torch.rand(5, 3, 6, 6), nrow=3),
        "drawn": torchvision.utils.draw_bounding_boxes(x, boxes, colors="red"),
        "masks": torchvision.utils.draw_segmentation_masks(x, torch.rand(30, 40) > 0.5, colors="blue"),
    }


@check
def extraction():
    from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names

    model = models.resnet18(num_classes=4).eval()
    names = get_graph_node_names(model)[1]
    body = create_feature_extractor(model, {"layer1": "a", "layer3.0.relu": "b"})
    out = body(torch.randn(1, 3, 32, 32))
    return {"nodes": names, "a": out["a"], "b": out["b"]}


@check
def datasets():
    data = torchvision.datasets.FakeData(4, (3, 8, 8), transform=torchvision.transforms.ToTensor())
    loader = torch.utils.data.DataLoader(data, batch_size=2)
    return {"batches": [list(x.shape) for x, _ in loader], "first": data[0][0]}


if __name__ == "__main__":
    main("torchvision")
