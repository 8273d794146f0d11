"""Operators of compiled extensions of PyTorch, written for weft.

`torch.ops.load_library` registers them when a program asks for the library that has them: `weft/library/registry/libraries.py` says which
module has the operators of which library.
"""
