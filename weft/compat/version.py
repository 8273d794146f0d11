"""The type of `torch.__version__`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any

from .missing import module_getattr as _module_getattr

__all__ = ["TorchVersion"]


class TorchVersion(str):
    """A version as a string that compares with versions: strings, tuples of numbers, `packaging.version.Version`.

    A string that is no version is compared as a string. As in PyTorch, `!=` compares the strings.

    >>> TorchVersion("2.13.0") > "2.2", TorchVersion("2.13.0") >= (2, 13), TorchVersion("2.13.0") == "2.13"
    (True, True, True)
    """

    __slots__ = ()

    def _compared(self, other: Any, method: str) -> Any:
        mine, its = _key(str(self)), _key(_text(other))
        if mine is None or its is None:
            return getattr(str, method)(self, other)
        return getattr(tuple, method)(mine, its)

    def __eq__(self, other: object) -> bool:
        return self._compared(other, "__eq__")

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, "__lt__")

    def __le__(self, other: Any) -> bool:
        return self._compared(other, "__le__")

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, "__gt__")

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, "__ge__")

    __hash__ = str.__hash__


def _text(version: Any) -> str:
    """A version that is given as a string, a tuple or an object with `public`."""
    if isinstance(version, str):
        return version
    if isinstance(version, Iterable):
        return ".".join(str(each) for each in version)
    return str(version)


@functools.cache
def _version() -> re.Pattern:
    # Compiled when first needed: `import weft` makes a TorchVersion.
    return re.compile(
        r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
        r"(?:[-_.]?(?P<pre>alpha|beta|preview|pre|a|b|c|rc)[-_.]?(?P<pre_number>\d*))?"
        r"(?:(?:-(?P<post_implicit>\d+))|(?:[-_.]?(?:post|rev|r)[-_.]?(?P<post>\d*)))?"
        r"(?:[-_.]?dev[-_.]?(?P<dev>\d*))?(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?"
    )


_PRE = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


def _key(text: str) -> tuple | None:
    """What versions are ordered by (PEP 440); None for text that is no version."""
    match = _version().fullmatch(text.strip().lower())
    if match is None:
        return None
    release = [int(part) for part in match["release"].split(".")]
    while release and release[-1] == 0:
        release.pop()
    pre = (1, "", 0)  # behind all pre-releases
    if match["pre"]:
        pre = (0, _PRE.get(match["pre"], match["pre"]), int(match["pre_number"] or 0))
    post_text = match["post_implicit"] if match["post_implicit"] is not None else match["post"]
    post = -1 if post_text is None else int(post_text or 0)
    dev = (1, 0) if match["dev"] is None else (0, int(match["dev"] or 0))
    if match["pre"] is None and post_text is None and match["dev"] is not None:
        pre = (-1, "", 0)  # a development version of a release comes before its pre-releases
    local = [] if match["local"] is None else re.split("[-_.]", match["local"])
    return (
        int(match["epoch"] or 0),
        tuple(release),
        pre,
        post,
        dev,
        tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in local),
    )


# Scripts compare with PyTorch's version.
PYTORCH = TorchVersion("2.13.0+weft")
# The version of weft itself, by https://semver.org. pyproject.toml has it, too.
WEFT = "0.1.0"

__getattr__ = _module_getattr(__name__)
