"""Passes as objects, and what carries out a number of them."""
