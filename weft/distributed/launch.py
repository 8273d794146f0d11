"""`torch.distributed.launch`: as torchrun, but processes get the argument --local-rank unless --use-env is given."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from . import run


def main(args: Sequence[str] | None = None) -> None:
    """The command."""
    given = list(sys.argv[1:] if args is None else args)
    by_environment = [each for each in given if each in ("--use-env", "--use_env")]
    run.main([each for each in given if each not in by_environment], tell_rank=not by_environment)


if __name__ == "__main__":
    main()
