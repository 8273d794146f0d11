"""What other libraries need to work on tensors of weft."""
