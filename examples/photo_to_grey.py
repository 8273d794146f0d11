"""A photograph turned to grey, by einsum and by broadcasting, and its shadows brightened."""

from pathlib import Path

import torch
from PIL import Image
from sklearn.datasets import load_sample_image

photo = torch.tensor(load_sample_image("china.jpg"))  # [height, width, channel], uint8
print("photo", tuple(photo.shape), photo.dtype)

colour = photo.float() / 255
luma = torch.tensor([0.299, 0.587, 0.114])  # how bright red, green and blue look (ITU-R BT.601)
grey = torch.einsum("hwc,c->hw", colour, luma)
by_broadcasting = (colour * luma).sum(dim=-1)
print("einsum and broadcasting agree:", torch.allclose(grey, by_broadcasting, atol=1e-6))

print("mean of red, green, blue:", colour.mean(dim=(0, 1)))
print(f"grey: mean {grey.mean():.4f}, standard deviation {grey.std():.4f}")
print(f"darkest {grey.min():.4f}, median {grey.median():.4f}, brightest {grey.max():.4f}")
tenths = (grey * 10).long().clamp(max=9)
for tenth, share in enumerate(torch.bincount(tenths.flatten(), minlength=10) / grey.numel()):
    print(f"  {tenth / 10:.1f} to {(tenth + 1) / 10:.1f} {share:6.1%} {'#' * round(100 * share.item())}")

# Side by side, with white between: the photograph, its grey, and the grey with its shadows brightened.
white = torch.ones(len(photo), 12, 3)
grey, brightened = (each.unsqueeze(-1).expand_as(colour) for each in (grey, grey.sqrt()))
triptych = torch.cat((colour, white, grey, white, brightened), dim=1)
pixels = (triptych * 255).round().to(torch.uint8)

target = Path("pictures/photo_to_grey.png")
target.parent.mkdir(exist_ok=True)
Image.fromarray(pixels.numpy()).save(target)
print("wrote", target, tuple(pixels.shape))
