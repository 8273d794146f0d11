"""Engines, which carry the collectives of a group out.

`engine.py` is the interface. `alone.py` is the engine of a group of one process, `shared_memory.py` the one of several processes of
a machine, `mpi.py` the one of processes that mpiexec has started. ProcessGroupGloo checks what programs ask for, and hands contiguous tensors to an engine.
"""
