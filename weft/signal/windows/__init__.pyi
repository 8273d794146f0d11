# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
# mypy: disable-error-code="overload-overlap, overload-cannot-match, override, misc, no-redef"
from weft.compat.torch.signal.windows.windows import bartlett as bartlett
from weft.compat.torch.signal.windows.windows import blackman as blackman
from weft.compat.torch.signal.windows.windows import cosine as cosine
from weft.compat.torch.signal.windows.windows import exponential as exponential
from weft.compat.torch.signal.windows.windows import gaussian as gaussian
from weft.compat.torch.signal.windows.windows import general_cosine as general_cosine
from weft.compat.torch.signal.windows.windows import general_hamming as general_hamming
from weft.compat.torch.signal.windows.windows import hamming as hamming
from weft.compat.torch.signal.windows.windows import hann as hann
from weft.compat.torch.signal.windows.windows import kaiser as kaiser
from weft.compat.torch.signal.windows.windows import nuttall as nuttall
from . import windows as windows
from ...compat.torch.signal.windows import *
