"""Computes matrix products, factorizations and systems of equations."""
