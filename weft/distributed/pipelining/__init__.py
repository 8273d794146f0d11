"""`torch.distributed.pipelining`: the layers of a model lie on several ranks, which compute parts of a batch at the same time."""

from ...compat.missing import package_names

__all__, __getattr__ = package_names(
    __name__,
    {
        "_pipe": "Pipe SplitPoint pipe_split pipeline",
        "microbatch": "",
        "schedules": "Schedule1F1B ScheduleDualPipeV ScheduleGPipe ScheduleInterleaved1F1B ScheduleInterleavedZeroBubble "
        "ScheduleLoopedBFS ScheduleZBVZeroBubble",
        "stage": "PipelineStage build_stage",
    },
)
