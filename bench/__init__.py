"""weft beside PyTorch and NumPy: `python -m bench` (see README.md)."""
