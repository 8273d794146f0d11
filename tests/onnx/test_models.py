"""Models in the style of torchvision and of transformers, exported with dynamic dimensions."""

import math
from collections import OrderedDict

import pytest
from onnx_checking import check

import weft
from weft import nn
from weft.export import Dim
from weft.nn import functional as F


class Residual(nn.Module):
    """A block of ResNet, with squeeze and excitation."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, groups=2, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(outputs, 2, 1),
            nn.SiLU(inplace=True),
            nn.Conv2d(2, outputs, 1),
            nn.Sigmoid(),
        )

    def forward(self, x):
        y = self.body(x)
        y = y * self.squeeze(y)
        y += self.short(x)
        return F.relu(y, inplace=True)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 4, 7, 2, 3), nn.BatchNorm2d(4), nn.Hardswish(), nn.MaxPool2d(3, 2, 1)
        )
        self.blocks = nn.Sequential(Residual(4, 8, 1), Residual(8, 8, 2))
        self.pool, self.head = nn.AdaptiveAvgPool2d((2, 2)), nn.Linear(32, 5)

    def forward(self, x):
        x = self.pool(self.blocks(self.stem(x)))
        return self.head(F.dropout(weft.flatten(x, 1), training=self.training))


class Dense(nn.Module):
    """Layers whose inputs are all outputs before them."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(3 + 2 * i, 2, 3, padding=1) for i in range(3)])

    def forward(self, x):
        features = [x]
        for layer in self.layers:
            features.append(F.elu(layer(weft.cat(features, 1))))
        return weft.cat(features, 1)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.up, self.last = nn.ConvTranspose2d(4, 4, 2, 2), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = F.leaky_relu(self.down(x))
        b = self.up(F.gelu(self.middle(F.max_pool2d(a, 2))))
        b = F.interpolate(b, size=a.shape[-2:], mode="bilinear", align_corners=False)
        return OrderedDict(out=self.last(weft.cat([a, b], 1)), features=a)


