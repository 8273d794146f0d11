"""A batch of images whose dims have names: nothing depends on the order of the dims, and a mix-up is an error.

Needs weft: PyTorch had named tensors from 1.3 on and has dropped them.
"""

import torch

torch.manual_seed(0)
images = torch.rand(2, 3, 4, 6, names=("image", "channel", "row", "column"))
print(images.names, tuple(images.shape))

# How bright red, green and blue look (ITU-R BT.709); align_as puts the channels where the images have them.
luma = torch.tensor([0.2126, 0.7152, 0.0722], names=["channel"])
grey = (images * luma.align_as(images)).sum("channel")
print("grey:", grey.names, tuple(grey.shape))

# The same for images that store their channels last: the code names dims, not places.
channels_last = images.align_to("image", "row", "column", "channel")
again = (channels_last * luma.align_as(channels_last)).sum("channel")
print("stored in another order, the same:", torch.equal(grey.rename(None), again.rename(None)))

brightest = grey.flatten(["row", "column"], "pixel").max("pixel")
print("brightest pixel of each image:", brightest.indices.names, brightest.indices.tolist())
column = grey.mean(["image", "row"])
print("mean of each column:", column.names, tuple(column.shape))

try:
    print(grey + channels_last.select("column", 0))
except RuntimeError as error:
    print(error)
