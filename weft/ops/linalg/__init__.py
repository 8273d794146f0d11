"""Matrix products, factorizations and systems of equations."""
