"""The pages of the API reference, from the modules, signatures and docstrings of weft at run time."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

# The file name and the title of a page, and the module that it describes.
MODULES = (
    ("torch", "torch", "weft"), ("nn", "torch.nn", "weft.nn"),
    ("functional", "torch.nn.functional", "weft.nn.functional"), ("init", "torch.nn.init", "weft.nn.init"),
    ("nn-utils", "torch.nn.utils", "weft.nn.utils"), ("optim", "torch.optim", "weft.optim"),
    ("lr_scheduler", "torch.optim.lr_scheduler", "weft.optim.lr_scheduler"), ("data", "torch.utils.data", "weft.utils.data"),
    ("autograd", "torch.autograd", "weft.autograd"), ("func", "torch.func", "weft.func"),
    ("linalg", "torch.linalg", "weft.linalg"), ("fft", "torch.fft", "weft.fft"), ("special", "torch.special", "weft.special"),
    ("sparse", "torch.sparse", "weft.sparse"), ("distributions", "torch.distributions", "weft.distributions"),
    ("amp", "torch.amp", "weft.amp"), ("compiler", "torch.compiler", "weft.compiler"), ("export", "torch.export", "weft.export"),
    ("library", "torch.library", "weft.library"), ("profiler", "torch.profiler", "weft.profiler"),
    ("checkpoint", "torch.utils.checkpoint", "weft.utils.checkpoint"), ("distributed", "torch.distributed", "weft.distributed"),
    ("cuda", "torch.cuda", "weft.cuda"), ("testing", "torch.testing", "weft.testing"),
    ("io", "weft.io", "weft.io"), ("viz", "weft.viz", "weft.viz"), ("compat", "weft.compat", "weft.compat"),
)  # fmt: skip
_FIRST_IN_SEARCHES = (
    "---\nsearch:\n  boost: 4\n---\n"  # before the tables of performance, which have many names
)
_WIDTH = 84  # characters; longer signatures have a line for each parameter
_SECTIONS = (
    "Args",
    "Returns",
    "Raises",
    "Yields",
    "Shapes",
    "Shape",
    "Units",
    "Source",
    "Attributes",
    "Example",
    "Examples",
    "Note",
)


def pages() -> list[tuple[str, str, str]]:
    """The name of the file, the title and the Markdown of each page."""
    import weft

    found = [
        (name, title, _FIRST_IN_SEARCHES + _module_page(title, module)) for name, title, module in MODULES
    ]
    found.insert(1, ("tensor", "torch.Tensor", _FIRST_IN_SEARCHES + _class_page("torch.Tensor", weft.Tensor)))
    listing = "\n".join(f"- [{title}]({name}.md)" for name, title, _ in found)
    start = f"# Reference\n\nPublic names, as `import weft as torch` gives them. Names that weft alone has begin with weft.\n\n{listing}\n"
    return [("index", "Overview", start), *found]


def _module_page(title: str, module_name: str) -> str:
    module = importlib.import_module(module_name)
    parts = [f"# {title}\n", markdown(inspect.getdoc(module) or "")]
    seen: set[int] = set()
    for name in sorted(_public(module), key=str.lower):
        value = getattr(module, name)
        if id(value) not in seen:  # aliases have the page of the first name
            seen.add(id(value))
            parts.append(_entry(f"{title}.{name}", value))
    return "\n".join(parts)


def _class_page(title: str, cls: type) -> str:
    parts = [f"# {title}\n", markdown(inspect.getdoc(cls) or "")]
    for name in sorted(dir(cls)):
        if not name.startswith("_") and (member := inspect.getattr_static(cls, name, None)) is not None:
            parts.append(_entry(f"Tensor.{name}", getattr(cls, name, member)))
    return "\n".join(parts)


def _public(module: Any) -> Iterator[str]:
    """The functions and classes of a module, without those that it only imports."""
    listed = getattr(module, "__all__", ())
    for name in listed or dir(module):
        value = getattr(module, name, None)
        if not name.startswith("_") and (inspect.isroutine(value) or inspect.isclass(value)):
            home = getattr(value, "__module__", "")  # "weft" for functions that the root has, too
            if name in listed or home == "weft" or f"{home}.".startswith(f"{module.__name__}."):
                yield name


def _entry(title: str, value: Any) -> str:
    """The section of one function, class, method or property."""
    parts = [f"## `{title}`\n"]
    if signature := _signature(title, value):
        parts.append(f"```python\n{signature}\n```\n")
    parts.append(markdown(_documentation(value)))
    return "\n".join(parts)


def _documentation(value: Any) -> str:
    if isinstance(value, property):
        return inspect.getdoc(value.fget) or ""
    return inspect.getdoc(value) or ""


def _signature(title: str, value: Any) -> str:
    if not callable(value):
        return ""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    name = title.rpartition(".")[2]
    text = re.sub(r"(?<=: |> )'([^']+)'", r"\1", text)  # annotations that Python keeps as text
    if len(name) + len(text) <= _WIDTH:
        return name + text
    parameters, _, result = text[1:].rpartition(")")
    lines = "".join(f"    {each.strip()},\n" for each in _split(parameters))
    return f"{name}(\n{lines}){result}"


def _split(parameters: str) -> list[str]:
    """The parts between the commas that are in no bracket."""
    parts, depth = [""], 0
    for character in parameters:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def markdown(docstring: str) -> str:
    """A docstring as Markdown: sessions in fences, sections with lists."""
    lines: list[str] = []
    block = ""  # "", "session" or the name of a section
    for line in docstring.splitlines():
        text = line.strip()
        if block == "session":
            if text:
                lines.append(line.strip() if line.startswith("    >>>") else line)
                continue
            lines.append("```")
            block = ""
        if text.startswith(">>>"):
            lines += ["", "```pycon", text] if lines and lines[-1] else ["```pycon", text]
            block = "session"
        elif match := re.fullmatch(rf"({'|'.join(_SECTIONS)}):(.*)", line):
            lines += ["", f"**{match[1]}**{':' + match[2] if match[2] else ''}", ""]
            block = match[1]
        elif block and line.startswith("    ") and text:
            lines = _with_item(lines, line, text)
        else:
            block = block if not text else ""
            lines.append(line)
    if block == "session":
        lines.append("```")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def _with_item(lines: list[str], line: str, text: str) -> list[str]:
    """The lines with one more of a section: an item of its list, or the rest of the item before."""
    item = re.match(r"    (\*{0,2}[\w, *]+): (.*)", line)
    if item and not line.startswith("     "):
        return [*lines, f"- `{item[1]}`: {item[2]}"]
    if lines[-1].startswith("- "):
        return [*lines[:-1], f"{lines[-1]} {text}"]
    return [*lines, text]
