"""Computes Fourier transforms, numerical gradients and integrals."""
