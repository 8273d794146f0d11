"""Linear algebra on matrices whose rows lie on several processes: no process ever has a whole matrix.

Each file has a factorization, on parts, and the rule of the op that computes it. Gradients are the ops' own, which consist of products and
triangular systems, and so of the same functions.
"""

from . import cholesky, determinants, eigh, least_squares, lu, qr, svd, triangular  # noqa: F401 (they fill the table of rules)
