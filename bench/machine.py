"""What the numbers depend on besides the code: the processor, the versions, and what else ran."""

import os
import platform
import re
import shutil
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench import levels
from bench.rounds import ROOT

# Vector extensions by Linux's names, in the order in which they appeared.
VECTORS = (
    "avx2 fma f16c avx512f avx512bw avx512dq avx512vl avx512_vnni avx512_bf16 avx512_fp16 amx_tile amx_bf16 amx_int8 "
    "asimd asimdhp bf16 sve sve2"
).split()


def describe() -> dict[str, Any]:
    import llvmlite.binding

    facts = cpu_facts()
    return {
        "processor": facts.get("model name", platform.processor() or platform.machine()),
        "model": f"{llvmlite.binding.get_host_cpu_name()}, family {facts.get('cpu family', '?')}, model {facts.get('model', '?')}",
        "vectors": [
            name for name in VECTORS if name in facts.get("flags", facts.get("Features", "")).split()
        ],
        "level": levels.level(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cache": facts.get("cache size", ""),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "versions": {"python": platform.python_version(), **versions()},
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
        "load": os.getloadavg()[0],
    }


def slug(machine: dict[str, Any]) -> str:
    """A file name for the numbers of this processor, or of one level of it."""
    name = f"{machine['processor']} {machine['model'].split(',')[0]} {machine.get('level', '')}"
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def cpu_facts() -> dict[str, str]:
    """What the system says of its first processor."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return {}
    pairs = (line.partition(":") for line in info.read_text().partition("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def versions() -> dict[str, str]:
    found = {}
    for name in ("torch", "numpy", "scipy", "llvmlite", "jax"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            pass
    return found


def commit() -> str:
    """The commit that is checked out; empty outside of a clone, or where git is not installed."""
    if shutil.which("git") is None:
        return ""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
