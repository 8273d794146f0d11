"""`python -m bench.new_sizes weft training 1 0.1`: one program of this folder, its sizes, and the share of a full run.

Prints what it measured as JSON.
"""

import json
import sys
from dataclasses import asdict

from bench.new_sizes.programs import PROGRAMS
from bench.new_sizes.setting import Setting
from bench.worker import keep_freed_memory, namespace


def main(implementation: str, program: str, part: str, share: str) -> None:
    if program != "memory":
        keep_freed_memory()
    names = namespace(implementation)
    setting = Setting(names["torch"], int(part), float(share), names.get("look", lambda value: None))
    print(json.dumps(asdict(PROGRAMS[program](setting))))


if __name__ == "__main__":
    main(*sys.argv[1:])
