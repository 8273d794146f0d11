"""How one layer of a model is cut: the entries of plans, which models carry as attributes whether or not they are cut."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ....compat.missing import module_getattr
from ..placement_types import Placement, Replicate, Shard

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
]

_Layouts = Placement | tuple[Placement | None, ...] | None


class ParallelStyle(ABC):
    """The base of all styles. `_apply(module, device_mesh)` cuts a module."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Any, device_mesh: Any) -> Any: ...


class _Declared(ParallelStyle):
    """A style of PyTorch's, which this version of weft can write into a plan, but not carry out."""

    _shown: tuple[
        tuple[str, str], ...
    ] = ()  # what its repr shows: a name, and the attribute that has the value

    def _apply(self, module: Any, device_mesh: Any) -> Any:
        raise NotImplementedError(
            f"torch.distributed.tensor.parallel.{type(self).__name__}: this version of weft runs in one process only, "
            "so that it cannot cut a module; leave the module whole"
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, attribute)}" for name, attribute in self._shown)
        return f"{type(self).__name__}({shown})"


_INPUT_AND_OUTPUT = tuple((name, name) for name in ("input_layouts", "output_layouts", "use_local_output"))


class ColwiseParallel(_Declared):
    """The rows of a layer's weight are cut, so that each process computes some of its outputs.

    >>> ColwiseParallel()
    ColwiseParallel(input_layouts=(Replicate(),), output_layouts=(Shard(dim=-1),), use_local_output=True)
    """

    _shown = _INPUT_AND_OUTPUT

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__()
        self.input_layouts = (input_layouts or Replicate(),)
        self.output_layouts = (output_layouts or Shard(-1),)
        self.desired_input_layouts = (Replicate(),)
        self.use_local_output = use_local_output


class RowwiseParallel(_Declared):
    """The columns of a layer's weight are cut, so that each process computes a summand of the outputs."""

    _shown = _INPUT_AND_OUTPUT

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__()
        self.input_layouts = (input_layouts or Shard(-1),)
        self.output_layouts = (output_layouts or Replicate(),)
        self.use_local_output = use_local_output


class SequenceParallel(_Declared):
    """The weights are whole on each process, and the inputs cut along the dimension of the sequence."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        super().__init__()
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def __repr__(self) -> str:
        dim = self.sequence_sharding[0].dim
        return f"SequenceParallel(sequence_dim={dim}, use_local_output={self.use_local_output})"


class PrepareModuleInput(_Declared):
    """The inputs of a module are laid out anew before it runs.

    Raises: AssertionError if the numbers of layouts and of wanted layouts differ.
    """

    _shown = tuple(
        (name, name)
        for name in (
            *("input_layouts", "desired_input_layouts", "input_kwarg_layouts"),
            *("desired_input_kwarg_layouts", "use_local_output"),
        )
    )

    def __init__(
        self,
        *,
        input_layouts: _Layouts = None,
        desired_input_layouts: _Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = _tuple(input_layouts)
        self.desired_input_layouts = _tuple(desired_input_layouts)
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.with_kwargs and len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError(
                "input_kwarg_layouts and desired_input_kwarg_layouts should have same length!"
            )


class PrepareModuleOutput(_Declared):
    """The outputs of a module are laid out anew after it ran.

    Raises: AssertionError if the numbers of layouts and of wanted layouts differ.
    """

    _shown = tuple((name, name) for name in ("output_layouts", "desired_output_layouts", "use_local_output"))

    def __init__(
        self,
        *,
        output_layouts: _Layouts,
        desired_output_layouts: Placement | tuple[Placement, ...],
        use_local_output: bool = True,
    ) -> None:
        self.output_layouts = _tuple(output_layouts)
        self.desired_output_layouts = _tuple(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts or ()) != len(self.desired_output_layouts or ()):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")


class PrepareModuleInputOutput(_Declared):
    """`PrepareModuleInput` and `PrepareModuleOutput` in one."""

    def __init__(
        self,
        *,
        input_layouts: _Layouts = None,
        desired_input_layouts: _Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: _Layouts,
        desired_output_layouts: Placement | tuple[Placement, ...],
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def __repr__(self) -> str:
        first, second = self.prepare_module_input, self.prepare_module_output
        shown = [
            *((name, getattr(first, attribute)) for name, attribute in first._shown[:-1]),
            ("use_local_input", first.use_local_output),
            *((name, getattr(second, attribute)) for name, attribute in second._shown),
        ]
        return f"PrepareModuleInputOutput({', '.join(f'{name}={value}' for name, value in shown)})"


def _tuple(layouts: _Layouts) -> tuple[Placement | None, ...] | None:
    return (layouts,) if isinstance(layouts, Placement) else layouts


__getattr__ = module_getattr(__name__)
