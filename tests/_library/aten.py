"""Writes weft/_library/aten.txt: the schemas of PyTorch's operators that weft's functions compute.

    python tests/_library/aten.py

Run it again when functions were added. tests/_library/test_aten.py compares the file with PyTorch.
"""

import sys
from pathlib import Path

COMPOSITE = "CompositeImplicitAutograd"

FILE = Path(__file__).parents[2] / "weft" / "_library" / "aten.txt"
sys.path.insert(0, str(FILE.parents[2]))


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


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in lines()))
