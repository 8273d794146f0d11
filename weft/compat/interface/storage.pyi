# module torch.storage: imported by this module
from torch.types import Storage
