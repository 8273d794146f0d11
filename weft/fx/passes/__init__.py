"""Functions that look at graphs or change them."""
