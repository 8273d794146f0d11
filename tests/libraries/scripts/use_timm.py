"""timm: image models of many families, their training loop's parts, features and files."""

import warnings

import timm
import torch
from checks import check, gradients, main, seed, weights
from timm.data import Mixup, create_transform, resolve_data_config
from timm.loss import AsymmetricLossSingleLabel, LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import ModelEmaV3, accuracy
from torch import nn

warnings.simplefilter("ignore")

MODELS = {
    "resnet18": 64, "mobilenetv3_small_050": 64, "efficientnet_b0": 64, "vit_tiny_patch16_224": 64,
    "convnext_atto": 64, "swin_tiny_patch4_window7_224": 56, "regnetx_002": 64, "mixer_s32_224": 64,
    "deit_tiny_patch16_224": 64, "densenet121": 64, "poolformer_s12": 64, "mobilevit_xxs": 64, "resnest14d": 64,
    "ghostnet_050": 64, "hrnet_w18_small": 64, "maxvit_pico_rw_256": 64, "levit_128s": 64, "xcit_nano_12_p16_224": 64,
}  # fmt: skip


def made(name, size, **changes):
    seed()
    for options in ({"img_size": size}, {}):  # convolutional networks take images of any size
        try:
            return timm.create_model(name, num_classes=5, **options, **changes)
        except TypeError:
            continue


def numbers(name):
    size = MODELS[name]
    model = made(name, 224 if "levit" in name else size).eval()
    size = 224 if "levit" in name else size
    x = torch.randn(2, 3, size, size)
    out = model(x)
    out.square().sum().backward()
    return {
        "logits": out,
        "gradients": gradients(model),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


@check
def convolutional():
    return {
        name: numbers(name)
        for name in ("resnet18", "mobilenetv3_small_050", "efficientnet_b0", "regnetx_002")
    }


@check
def more_convolutional():
    return {
        name: numbers(name)
        for name in ("convnext_atto", "densenet121", "resnest14d", "ghostnet_050", "hrnet_w18_small")
    }


@check
def transformers():
    return {
        name: numbers(name)
        for name in ("vit_tiny_patch16_224", "deit_tiny_patch16_224", "swin_tiny_patch4_window7_224")
    }


@check
def more_transformers():
    return {
        name: numbers(name)
        for name in (
            "mixer_s32_224",
            "poolformer_s12",
            "mobilevit_xxs",
            "maxvit_pico_rw_256",
            "xcit_nano_12_p16_224",
            "levit_128s",
        )
    }


@check
def training():
    model = made("resnet18", 32, drop_rate=0.1, drop_path_rate=0.1).train()
    x, y = torch.randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 3])
    criterion = LabelSmoothingCrossEntropy(0.1)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    schedule, epochs = create_scheduler_v2(optimizer, sched="cosine", num_epochs=10, warmup_epochs=2)
    average = ModelEmaV3(model, decay=0.9)
    losses, rates = [], []
    for step in range(3):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        average.update(model)
        schedule.step(step + 1)
        losses.append(loss.item())
        rates.append(optimizer.param_groups[0]["lr"])
    return {
        "losses": losses,
        "rates": rates,
        "groups": [len(group["params"]) for group in optimizer.param_groups],
        "average": weights(average.module),
        "weights": weights(model),
        "accuracy": accuracy(model(x), y, topk=(1, 3)),
    }


@check
def optimizers():
    values = {}
    for name in (
        "sgd",
        "lamb",
        "lion",
        "adabelief",
        "adan",
        "nadamw",
        "lookahead_adam",
        "rmsproptf",
        "madgrad",
        "adafactor",
        "muon",
    ):
        seed()
        model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))
        x, y = torch.randn(8, 6), torch.randn(8, 2)
        optimizer = create_optimizer_v2(model, opt=name, lr=1e-2)
        for _ in range(4):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        values[name] = [loss.item(), *(float(p.detach().sum()) for p in model.parameters())]
    return values


@check
def losses_and_mixing():
    x, y = torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 2, 3])
    mixed, targets = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=5)(x.clone(), y)
    logits = torch.randn(4, 5)
    return {
        "mixed": mixed,
        "targets": targets,
        "soft": SoftTargetCrossEntropy()(logits, targets),
        "asymmetric": AsymmetricLossSingleLabel()(logits, y),
    }


@check
def features():
    model = made("resnet18", 64, features_only=True, out_indices=(1, 3)).eval()
    x = torch.randn(1, 3, 64, 64)
    vit = made("vit_tiny_patch16_224", 64).eval()
    final, intermediates = vit.forward_intermediates(x, indices=[2, 5])
    pooled = made("resnet18", 64).eval()
    pooled.reset_classifier(0)
    return {
        "features": model(x),
        "channels": model.feature_info.channels(),
        "intermediates": intermediates,
        "final": final,
        "pooled": pooled(x),
        "unpooled": pooled.forward_features(x),
    }


@check
def files():
    model = made("mobilenetv3_small_050", 64)
    torch.save(model.state_dict(), "model.pth")
    seed(1)
    again = timm.create_model("mobilenetv3_small_050", num_classes=5, checkpoint_path="model.pth")
    config = resolve_data_config({}, model=model)
    return {
        "same": weights(model) == weights(again),
        "config": {k: str(v) for k, v in config.items()},
        "models": len(timm.list_models()) > 1000,
    }


@check
def images():
    import numpy
    from PIL import Image

    picture = Image.fromarray(numpy.random.randint(0, 256, (80, 70, 3), dtype=numpy.uint8))
    evaluation = create_transform((3, 48, 48), is_training=False)
    training = create_transform((3, 48, 48), is_training=True, auto_augment="rand-m9-mstd0.5", re_prob=1.0)
    return {"evaluation": evaluation(picture), "training": training(picture)}


if __name__ == "__main__":
    main("timm", "torchvision")
