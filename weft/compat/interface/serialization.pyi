# module torch.serialization: imported by this module
from torch.types import Storage
