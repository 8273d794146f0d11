"""einops: patterns on tensors, layers in a network, packing."""

import torch
from checks import check, gradients, main, train, weights
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import nn


@check
def patterns():
    x = torch.randn(2, 3, 4, 6)
    return {
        "rearrange": rearrange(x, "b c (h p) (w q) -> b (h w) (c p q)", p=2, q=3),
        "reduce": reduce(x, "b c (h 2) w -> b h w", "max"),
        "mean": reduce(x, "b c h w -> b () h 1", "mean"),
        "repeat": repeat(x[0, 0], "h w -> (h 2) w c", c=2),
        "list": rearrange([x[0], x[1]], "b c h w -> c (b h) w"),
        "einsum": einsum(x, torch.randn(5, 3), "b c h w, o c -> b o h w"),
    }


@check
def gradient():
    x = torch.randn(2, 3, 4, requires_grad=True)
    y = reduce(rearrange(x, "a b c -> c (a b)") ** 2, "c n -> c", "prod")
    y.sum().backward()
    return {"value": y, "gradient": x.grad}


@check
def packing():
    x, y = torch.randn(2, 3), torch.randn(2, 4, 5)
    packed, shapes = pack([x, y], "b *")
    back = unpack(packed, shapes, "b *")
    return {"packed": packed, "shapes": shapes, "same": [torch.equal(a, b) for a, b in zip((x, y), back)]}


@check
def layers():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        Reduce("b c (h 2) (w 2) -> b c h w", "max"),
        Rearrange("b c h w -> b (c h w)"),
        EinMix("b (c n) -> b (o n)", weight_shape="c o", bias_shape="o", c=4, n=16, o=3),
        nn.Linear(48, 2),
    )
    x, y = torch.randn(5, 1, 8, 8), torch.tensor([0, 1, 0, 1, 1])
    losses = train(model, lambda model: nn.functional.cross_entropy(model(x), y), lr=1e-2)
    return {"losses": losses, "gradients": gradients(model), "weights": weights(model), "repr": repr(model)}


@check
def errors():
    try:
        rearrange(torch.zeros(5, 4), "(a b) c -> a b c", a=2)
    except Exception as error:
        return {"type": type(error).__name__, "message": str(error).splitlines()[0]}


if __name__ == "__main__":
    main("einops")
