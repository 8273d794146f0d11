"""The functions of `torch.special` under the names that PyTorch's C++ part has for them: graphs use these names."""

from __future__ import annotations

from weft.core.registry import namespace

globals().update({f"special_{name}": function for name, function in namespace("special").items()})
