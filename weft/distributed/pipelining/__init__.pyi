# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from ._pipe import Pipe as Pipe
from .stage import PipelineStage as PipelineStage
from .schedules import Schedule1F1B as Schedule1F1B
from .schedules import ScheduleDualPipeV as ScheduleDualPipeV
from .schedules import ScheduleGPipe as ScheduleGPipe
from .schedules import ScheduleInterleaved1F1B as ScheduleInterleaved1F1B
from .schedules import ScheduleInterleavedZeroBubble as ScheduleInterleavedZeroBubble
from .schedules import ScheduleLoopedBFS as ScheduleLoopedBFS
from .schedules import ScheduleZBVZeroBubble as ScheduleZBVZeroBubble
from ._pipe import SplitPoint as SplitPoint
from .stage import build_stage as build_stage
from . import microbatch as microbatch
from ._pipe import pipe_split as pipe_split
from ._pipe import pipeline as pipeline
from . import schedules as schedules
from . import stage as stage
