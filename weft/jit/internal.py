"""What TorchScript's decorators and questions are made of. weft runs programs as they are, as PyTorch does with PYTORCH_JIT=0."""

from __future__ import annotations

import functools
import inspect
import types
import typing
import warnings
from collections.abc import Callable
from typing import Any, Dict, Final, List, Optional, Tuple, Union  # noqa: UP035 (what programs import from here)

from ..core.warn import user_level

# The dispatchers that `boolean_dispatch` made -> what they choose between.
boolean_dispatched: dict[Callable, dict[str, Any]] = {}


class BroadcastingListCls:
    """`BroadcastingList2[int]` annotates a list of two ints for which one int may be given."""

    def __getitem__(self, types: Any) -> None:
        """Nothing: the annotation is for readers."""

    def __call__(self, *args: Any) -> None:
        """Raises: TypeError, because it is no class of lists."""
        raise TypeError("BroadcastingList is only an annotation: write BroadcastingList2[int]")


BroadcastingList1 = BroadcastingListCls()
for _count in range(2, 7):
    globals()[f"BroadcastingList{_count}"] = BroadcastingList1


class FunctionModifiers:
    """What `ignore`, `unused` and `export` leave at a function."""

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from a exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = "if this method is not scripted, copy the python method onto the scripted model"
    _DROP = "_drop (function is fully ignored, declaration can be unscriptable)"


# ---- Decorators ----------------------------------------------------------------------------------------------------------


def export(fn: Callable) -> Callable:
    """`fn`, marked as one that TorchScript would compile although nothing calls it."""
    fn._torchscript_modifier = FunctionModifiers.EXPORT  # type: ignore[attr-defined]
    return fn


def unused(fn: Any) -> Any:
    """`fn`, marked as one that TorchScript would leave out. A property's functions are marked."""
    if isinstance(fn, property):
        functions: tuple[Any, ...] = (fn.fget, fn.fset)
        for each in functions:
            if each is not None:
                each._torchscript_modifier = FunctionModifiers.UNUSED
        return fn
    fn._torchscript_modifier = FunctionModifiers.UNUSED
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The decorated function, marked as one that TorchScript would leave to Python; `@ignore` and `@ignore()` are the same.

    Raises: RuntimeError if `drop` is neither a bool nor a function.
    """
    if callable(drop):
        drop._torchscript_modifier = FunctionModifiers.IGNORE
        return drop
    if not isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    if kwargs.pop("drop_on_export", None):
        warnings.warn(
            "ignore(drop_on_export=True) has been deprecated. TorchScript will now drop the function call on compilation. Use "
            "torch.jit.unused now. {}",
            category=FutureWarning,
            stacklevel=user_level(),
        )
        drop = True

    def decorator(fn: Callable) -> Callable:
        fn._torchscript_modifier = FunctionModifiers.UNUSED if drop else FunctionModifiers.IGNORE  # type: ignore[attr-defined]
        return fn

    return decorator


def _drop(fn: Callable) -> Callable:
    fn._torchscript_modifier = FunctionModifiers._DROP  # type: ignore[attr-defined]
    return fn


def _copy_to_script_wrapper(fn: Callable) -> Callable:
    fn._torchscript_modifier = FunctionModifiers.COPY_TO_SCRIPT_WRAPPER  # type: ignore[attr-defined]
    return fn


def _overload(func: Callable) -> Callable:
    """`func`: the declaration of an overload, which the implementation that follows replaces."""
    return func


def _overload_method(func: Callable) -> Callable:
    """`func`: as `_overload`, for methods."""
    return func


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable,
    if_false: Callable,
    module_name: str,
    func_name: str,
) -> Callable:
    """A function that calls `if_true` or `if_false`, as the bool argument `arg_name` says."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        flag = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if flag else if_false)(*args, **kwargs)

    fn.__doc__ = if_true.__doc__ or if_false.__doc__
    fn.__module__, fn.__name__ = module_name or fn.__module__, func_name or fn.__name__
    boolean_dispatched[fn] = {
        "if_true": if_true, "if_false": if_false, "index": arg_index, "default": default, "arg_name": arg_name
    }  # fmt: skip
    return fn


