"""`torch.distributed.algorithms.model_averaging.utils`: averages of parameters over the ranks of a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ....autograd.parameter import Parameter
from ....core.grad_mode import no_grad
from ....core.tensor import Tensor
from ....ops.assembly.joining import cat
from ..._collectives import all_reduce
from ..._group import ProcessGroup
from ..._world import _group_or_default_group, _rank_not_in_group

__all__ = ["average_parameters", "get_params_to_average", "average_parameters_or_parameter_groups"]


@no_grad()
def average_parameters(params: Iterable[Tensor], process_group: ProcessGroup | None) -> None:
    """Let parameters be the averages over the ranks of a group, which one message sums up. A rank outside of the group keeps its own."""
    group = _group_or_default_group(process_group)
    if _rank_not_in_group(group):
        return
    given = [each.detach() for each in params]
    row = cat([each.reshape(-1) for each in given])
    row /= group.size()
    all_reduce(row, group=group)
    for each, average in zip(given, row.split([each.numel() for each in given])):
        each.copy_(average.view(each.shape))


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """Those parameters of a model, or of the groups of an optimizer, that have gradients.

    Raises: NotImplementedError for anything else.
    """
    found: list[Any] = []
    for each in params:
        if isinstance(each, dict):
            found += each["params"]
        elif isinstance(each, Parameter):
            found.append(each)
        else:
            raise NotImplementedError(f"Parameter input of type {type(each)} is not supported")
    return [each for each in found if each.grad is not None]


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: ProcessGroup | None) -> None:
    """Average the parameters of a model, or of the groups of an optimizer, that have gradients.

    >>> import weft as torch
    >>> from weft.distributed.algorithms.model_averaging import utils
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x, unused = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    >>> x.sum().backward()
    >>> utils.average_parameters_or_parameter_groups([x, unused], dist.group.WORLD)
    >>> x
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    >>> dist.destroy_process_group()
    """
    average_parameters(get_params_to_average(params), process_group)
