"""`torch.distributed.algorithms`: loops with uneven inputs, communication hooks, averages of models."""

from .join import Join, Joinable, JoinHook
