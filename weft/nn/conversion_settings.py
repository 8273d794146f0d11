"""Settings that programs choose before they become PyTorch's defaults: what converting a module does to its parameters.

`Module.to`, `Module.float` and the like, and `Module.to_empty` normally keep the object of a parameter and exchange its data.
"""

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether a conversion makes new parameters, so that the old ones keep their values.

    >>> import weft as torch
    >>> torch.__future__.set_overwrite_module_params_on_conversion(True)
    >>> layer = torch.nn.Linear(1, 1)
    >>> before = layer.weight
    >>> layer.double().weight is before, before.dtype
    (False, torch.float32)
    >>> torch.__future__.set_overwrite_module_params_on_conversion(False)
    """
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What `set_overwrite_module_params_on_conversion` was given last; False at first."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Set whether a conversion swaps each parameter with its result by `torch.utils.swap_tensors`.

    Then `load_state_dict`, too, swaps each tensor with what its method `module_load` makes of the loaded one. This setting
    goes before `set_overwrite_module_params_on_conversion`.
    """
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """What `set_swap_module_params_on_conversion` was given last; False at first."""
    return _swap_module_params_on_conversion
