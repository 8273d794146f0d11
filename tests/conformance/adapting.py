"""PyTorch's test files as other projects keep them for their devices, made tests of the CPU again.

Only the text in memory changes. Tests that ask for a GPU skip themselves, on weft as on PyTorch.
"""

import re

# Ascend/pytorch: its package is an import with side effects; its device plays the part of CUDA, and there is none here.
_ASCEND = (
    (r"^(\s*)(import torch_npu\b.*|import torch, torch_npu|from torch_npu\.contrib .*)$", r"\1import torch"),
    (r"from torch_npu\.testing\.testcase import", "from torch.testing._internal.common_utils import"),
    (r"^from torch_npu\.testing\.common_\w+ import (\w+)$", r"\1 = lambda *given: lambda function: function"),
    (r"^DEVICE_NAME = .*$", "DEVICE_NAME = ''"),
    (r"(?<=only_for=)(\(?)['\"]privateuse1['\"]", r"\1'cpu'"),
    (r"\btorch_npu\.npu\b", "torch.cuda"),
    (r"\btorch_npu\b", "torch"),
    (r"\bnpu\b", "cuda"),
    (r"\bskipIfMps\b", "skipIfMPS"),  # the name of PyTorch before 2.13
)
# intel/torch-xpu-ops: what is instantiated for its device only is for the CPU.
_INTEL = (
    (r"(?<=only_for=)(\(?)['\"]xpu['\"]", r"\1'cpu'"),
    (r"^only_for = .*$", "only_for = 'cpu'"),
)


# Both: classes in C++ that a few tests of torch.fx use. weft loads no compiled libraries; the tests that need it fail on both.
_COMPILED = (r"^(\s+)torch\.ops\.load_library\(str\(lib_file_path\)\)$", r"\1pass")

# Both: test_fx asks whether a function has schemas by asking whether it is one in C. weft's functions have schemas and are Python.
_IN_C = (r"isinstance\(op\.op, types\.BuiltinFunctionType\)", "torch.jit._builtins._find_builtin(op.op)")


def adapted(source):
    """The text of a test file with the CPU in the place of another project's device."""
    for pattern, replacement in (*(_ASCEND if "torch_npu" in source else _INTEL), _COMPILED, _IN_C):
        source = re.sub(pattern, replacement, source, flags=re.MULTILINE)
    return source
