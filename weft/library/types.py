"""The types of arguments in schemas: `torch._C.TensorType`, `ListType` and the others, and which Python values they take."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..core.device import device
from ..core.dtype import DType
from ..core.generator import Generator
from ..core.layout import Layout, MemoryFormat
from ..core.tensor import Tensor
from ..layouts.quantized.script_object import ScriptObject

_REFUSED = object()

# PyTorch's numbers of dtypes, layouts and memory formats, which schemas take for them.
DTYPE_CODES = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64", "complex128",
    "bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8",
    "bits16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32", "uint64",
)  # fmt: skip
LAYOUT_CODES = (
    "strided", "sparse_coo", "sparse_csr", "_mkldnn", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged",
)  # fmt: skip
MEMORY_FORMAT_CODES = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")


class Type:
    """A type of TorchScript and of operators' schemas. Types without parts are found with `get()`."""

    def __init__(self, kind: str = "Type", text: str = "", name: str = "") -> None:
        self._kind, self._text, self._name = kind, text, name or text

    def kind(self) -> str:
        """The name of the kind of type: "TensorType", "ListType", ..."""
        return self._kind

    def str(self) -> Any:
        """The type as schemas write it: `int[]`, `Tensor?`."""
        return self._text

    @property
    def annotation_str(self) -> Any:
        """The type as Python writes it: `List[int]`, `Optional[Tensor]`."""
        return self._name

    def __repr__(self) -> Any:
        return self.annotation_str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and (self._kind, self._name) == (other._kind, other._name)

    def __hash__(self) -> int:
        return hash((self._kind, self._name))

    def isSubtypeOf(self, other: Type) -> bool:  # noqa: N802 (PyTorch's name)
        """Whether every value of this type is one of `other`."""
        if isinstance(other, AnyType) or self == other:
            return True
        if isinstance(other, OptionalType):
            return isinstance(self, NoneType) or self.isSubtypeOf(other.getElementType())
        return isinstance(other, NumberType) and self._kind in ("IntType", "FloatType", "ComplexType")

    def containedTypes(self) -> list[Type]:  # noqa: N802
        """The types that this one is made of."""
        return []

    def dynamic(self) -> Type:
        """The type that arguments are declared with in Python: int for a dtype, a layout or a symbolic int."""
        return self

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        """`value` as an argument of this type.

        Raises: TypeError if it is none.
        """
        return value


class _Plain(Type):
    """A type without parts, of which there is one object."""

    _KIND = _TEXT = _NAME = ""

    def __init__(self) -> None:
        super().__init__(self._KIND, self._TEXT, self._NAME)

    @classmethod
    def get(cls) -> Any:
        """The one object of this type."""
        found = cls.__dict__.get("_only")
        if found is None:
            found = cls._only = cls()  # type: ignore[attr-defined]
        return found


class TensorType(_Plain):
    _KIND, _TEXT = "TensorType", "Tensor"

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        if isinstance(value, Tensor) or value is None:
            return value
        if numbers_as_tensors and isinstance(value, (bool, int, float, complex)):
            return value
        raise TypeError(f"Unable to cast {value} to Tensor")


class IntType(_Plain):
    _KIND, _TEXT = "IntType", "int"

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        if type(value) is int:
            return value
        if isinstance(value, Tensor) and (value.is_floating_point() or value.numel() != 1):
            raise TypeError(f"{value} is no int")
        number: Any = value.item() if isinstance(value, Tensor) else value
        return operator.index(number)


class SymIntType(IntType):
    _KIND, _TEXT, _NAME = "SymIntType", "SymInt", "int"

    def dynamic(self) -> Type:
        return IntType.get()


class FloatType(_Plain):
    _KIND, _TEXT = "FloatType", "float"

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        if isinstance(value, (str, bytes, complex)):
            raise TypeError(f"{value!r} is no float")
        return float(value)


class SymFloatType(FloatType):
    _KIND, _TEXT, _NAME = "SymFloatType", "SymFloat", "float"

    def dynamic(self) -> Type:
        return FloatType.get()


