"""Tools around modules."""

from . import rnn

__all__ = ["rnn"]
