"""`weft tour`: pages about tensors in the browser, with cells that run on this machine."""

from __future__ import annotations

import argparse
import webbrowser
from collections.abc import Sequence

from .server import Tour


def main(arguments: Sequence[str]) -> int:
    """Serve the tour until Ctrl-C, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="weft tour",
        description="An introduction to tensors in the browser. Its cells run on this machine.",
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument(
        "--port", type=int, default=0, help="the port on 127.0.0.1; by default one that is free"
    )
    chosen = parser.parse_args(arguments)
    if not 0 <= chosen.port < 65536:
        parser.error(f"--port must be from 0 to 65535, not {chosen.port}")
    try:
        tour = Tour(chosen.port)
    except OSError as error:
        parser.error(
            f"port {chosen.port} cannot be used: {error.strerror}. Another --port, or none, may help"
        )
    print(
        f"The tour is at\n\n    {tour.address}\n\nOnly this address, with its token, is answered. Ctrl-C ends the tour.",
        flush=True,
    )
    if not chosen.no_browser:
        webbrowser.open(tour.address)
    try:
        tour.serve_forever()
    except KeyboardInterrupt:
        print()
    finally:
        tour.server_close()
    return 0
