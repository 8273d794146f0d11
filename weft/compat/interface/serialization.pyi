# module torch.serialization: imported by this module
from torch.types import Storage
from torch._utils import _import_dotted_name
