"""How tensors are printed, `torch._tensor_str`."""

from __future__ import annotations

from typing import Any

from weft.core.names import name_public as _name_public
from weft.core.tensor import Tensor
from weft.ops.tensor import printing as _printing
from weft.ops.tensor.printing import get_printoptions, printoptions, set_printoptions


class _Options:
    """The present options as attributes; setting one is `set_printoptions`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(_printing._options, name)
        except AttributeError:
            raise AttributeError(f"no option of printing is named {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_printing._options, name, value)


PRINT_OPTS = _Options()


def _str(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """What `repr` gives; `tensor_contents` takes the place of the values.

    >>> import weft as torch
    >>> _str(torch.zeros(2), tensor_contents="...")
    'tensor(...)'
    """
    return _printing.tensor_repr(self, tensor_contents=tensor_contents)


_str_intern = _str


def _tensor_str(self: Tensor, indent: int) -> str:
    """The values alone, for a line that begins with `indent` columns."""
    return _printing._contents(self, indent)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """The text of a tensor with what follows the values, in lines of the width of the options, and the closing bracket."""
    return _printing._append_suffixes(tensor_str, suffixes, indent, force_newline)


def tensor_totype(t: Tensor) -> Tensor:
    """The numbers as they are printed: in double precision."""
    return t.double()


__all__ = ["get_printoptions", "printoptions", "set_printoptions", "tensor_totype"]

_name_public(__name__)

_name_public(__name__)
