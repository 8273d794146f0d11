"""What the inputs and outputs of an exported graph are: parameters, buffers, constants, or the user's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from enum import Enum, auto
from typing import Any

__all__ = [
    "ConstantArgument", "CustomObjArgument", "ExportBackwardSignature", "ExportGraphSignature", "InputKind",
    "InputSpec", "OutputKind", "OutputSpec", "SymBoolArgument", "SymFloatArgument", "SymIntArgument",
    "TensorArgument", "TokenArgument",
]  # fmt: skip


@dataclasses.dataclass
class TensorArgument:
    """A tensor: the name of its node."""

    name: str


@dataclasses.dataclass
class TokenArgument:
    """A token that orders effects."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A size: the name of its node."""

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A float that the graph computes: the name of its node."""

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A bool that the graph computes: the name of its node."""

    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """An object of a class of the user's."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclasses.dataclass
class ConstantArgument:
    """A value that is the same in every call."""

    name: str
    value: Any


ArgumentSpec = (
    TensorArgument
    | SymIntArgument
    | SymFloatArgument
    | SymBoolArgument
    | ConstantArgument
    | CustomObjArgument
    | TokenArgument
)


class InputKind(Enum):
    """What a placeholder of the graph stands for."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


@dataclasses.dataclass
class InputSpec:
    """A placeholder: its kind, its node, and for parameters, buffers and constants their name in the module."""

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind == InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


class OutputKind(Enum):
    """What a result of the graph is."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclasses.dataclass
class OutputSpec:
    """A result: its kind, its node, and what is to be overwritten with it, if it is a mutation."""

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclasses.dataclass
class ExportBackwardSignature:
    """Which results are gradients, by the names of what they are gradients of."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclasses.dataclass
class ExportGraphSignature:
    """The inputs and outputs of a graph, in the order of its placeholders and results."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple(
            each.target for each in self.input_specs if each.kind == kind and each.target is not None
        )

    def _inputs_to(self, kind: InputKind) -> Mapping[str, str]:
        return {
            each.arg.name: each.target
            for each in self.input_specs
            if each.kind == kind and each.target is not None
        }

    @property
    def parameters(self) -> Collection[str]:
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> Collection[str]:
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> Collection[str]:
        return tuple(each.target for each in self.input_specs if each.persistent is False)  # type: ignore[misc]

    @property
    def lifted_tensor_constants(self) -> Collection[str]:
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self) -> Collection[str]:
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self) -> Collection[Any]:
        return tuple(_user_value(each.arg) for each in self.input_specs if each.kind == InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> Collection[Any]:
        kinds = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        return tuple(_user_value(each.arg) for each in self.output_specs if each.kind in kinds)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        return self._inputs_to(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        return self._inputs_to(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        return self._inputs_to(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> Mapping[str, str]:
        return self._inputs_to(InputKind.CUSTOM_OBJ)

    def _mutations(self, kind: OutputKind) -> Mapping[str, str]:
        return {
            each.arg.name: each.target
            for each in self.output_specs
            if each.kind == kind and each.target is not None
        }

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        return self._mutations(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        return self._mutations(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        return self._mutations(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        return None

    @property
    def assertion_dep_token(self) -> Mapping[int, str] | None:
        return None

    @property
    def input_tokens(self) -> Collection[str]:
        return tuple(each.arg.name for each in self.input_specs if each.kind == InputKind.TOKEN)

    @property
    def output_tokens(self) -> Collection[str]:
        return tuple(each.arg.name for each in self.output_specs if each.kind == OutputKind.TOKEN)

    def replace_all_uses(self, old: str, new: str) -> None:
        """Rename a node in all specs."""
        if not isinstance(old, str) or not isinstance(new, str):
            raise AssertionError(f"names are strings, not {type(old).__name__} and {type(new).__name__}")
        specs: list[InputSpec | OutputSpec] = [*self.input_specs, *self.output_specs]
        for each in specs:
            if not isinstance(each.arg, ConstantArgument) and each.arg.name == old:
                each.arg.name = new

    def get_replace_hook(self, replace_inputs: bool = False) -> Any:
        """A hook for `graph_module._set_replace_hook` that keeps the specs right."""

        def hook(old: Any, new: str, user: Any) -> None:
            if user.op == "output":
                self.replace_all_uses(old.name, new)

        return hook

    def __str__(self) -> str:
        inputs = "\n".join(str(each) for each in self.input_specs)
        outputs = "\n".join(str(each) for each in self.output_specs)
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"


def _user_value(arg: ArgumentSpec) -> Any:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name
