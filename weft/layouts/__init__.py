"""Layouts: tensors that store other things than their elements at strides."""
