"""Losses: how far predictions are from targets. One file per kind."""

from . import classes, ctc, margins, probabilities, regression, triplets  # noqa: F401 (they register their functions)
