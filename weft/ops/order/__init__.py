"""Sorts and searches."""
