"""The table of `memory_summary`, with PyTorch's layout. It has the rows that the allocator knows."""

from __future__ import annotations

from collections.abc import Mapping

_WIDTH = 75
_ROWS = (
    ("allocated_bytes", "Allocated memory"),
    ("active_bytes", "Active memory"),
    ("reserved_bytes", "GPU reserved memory"),
    ("allocation", "Allocations"),
    ("active", "Active allocs"),
    ("segment", "GPU reserved segments"),
)
_PARTS = [("large_pool", "      from large pool"), ("small_pool", "      from small pool")]
_COLUMNS = ("current", "peak", "allocated", "freed")


def table(stats: Mapping[str, int], type: str, index: int, abbreviated: bool) -> str:
    """The numbers of `memory_stats` of a device as text to print, without those of small and large blocks if it is abbreviated."""
    thick, thin = "=" * _WIDTH, "-" * _WIDTH
    ooms, retries = stats.get("num_ooms", 0), stats.get("num_alloc_retries", 0)
    lines = [
        thick,
        f"weft {type.upper()} memory summary, device ID {index}".center(_WIDTH),
        thin,
        f"{f'{type.upper()} OOMs: {ooms}':^36}|{f'retries after freeing blocks: {retries}':^38}",
        thick,
        "        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ",
    ]
    for name, title in _ROWS:
        lines.append(thin)
        for part, head in [("all", f"{title:<21}"), *([] if abbreviated else _PARTS)]:
            cells = [_cell(stats.get(f"{name}.{part}.{which}", 0), "bytes" in name) for which in _COLUMNS]
            lines.append(f" {head} | " + " | ".join(cells) + " ")
    return "\n".join(f"|{line}|" for line in [*lines, thick]) + "\n"


def _cell(value: int, is_bytes: bool) -> str:
    units, factor = (("B  ", "KiB", "MiB", "GiB", "TiB"), 1024) if is_bytes else ((" ", "K", "M"), 1000)
    place = 0
    while value >= 750 * factor and place < len(units) - 1:
        value //= factor
        place += 1
    return f"{value:6d} {units[place]}" if is_bytes else f"{value:7d} {units[place]} "
