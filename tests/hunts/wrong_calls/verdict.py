"""Whether weft did what PyTorch did, and which differences are accepted."""

from __future__ import annotations

import fnmatch
from typing import Any, NamedTuple

import numpy as np

from .accepted import ABSENT, ACCEPTED, UNDEFINED_VALUES
from .calls import Array, Call, Outcome, numpy_dtype

# Relative and absolute; wide, because this hunt is about arguments and not about last bits.
TOLERANCE = {
    "float16": (2e-2, 1e-2), "bfloat16": (1e-1, 5e-2), "float32": (1e-3, 1e-4), "float64": (1e-6, 1e-8),
    "complex64": (1e-3, 1e-4), "complex128": (1e-6, 1e-8),
}  # fmt: skip


class Finding(NamedTuple):
    """A difference between the libraries."""

    kind: str  # "crash", "hang", "internal", "type", "refused", "allowed", "value"
    call: Call
    text: str


def judge(call: Call, wanted: Outcome, got: Outcome) -> Finding | None:
    """How weft's outcome differs from PyTorch's, None if it does not or the difference is accepted."""
    if any(fnmatch.fnmatchcase(call.path, pattern) for pattern in ABSENT):
        return None
    found = _difference(call, wanted, got)
    if found is None or found.kind not in ("crash", "hang") and _accepted(found, wanted, got):
        return None
    return found


def _difference(call: Call, wanted: Outcome, got: Outcome) -> Finding | None:
    if got.kind in ("crashed", "hung"):
        if got.kind == "hung" and wanted.kind == "hung":
            return None
        return Finding("crash" if got.kind == "crashed" else "hang", call, got.message)
    if wanted.kind in ("crashed", "hung", "harness"):  # nothing to compare with
        return Finding("internal", call, _said(got)) if got.internal and wanted.kind != "harness" else None
    if got.kind == "harness":
        return Finding("harness", call, got.message)
    theirs, mine = wanted.kind != "value", got.kind != "value"
    if theirs and mine:
        # A check of the same type may still say what only the inside of weft can know.
        inside = got.internal and not (wanted.internal and wanted.error == got.error)
        if got.error != wanted.error or inside:
            kind = "internal" if inside else "type"
            return Finding(kind, call, f"{_said(got)}\n    instead of {_said(wanted)}")
        return None
    if mine:
        kind = "internal" if got.internal else "refused"
        return Finding(kind, call, f"{_said(got)}\n    where PyTorch gives {_short(wanted.value)}")
    if theirs:
        return Finding("allowed", call, f"{_short(got.value)}\n    where PyTorch: {_said(wanted)}")
    if any(fnmatch.fnmatchcase(call.path, pattern) for pattern in UNDEFINED_VALUES):
        return None
    for what in ("value", "after", "grads"):
        difference = _differs(getattr(got, what), getattr(wanted, what))
        if difference:
            return Finding("value", call, f"{what}: {difference}")
    return None


def _accepted(finding: Finding, wanted: Outcome, got: Outcome) -> bool:
    for each in ACCEPTED:
        if (
            finding.kind in each.kinds.split()
            and any(fnmatch.fnmatchcase(finding.call.path, path) for path in each.paths.split())
            and each.torch in _said(wanted)
            and each.weft in f"{_said(got)} {finding.text}"
            and each.change in finding.call.change
            and (not each.empty or _has_empty((finding.call.args, finding.call.kwargs, finding.call.inputs)))
        ):
            return True
    return False


def _has_empty(value: Any) -> bool:
    """Whether there is a tensor without elements in a structure of arguments."""
    if isinstance(value, Array):
        return 0 in value.shape
    if isinstance(value, dict):
        value = value.values()
    return not isinstance(value, str) and hasattr(value, "__iter__") and any(map(_has_empty, value))


def _said(outcome: Outcome) -> str:
    where = "" if outcome.kind == "raised" else f"in {outcome.kind}: "
    return f"{where}{outcome.error}: {outcome.message}"


def _short(value: Any) -> str:
    return repr(value)[:300]


def _differs(got: Any, wanted: Any) -> str:
    if isinstance(wanted, Array):
        return _arrays_differ(got, wanted)
    if isinstance(wanted, list):
        if not isinstance(got, list) or len(got) != len(wanted):
            return f"{_short(got)} instead of {_short(wanted)}"
        return next(filter(None, map(_differs, got, wanted)), "")
    if isinstance(wanted, float) and isinstance(got, float):
        return "" if np.isclose(got, wanted, 1e-3, 1e-4, equal_nan=True) else f"{got} instead of {wanted}"
    if isinstance(wanted, dict) and isinstance(got, dict):
        return _differs(list(got.values()), list(wanted.values()))
    return "" if type(got) is type(wanted) and got == wanted else f"{_short(got)} instead of {_short(wanted)}"


def _arrays_differ(got: Any, wanted: Array) -> str:
    if not isinstance(got, Array):
        return f"{_short(got)} instead of {_short(wanted)}"
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return f"{got.dtype}{list(got.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    if got.data == wanted.data or not got.data or not wanted.data:
        return ""
    a, b = (_wide(each) for each in (got, wanted))
    rtol, atol = TOLERANCE.get(wanted.dtype, (0, 0))
    with np.errstate(all="ignore"):
        close = np.isclose(a, b, rtol, atol, equal_nan=True)
    if close.all():
        return ""
    at = tuple(int(k[0]) for k in np.nonzero(~close)) if close.shape else ()
    return f"{(~close).sum()} of {close.size} elements, at {at}: {a[at]} instead of {b[at]}"


def _wide(array: Array) -> np.ndarray:
    values = array.values()
    if array.dtype == "complex32":
        return values["real"].astype(np.float64) + 1j * values["imag"].astype(np.float64)
    return values.astype(np.float64) if numpy_dtype(array.dtype).itemsize < 4 else values