class ShiftedWindows(nn.Module):
    """Windows of attention, as Swin has them."""

    def __init__(self):
        super().__init__()
        self.qkv, self.project = nn.Linear(8, 24), nn.Linear(8, 8)
        self.table = nn.Parameter(weft.randn(9, 2))
        places = weft.stack(weft.meshgrid(weft.arange(2), weft.arange(2), indexing="ij")).flatten(1)
        away = (places[:, :, None] - places[:, None]).permute(1, 2, 0) + 1
        self.register_buffer("index", away[..., 0] * 3 + away[..., 1])

    def forward(self, x):
        batch, height, width, size = x.shape
        x = weft.roll(F.pad(x, (0, 0, 0, width % 2, 0, height % 2)), shifts=(-1, -1), dims=(1, 2))
        x = x.view(batch, height // 2, 2, width // 2, 2, size).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, size)
        q, k, v = self.qkv(x).reshape(x.size(0), 4, 3, 2, size // 2).permute(2, 0, 3, 1, 4)
        bias = self.table[self.index.view(-1)].view(4, 4, 2).permute(2, 0, 1).contiguous().unsqueeze(0)
        weights = F.softmax((q * (size // 2) ** -0.5) @ k.transpose(-2, -1) + bias, dim=-1)
        x = self.project((weights @ v).transpose(1, 2).reshape(x.size(0), 4, size))
        x = x.view(batch, height // 2, width // 2, 2, 2, size).permute(0, 1, 3, 2, 4, 5)
        return weft.roll(x.reshape(batch, height, width, size), shifts=(1, 1), dims=(1, 2))


class Rotary(nn.Module):
    """A decoder with grouped keys, rotary positions, root mean square norms and a gated feed-forward part."""

    def __init__(self):
        super().__init__()
        self.tokens, self.norm = nn.Embedding(30, 16), nn.RMSNorm(16, eps=1e-6)
        self.q, self.k, self.v, self.o = (nn.Linear(16, size, bias=False) for size in (16, 8, 8, 16))
        self.gate, self.up, self.down = nn.Linear(16, 24), nn.Linear(16, 24), nn.Linear(24, 16)
        self.register_buffer("frequencies", 1 / 100 ** (weft.arange(0, 4, 2).float() / 4), persistent=False)

    def rotated(self, x, angles):
        first, second = x.chunk(2, dim=-1)
        return x * angles.cos() + weft.cat((-second, first), dim=-1) * angles.sin()

    def forward(self, input_ids, attention_mask=None):
        batch, length = input_ids.shape
        x = self.tokens(input_ids)
        places = weft.arange(length, device=x.device)
        angles = places[:, None].float() * self.frequencies[None]
        angles = weft.cat([angles, angles], -1)
        y = self.norm(x)
        q, k, v = (layer(y).view(batch, length, -1, 4).transpose(1, 2) for layer in (self.q, self.k, self.v))
        q, k = self.rotated(q, angles), self.rotated(k, angles)
        k, v = (
            each[:, :, None].expand(batch, 2, 2, length, 4).reshape(batch, 4, length, 4) for each in (k, v)
        )
        mask = weft.full((length, length), float("-inf")).triu(1)[None, None]
        if attention_mask is not None:
            mask = mask.masked_fill(attention_mask[:, None, None, :] == 0, weft.finfo(x.dtype).min)
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]) + mask
        weights = F.softmax(scores, dim=-1, dtype=weft.float32).to(q.dtype)
        x = x + self.o((weights @ v).transpose(1, 2).contiguous().view(batch, length, -1))
        x = x + self.down(F.silu(self.gate(self.norm(x))) * self.up(self.norm(x)))
        return x @ self.tokens.weight.t()


class Pooled(nn.Module):
    """An encoder of sentences: types, positions, layers of PyTorch's, and a mean over what is no padding."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(30, 16, padding_idx=0), nn.Embedding(20, 16)
        self.register_buffer("position_ids", weft.arange(20).expand(1, -1), persistent=False)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True, activation="gelu")
        self.encoder, self.norm = (
            nn.TransformerEncoder(layer, 1, enable_nested_tensor=False),
            nn.LayerNorm(16),
        )

    def forward(self, ids):
        there = ids != 0
        x = self.norm(self.tokens(ids) + self.places(self.position_ids[:, : ids.shape[1]]))
        x = self.encoder(x, src_key_padding_mask=~there)
        weights = there.unsqueeze(-1).to(x.dtype)
        mean = (x * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return F.normalize(mean, p=2, dim=-1)


class Detector(nn.Module):
    """Boxes from anchors, the best of which are chosen."""

    def forward(self, deltas, scores):
        centers = weft.stack(weft.meshgrid(weft.arange(3.0), weft.arange(4.0), indexing="xy"), -1).view(-1, 2)
        boxes = weft.cat([centers - deltas[..., :2].exp(), centers + deltas[..., 2:].exp()], -1)
        boxes[..., 0::2] = boxes[..., 0::2].clamp(0, 3)
        best, index = scores.sigmoid().topk(5, dim=1)
        chosen = boxes.gather(1, index.unsqueeze(-1).expand(-1, -1, 4))
        return chosen, best, chosen[best > 0.5]


class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.lstm = (
            nn.Conv1d(5, 8, 3, padding=1),
            nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True),
        )
        self.head = nn.Linear(12, 7)

    def forward(self, x):
        y, _ = self.lstm(F.glu(weft.cat([self.conv(x)] * 2, 1), 1).transpose(1, 2))
        return F.log_softmax(self.head(y), -1)


IDS = weft.tensor([[3, 5, 7, 9, 0], [2, 4, 0, 0, 0]])
MORE = weft.tensor([[3, 5, 7, 9, 1, 2, 3], [2, 4, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0]])
BATCH, TIME = Dim("batch"), Dim("time", min=2, max=20)
MODELS = {
    "classifier": (Classifier, [(weft.randn(2, 3, 32, 32),), (weft.randn(3, 3, 32, 32),)], ({0: BATCH},)),
    "dense": (Dense, [(weft.randn(2, 3, 8, 8),), (weft.randn(1, 3, 8, 12),)], ({0: BATCH, 3: Dim("width")},)),
    "unet": (UNet, [(weft.randn(2, 3, 8, 10),), (weft.randn(1, 3, 8, 10),)], ({0: BATCH},)),
    "shifted windows": (ShiftedWindows, [(weft.randn(2, 4, 6, 8),), (weft.randn(3, 4, 6, 8),)], ({0: BATCH},)),
    "rotary": (Rotary, [(IDS, (IDS != 0).long()), (MORE, (MORE != 0).long())], ({0: BATCH, 1: TIME}, {0: BATCH, 1: TIME})),
    "pooled": (Pooled, [(IDS,), (MORE,)], ({0: BATCH, 1: TIME},)),
    "detector": (Detector, [(weft.randn(2, 12, 4), weft.randn(2, 12)), (weft.randn(3, 12, 4), weft.randn(3, 12))],
                 ({0: BATCH}, {0: BATCH})),
    "speech": (Speech, [(weft.randn(2, 5, 9),), (weft.randn(3, 5, 11),)], ({0: BATCH, 2: TIME},)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    kind, (first, *more), shapes = MODELS[name]
    weft.manual_seed(0)
    check(kind(), *first, shapes=shapes, more=more, tolerance=2e-4)
