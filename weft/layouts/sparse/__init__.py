"""Sparse tensors: coordinates (COO), and the compressed layouts CSR, CSC, BSR and BSC."""