class _IgnoreContextManager:
    """A context that TorchScript would leave out."""

    def __init__(self, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> None:
        """Nothing to begin."""

    def __exit__(self, *args: Any) -> None:
        """Nothing to end."""


# ---- Questions -----------------------------------------------------------------------------------------------------------


def is_scripting() -> bool:
    """Whether TorchScript runs this: never."""
    return False


def get_torchscript_modifier(fn: Any) -> Any:
    """What `ignore`, `unused` or `export` left at a function."""
    inner = getattr(fn, "__func__", fn)
    return getattr(inner, "_torchscript_modifier", FunctionModifiers.DEFAULT) if callable(inner) else None


def is_ignored_fn(fn: Any) -> bool:
    """Whether a function was marked by `ignore`, `unused` or `_drop`."""
    return get_torchscript_modifier(fn) in (
        FunctionModifiers.UNUSED,
        FunctionModifiers.IGNORE,
        FunctionModifiers._DROP,
    )


def should_drop(fn: Any) -> bool:
    """Whether a function was marked by `unused`."""
    return get_torchscript_modifier(fn) in (FunctionModifiers.UNUSED, FunctionModifiers._DROP)


def is_static_fn(cls: type, fn: str) -> bool:
    """Whether the member `fn` of a class is a static method."""
    return isinstance(inspect.getattr_static(cls, fn, default=None), staticmethod)


def _qualified_name(obj: Any, mangle_name: bool = True) -> str:
    """The name that TorchScript has for a class or function: `__torch__.module.Class` for those of programs."""
    if hasattr(obj, "_jit_override_qualname"):
        return obj._jit_override_qualname
    name = "_lambda" if obj.__name__ == "<lambda>" else obj.__name__
    module = obj.__module__
    if module is None:
        raise RuntimeError(f"Could not get qualified name for class '{name}': __module__ can't be None.")
    if module == "__main__":
        module = "__torch__"
    elif mangle_name and not module.startswith("torch"):
        module = f"__torch__.{module}"
    if "." in name:
        raise RuntimeError(
            f"Could not get qualified name for class '{name}': '{name}' is not a valid identifier"
        )
    return f"{module}.{name}"


# ---- Types of annotations ------------------------------------------------------------------------------------------------


def _origin(annotation: Any) -> Any:
    return typing.get_origin(annotation)


def _bare(annotation: Any, *kinds: Any) -> bool:
    if any(annotation is kind for kind in kinds if hasattr(kind, "__origin__")):
        raise_error_container_parameter_missing(next(kind for kind in kinds if annotation is kind)._name)
    return False


def is_tuple(ann: Any) -> bool:
    """Whether an annotation is a tuple type. Raises: RuntimeError for `Tuple` without the types of its elements."""
    return _bare(ann, Tuple) or _origin(ann) is tuple  # noqa: UP006


def is_list(ann: Any) -> bool:
    """Whether an annotation is a list type. Raises: RuntimeError for `List` without the type of its elements."""
    return _bare(ann, List) or _origin(ann) is list  # noqa: UP006


def is_dict(ann: Any) -> bool:
    """Whether an annotation is a dict type. Raises: RuntimeError for `Dict` without its types."""
    return _bare(ann, Dict) or _origin(ann) is dict  # noqa: UP006


def is_union(ann: Any) -> bool:
    """Whether an annotation is a union."""
    return _origin(ann) is Union or isinstance(ann, types.UnionType)


def is_optional(ann: Any) -> bool:
    """Whether an annotation is a union of one type with None."""
    return is_union(ann) and len(typing.get_args(ann)) == 2 and type(None) in typing.get_args(ann)


def is_final(ann: Any) -> bool:
    """Whether an annotation says that the value never changes."""
    return ann is Final or _origin(ann) is Final


def raise_error_container_parameter_missing(target_type: str) -> None:
    """Raises: RuntimeError, for a container type without the types of what it contains."""
    is_dict = target_type.endswith("ict")
    raise RuntimeError(
        f"Attempted to use {target_type} without {'contained types' if is_dict else 'a contained type'}. Please add "
        f"{'contained type' if is_dict else 'a contained type'}, e.g. {target_type}[int{', int' if is_dict else ''}]"
    )


def check_args_exist(target_type: Any) -> None:
    """Raises: RuntimeError for a container type without the types of what it contains."""
    bare: dict[Any, str] = {
        List: "List", list: "list", Tuple: "Tuple", tuple: "tuple", Dict: "Dict", dict: "dict", Optional: "Optional",  # noqa: UP006
    }  # fmt: skip
    try:
        name = bare.get(target_type)
    except TypeError:  # not hashable
        name = None
    if name is not None:
        raise_error_container_parameter_missing(name)


def check_empty_containers(obj: Any) -> None:
    """Warn that an empty container has elements of every type."""
    if obj == [] or obj == {} or obj == ():
        warnings.warn(
            "The inner type of a container is lost when calling torch.jit.isinstance in eager mode. For example, List[int] "
            "would become list and therefore falsely return True for List[float] or List[str].",
            stacklevel=user_level(),
        )


def container_checker(obj: Any, target_type: Any) -> bool:
    """Whether `obj` is of a type such as `List[int]`, its elements included.

    Raises: RuntimeError for container types without the types of what they contain.
    """
    kind, parts = typing.get_origin(target_type), typing.get_args(target_type)
    check_args_exist(target_type)
    if kind is None:
        return False
    if kind is list or kind is dict or kind is tuple:
        check_empty_containers(obj)
    if not is_union(target_type) and not isinstance(obj, kind):
        return False
    if kind is list:
        return all(_isinstance(each, parts[0]) for each in obj)
    if kind is dict:
        return all(_isinstance(key, parts[0]) and _isinstance(each, parts[1]) for key, each in obj.items())
    if kind is tuple:
        return len(obj) == len(parts) and all(_isinstance(*pair) for pair in zip(obj, parts, strict=True))
    if is_union(target_type):
        return any(obj is None if part is type(None) else _isinstance(obj, part) for part in parts)
    return False


def _isinstance(obj: Any, target_type: Any) -> bool:
    """`torch.jit.isinstance`."""
    if isinstance(target_type, (list, tuple)):
        return any(_isinstance(obj, each) for each in target_type)
    if typing.get_origin(target_type) is not None or is_union(target_type):
        return container_checker(obj, target_type)
    check_args_exist(target_type)
    return isinstance(obj, target_type)


@functools.cache
def get_annotation_str(annotation: Any) -> str:
    """An annotation as its source has it."""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
