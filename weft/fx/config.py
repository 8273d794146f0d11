"""Switches of `torch.fx`."""

# Whether passes show no bar of progress.
disable_progress = True

# Whether a bar of progress, where one is shown, also names each node.
verbose_progress = False

# Whether printed code leaves out the lines of the program that a node comes from.
do_not_emit_stack_traces = False