class BoolType(_Plain):
    _KIND, _TEXT = "BoolType", "bool"

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        if isinstance(value, bool):
            return value
        if type(value).__name__ in ("bool_", "bool") or isinstance(value, Tensor):
            return bool(value)
        raise TypeError(f"{value!r} is no bool")


class SymBoolType(BoolType):
    _KIND, _TEXT, _NAME = "SymBoolType", "SymBool", "bool"


class ComplexType(_Plain):
    _KIND, _TEXT = "ComplexType", "complex"

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        if isinstance(value, (str, bytes)):
            raise TypeError(f"{value!r} is no complex")
        return complex(value)


class NumberType(_Plain):
    _KIND, _TEXT, _NAME = "NumberType", "Scalar", "number"

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        if isinstance(value, (bool, int, float, complex)):
            return value
        raise TypeError(f"Cannot cast {value} to number")


class StringType(_Plain):
    _KIND, _TEXT = "StringType", "str"

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        if isinstance(value, str):
            return value
        raise TypeError(f"{value!r} is no str")


class NoneType(_Plain):
    _KIND, _TEXT = "NoneType", "NoneType"

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        if value is not None:
            raise TypeError("Cannot cast value to None")
        return value


class AnyType(_Plain):
    _KIND, _TEXT = "AnyType", "Any"


class DeviceObjType(_Plain):
    _KIND, _TEXT = "DeviceObjType", "Device"

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        if isinstance(value, (device, str)):
            return value
        raise TypeError(f"{value!r} is no device")


class StreamObjType(_Plain):
    _KIND, _TEXT = "StreamObjType", "Stream"


class _GeneratorType(_Plain):
    _KIND, _TEXT = "GeneratorType", "Generator"

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        if isinstance(value, Generator):
            return value
        raise TypeError(f"{value!r} is no generator")


class _Coded(Type):
    """A type whose values schemas count as ints: dtypes, layouts, memory formats."""

    def __init__(self, text: str, values: type, codes: Sequence[str]):
        super().__init__(f"{text}Type", text)
        self._values, self._codes = values, codes

    def dynamic(self) -> Type:
        return IntType.get()

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        if isinstance(value, self._values):
            return value
        if type(value) is int and 0 <= value < len(self._codes):
            return self.named(self._codes[value])
        if value in (bool, int, float, complex) and self._values is DType:
            return value
        raise TypeError(f"{value!r} is no {self._text}")

    def named(self, name: str) -> Any:
        """The dtype, layout or memory format of this name."""
        import weft

        return getattr(weft, name)


class _Made(Type):
    """A type that is made of others."""

    def __init__(self, kind: str, text: str, name: str, parts: Sequence[Type]):
        super().__init__(kind, text, name)
        self._parts = tuple(parts)

    def containedTypes(self) -> list[Type]:
        return list(self._parts)


class _WithElement(_Made):
    def getElementType(self) -> Any:  # noqa: N802
        """The type of the elements."""
        return self._parts[0]


class OptionalType(_WithElement):
    def __init__(self, element: Type):
        super().__init__(
            "OptionalType", f"{element.str()}?", f"Optional[{element.annotation_str}]", (element,)
        )

    @staticmethod
    def ofTensor() -> OptionalType:  # noqa: N802
        """The type of a tensor or None."""
        return OptionalType(TensorType.get())

    def dynamic(self) -> Type:
        return OptionalType(self._parts[0].dynamic())

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        return None if value is None else self._parts[0].convert(value, numbers_as_tensors)


