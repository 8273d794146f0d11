# module torch.amp.autocast_mode: imported by this module
from torch import dtype as _dtype
