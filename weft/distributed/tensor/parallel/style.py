"""How one layer of a model is cut: the entries of plans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NoReturn

from ....autograd.parameter import Parameter
from ....core.tensor import Tensor
from ....nn.module import Module
from ....nn.modules import Embedding, Linear
from ...device_mesh import DeviceMesh
from .._api import DTensor, distribute_module, distribute_tensor
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


class _Style(ParallelStyle):
    """A style that shows its arguments."""

    _shown: tuple[str, ...] = ()  # the attributes that its repr shows

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)
        return f"{type(self).__name__}({shown})"


class _Layer(_Style):
    """A style that cuts the parameters of a layer with one input and one output."""

    input_layouts: tuple[Placement, ...]
    output_layouts: tuple[Placement, ...]
    use_local_output: bool

    def _parameters(self, module: Module) -> dict[str, Placement]:
        """How the parameters lie. Raises: NotImplementedError for layers of other types than PyTorch takes."""
        raise NotImplementedError

    def _wanted_input(self, module: Module) -> Placement:
        """How the input has to lie."""
        raise NotImplementedError

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        places, wanted = self._parameters(module), self._wanted_input(module)

        def cut(name: str, layer: Module, mesh: DeviceMesh) -> None:
            for key, parameter in list(layer._parameters.items()):
                if parameter is not None:
                    made = distribute_tensor(
                        parameter.data, mesh, [places[key]], src_data_rank=self.src_data_rank
                    )
                    layer.register_parameter(key, Parameter(made, requires_grad=parameter.requires_grad))

        def prepare(layer: Module, inputs: tuple[Any, ...], mesh: DeviceMesh) -> Any:
            return _laid_out(inputs[0], mesh, self.input_layouts[0], wanted), *inputs[1:]

        def finish(layer: Module, output: Any, mesh: DeviceMesh) -> Any:
            made = output.redistribute(placements=self.output_layouts)
            return made.to_local() if self.use_local_output else made

        return distribute_module(module, device_mesh, cut, prepare, finish)


def _laid_out(value: Any, mesh: DeviceMesh, now: Placement | None, wanted: Placement | None) -> Any:
    """A DTensor with the placement `wanted` from a part that lies as `now` says; anything else as it is."""
    if now is None or not isinstance(value, Tensor):
        return value
    made = value if isinstance(value, DTensor) else DTensor.from_local(value, mesh, [now])
    return made if wanted is None or made.placements == (wanted,) else made.redistribute(placements=[wanted])


def _refuse(style: ParallelStyle, module: Module) -> NoReturn:
    raise NotImplementedError(
        f"{type(style).__name__} currently only support nn.Linear and nn.Embedding, not {type(module).__name__}"
    )


_INPUT_AND_OUTPUT = ("input_layouts", "output_layouts", "use_local_output")


class ColwiseParallel(_Layer):
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

    def _parameters(self, module: Module) -> dict[str, Placement]:
        if isinstance(module, Linear):
            return {"weight": Shard(0), "bias": Shard(0)}
        return {"weight": Shard(1)} if isinstance(module, Embedding) else _refuse(self, module)

    def _wanted_input(self, module: Module) -> Placement:
        return Replicate()


class RowwiseParallel(_Layer):
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

    def _parameters(self, module: Module) -> dict[str, Placement]:
        if isinstance(module, Linear):
            return {"weight": Shard(1), "bias": Replicate()}
        return {"weight": Shard(0)} if isinstance(module, Embedding) else _refuse(self, module)

    def _wanted_input(self, module: Module) -> Placement:
        return Shard(-1) if isinstance(module, Linear) else Replicate()


class SequenceParallel(_Style):
    """The weights are whole on each process, and the inputs cut along the dimension of the sequence."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        super().__init__()
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        (wanted,) = self.sequence_sharding

        def prepare(layer: Module, inputs: tuple[Any, ...], mesh: DeviceMesh) -> Any:
            return _laid_out(inputs[0], mesh, wanted, wanted), *inputs[1:]

        def finish(layer: Module, output: Any, mesh: DeviceMesh) -> Any:
            return output.to_local() if self.use_local_output else output

        return distribute_module(module, device_mesh, None, prepare, finish)

    def __repr__(self) -> str:
        dim = self.sequence_sharding[0].dim
        return f"SequenceParallel(sequence_dim={dim}, use_local_output={self.use_local_output})"


class PrepareModuleInput(_Style):
    """The inputs of a module are laid out anew before it runs.

    Raises: AssertionError if the numbers of layouts and of wanted layouts differ.
    """

    _shown = (
        *("input_layouts", "desired_input_layouts", "input_kwarg_layouts"),
        *("desired_input_kwarg_layouts", "use_local_output"),
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

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def prepare(layer: Module, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if self.input_layouts is not None:
                wanted = self.desired_input_layouts or ()
                if len(inputs) != len(self.input_layouts):
                    raise ValueError("module inputs and input_layouts should have same length!")
                inputs = tuple(
                    self._one(each, device_mesh, *pair)
                    for each, *pair in zip(inputs, self.input_layouts, wanted, strict=True)
                )
            changed = {
                name: self._one(kwargs[name], device_mesh, place, self.desired_input_kwarg_layouts.get(name))
                for name, place in self.input_kwarg_layouts.items()
                if name in kwargs
            }
            return inputs, {**kwargs, **changed}

        module.register_forward_pre_hook(prepare, with_kwargs=True)
        return module

    def _one(self, value: Any, mesh: DeviceMesh, now: Placement | None, wanted: Placement | None) -> Any:
        made = _laid_out(value, mesh, now, wanted)
        return made.to_local() if self.use_local_output and isinstance(made, DTensor) else made


class PrepareModuleOutput(_Style):
    """The outputs of a module are laid out anew after it ran.

    Raises: AssertionError if the numbers of layouts and of wanted layouts differ.
    """

    _shown = ("output_layouts", "desired_output_layouts", "use_local_output")

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

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def finish(layer: Module, inputs: tuple[Any, ...], outputs: Any) -> Any:
            several = isinstance(outputs, tuple)
            given = outputs if several else (outputs,)
            layouts, wanted = self.output_layouts or (), self.desired_output_layouts or ()
            if len(given) != len(layouts):
                raise ValueError("module outputs and output_layouts should have same length!")
            made = [
                _laid_out(each, device_mesh, *pair)
                for each, *pair in zip(given, layouts, wanted, strict=True)
            ]
            if self.use_local_output:
                made = [each.to_local() if isinstance(each, DTensor) else each for each in made]
            return tuple(made) if several else made[0]

        module.register_forward_hook(finish)
        return module


class PrepareModuleInputOutput(_Style):
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

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)

    def __repr__(self) -> str:
        first, second = self.prepare_module_input, self.prepare_module_output
        shown = [
            *((name, getattr(first, name)) for name in first._shown[:-1]),
            ("use_local_input", first.use_local_output),
            *((name, getattr(second, name)) for name in second._shown),
        ]
        return f"PrepareModuleInputOutput({', '.join(f'{name}={value}' for name, value in shown)})"


def _tuple(layouts: _Layouts) -> tuple[Placement | None, ...] | None:
    return (layouts,) if isinstance(layouts, Placement) else layouts
