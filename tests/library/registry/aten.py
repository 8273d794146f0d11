"""Writes weft/library/registry/aten.txt: the schemas of PyTorch's operators that weft's functions compute. And aten_others.txt beside
it: further schemas of public functions.

    python tests/library/registry/aten.py

Run it again when functions were added. tests/library/registry/test_aten.py compares the files with PyTorch.
"""

import re
import sys
from pathlib import Path

COMPOSITE = "CompositeImplicitAutograd"

FILE = Path(__file__).parents[3] / "weft" / "library" / "registry" / "aten.txt"
OTHERS = FILE.with_name("aten_others.txt")
sys.path.insert(0, str(FILE.parents[3]))


def lines():
    """The lines of the file. Operators that follow from others are words on the lines of those."""
    from weft._library.aten import in_place_form, out_form

    listed = {}
    for line in schemas():
        listed.setdefault(re.split(r"[.(]", line)[0], []).append(line)

    def in_place(name):
        found = following(listed.get(name, ()), listed.get(f"{name}_", ()), in_place_form)
        return found if list(found.values()) == listed.get(f"{name}_") else {}

    for name, own in listed.items():
        if name.endswith("_") and in_place(name[:-1]):
            continue
        outs = following(own, own, out_form)
        rest = [line for line in own if line not in outs.values()]
        out = "out"
        if [*rest, *outs.values()] != own:
            out = "then out"
            if [each for line in rest for each in (line, outs.get(line)) if each] != own:
                outs, rest = {}, own
        for line in rest:
            words = [(out, outs), ("in place", in_place(name))]
            yield line + "".join(f" ; {word} {tags(found[line])}" for word, found in words if line in found)


def shared(lines):
    """The lines, with one for several operators that have the same schema next."""
    remaining = {}
    for line in lines:
        name = re.split(r"[.(]", line)[0]
        remaining.setdefault(name, []).append(line.removeprefix(name))
    for own in remaining.values():
        while own:
            rest = own[0]
            names = [name for name, other in remaining.items() if other[:1] == [rest]]
            yield f"{' '.join(names)}: {rest}" if len(names) > 1 else names[0] + rest
            for name in names:
                del remaining[name][0]


def following(lines, others, form):
    """By line, the one of `others` that has its form."""
    forms = {(schema(each), is_composite(each)): each for each in others}
    keys = {line: (form(schema(line)), is_composite(line)) for line in lines}
    return {line: forms[key] for line, key in keys.items() if key in forms}


def schema(line):
    return line.partition(" ; ")[0]


def tags(line):
    return line.split(" ; ")[1]


def is_composite(line):
    return line.endswith(" ; composite")


def schemas():
    """The line of each operator."""
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

    listed = {schema(line) for line in schemas()}
    operators = {f"aten::{each}" for each in aten.names()} | set(_builtins._get_builtin_table().values())
    for operator in sorted(operators):
        for each in torch._C._jit_get_schemas_for_operator(operator):
            line = str(each).removeprefix("aten::")
            if line not in listed:
                yield line


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in shared(lines())))
    OTHERS.write_text("".join(f"{line}\n" for line in shared(others())))
