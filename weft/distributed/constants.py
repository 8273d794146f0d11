"""`torch.distributed.constants`: the timeouts that groups start with."""

from datetime import timedelta

default_pg_timeout: timedelta = timedelta(minutes=30)
default_pg_nccl_timeout: timedelta | None = None  # there is no NCCL

__all__ = ["default_pg_timeout"]
