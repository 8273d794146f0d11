"""Batching rules: how an operation on samples becomes one operation on a batch. `weft.func.vmap` stands on it.

Within `vmap` a sample is a `BatchedTensor` (`core/batched.py`): its shape is that of one sample, its memory that of the
batch. `opening.py` opens a level, which is one call of `vmap`, `rules.py` finds the rule of an op and calls it. The
rules are in one file per family of ops; `families.py` imports them.
"""
