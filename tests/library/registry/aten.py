"""Writes weft/library/registry/aten.txt: the schemas of PyTorch's operators that weft's functions compute. And aten_others.txt beside
it: further schemas of public functions.

    python tests/library/registry/aten.py

Run it again when functions were added. tests/library/registry/test_aten.py compares the files with PyTorch.
"""

import sys
from pathlib import Path

COMPOSITE = "CompositeImplicitAutograd"

FILE = Path(__file__).parents[3] / "weft" / "library" / "registry" / "aten.txt"
OTHERS = FILE.with_name("aten_others.txt")
sys.path.insert(0, str(FILE.parents[3]))


def lines():
    """The lines of the file."""
    import torch

    from weft._library import aten

    registered = set(torch._C._dispatch_get_all_op_names())
    names = {
        each.removeprefix("aten::").partition(".")[0] for each in registered if each.startswith("aten::")
    }
    for name in sorted(names):
        if aten.function(name) is None:
            continue
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads():  # a call of the packet tries them in this order
            found = getattr(packet, overload)
            if found.name() in registered:
                tags = " ".join(str(int(tag)) for tag in sorted(found.tags, key=int))
                line = f"{str(found._schema).removeprefix('aten::')} ; {tags}".rstrip(" ;")
                yield (
                    f"{line} ; composite"
                    if torch._C._dispatch_has_kernel_for_dispatch_key(found.name(), COMPOSITE)
                    else line
                )


def others():
    """The lines of the other file: what else PyTorch answers for the operators of functions, in its order."""
    import torch

    from weft._library import aten
    from weft.jit import _builtins

    listed = {line.partition(" ; ")[0] for line in lines()}
    operators = {f"aten::{each}" for each in aten.names()} | set(_builtins._get_builtin_table().values())
    for operator in sorted(operators):
        for schema in torch._C._jit_get_schemas_for_operator(operator):
            line = str(schema).removeprefix("aten::")
            if line not in listed:
                yield line


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in lines()))
    OTHERS.write_text("".join(f"{line}\n" for line in others()))
