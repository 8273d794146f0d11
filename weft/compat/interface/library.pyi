# module torch.library: imported by this module
from torch import dtype as _dtype
