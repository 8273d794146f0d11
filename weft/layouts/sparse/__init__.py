"""Sparse tensors: the layouts that store only some elements, and where they are."""
