"""Passes for graphs of particular kinds of operations."""
