"""Defines the operations of `torch.nn.functional`: layers, losses, attention, pooling, recurrent networks."""
