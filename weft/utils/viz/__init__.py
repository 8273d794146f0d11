"""Pictures of memory. weft has none of them."""
