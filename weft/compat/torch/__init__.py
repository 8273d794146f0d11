"""PyTorch's private and legacy modules. Each file is found under PyTorch's name: `weft._C`, `weft.fft` (weft/compat/served.py).

They give PyTorch's names to what other folders of weft do, so they import from all of these, and none imports from here.
"""