class ListType(_WithElement):
    def __init__(self, element: Type, length: int | None = None):
        super().__init__("ListType", f"{element.str()}[]", f"List[{element.annotation_str}]", (element,))
        self.length = length

    @staticmethod
    def ofInts() -> ListType:  # noqa: N802
        """The type of a list of ints."""
        return ListType(IntType.get())

    @staticmethod
    def ofTensors() -> ListType:  # noqa: N802
        """The type of a list of tensors."""
        return ListType(TensorType.get())

    def dynamic(self) -> Type:
        return ListType(self._parts[0].dynamic(), self.length)

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        element = self._parts[0]
        if isinstance(value, (str, bytes, dict)):
            raise TypeError(f"{value!r} is no list")
        single = isinstance(value, (int, float)) or isinstance(value, Tensor) and value.ndim == 0
        if single and self.length and not isinstance(element, TensorType):
            return [element.convert(value)] * self.length
        if isinstance(value, Tensor) or not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
            raise TypeError(f"Unable to cast Python instance of type {type(value)} to a list")
        converted = [element.convert(each, numbers_as_tensors) for each in value]
        if isinstance(element, TensorType) and any(each is None for each in converted):
            raise TypeError("None is no tensor")
        return converted


class TupleType(_Made):
    def __init__(self, elements: Sequence[Type]):
        texts = ", ".join(each.str() for each in elements)
        names = ", ".join(each.annotation_str for each in elements)
        super().__init__("TupleType", f"({texts})", f"Tuple[{names}]", elements)

    def elements(self) -> list[Type]:
        """The types of the elements."""
        return list(self._parts)


class DictType(_Made):
    def __init__(self, key: Type, value: Type):
        super().__init__(
            "DictType",
            f"Dict({key.str()}, {value.str()})",
            f"Dict[{key.annotation_str}, {value.annotation_str}]",
            (key, value),
        )

    def getKeyType(self) -> Type:  # noqa: N802
        """The type of the keys."""
        return self._parts[0]

    def getValueType(self) -> Type:  # noqa: N802
        """The type of the values."""
        return self._parts[1]


class _Wrapping(_WithElement):
    _WORD = ""

    def __init__(self, element: Type):
        word = self._WORD
        super().__init__(
            f"{word}Type", f"{word}({element.str()})", f"{word}[{element.annotation_str}]", (element,)
        )


class FutureType(_Wrapping):
    _WORD = "Future"


class RRefType(_Wrapping):
    _WORD = "RRef"


class AwaitType(_Wrapping):
    _WORD = "Await"


class ClassType(Type):
    """The type of objects of a class that C++ or TorchScript defines, by its qualified name."""

    def __init__(self, name: str):
        super().__init__("ClassType", name)

    def convert(self, value: Any, numbers_as_tensors: bool = False) -> Any:
        if not isinstance(value, ScriptObject) or value._type() != self._name:
            raise TypeError(f"an object of {self._name} was expected")
        return value

    def name(self) -> str:
        """The last part of the qualified name."""
        return self._name.rpartition(".")[2]

    def qualified_name(self) -> str:
        """The whole name: `__torch__.torch.classes.quantized.Conv2dPackedParamsBase`."""
        return self._name


_PLAIN = (
    *(TensorType, IntType, SymIntType, FloatType, SymFloatType, BoolType, SymBoolType, ComplexType, NumberType),
    *(StringType, NoneType, AnyType, DeviceObjType, StreamObjType, _GeneratorType),
)  # fmt: skip
# What schemas call the types without parts.
NAMED: dict[str, Type] = {
    **{each._TEXT: each.get() for each in _PLAIN},
    "None": NoneType.get(),
    "Dimname": StringType.get(),
    "ScalarType": _Coded("ScalarType", DType, DTYPE_CODES),
    "Layout": _Coded("Layout", Layout, LAYOUT_CODES),
    "MemoryFormat": _Coded("MemoryFormat", MemoryFormat, MEMORY_FORMAT_CODES),
    "Storage": Type("StorageType", "Storage"),
    "QScheme": Type("QSchemeType", "QScheme"),
    "AnyEnumType": Type("AnyEnumType", "AnyEnumType"),
    "AnyClassType": Type("AnyClassType", "AnyClassType"),
}
WRAPPING = {each._WORD: each for each in (FutureType, RRefType, AwaitType)}
