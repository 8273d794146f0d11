"""`__torch_dispatch__`: modes and classes that are told of each aten operator, beneath autograd.

`core/entry.py` asks `dispatched` after `__torch_function__`, while a mode is on or a class of tensors defines
`__torch_dispatch__`. A call of a public function becomes calls of overloads, as in PyTorch: `aten_calls.py` knows what PyTorch
composes of others. Each overload is told to the handlers with recording off, then recorded with the formulas of
`aten_derivatives.py`, so that its backward pass is made of overloads that the handlers are told of as well.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ...autograd import engine, saved
from ...autograd.graph import endpoint
from ...autograd.saved import save, unpack
from ...core import overrides
from ...core.derivative import Derivative, Needs, mentioned
from ...core.dispatch import PLAIN, Lifetimes, unwatch, watch
from ...core.dtype import FLOAT
from ...core.grad_mode import mode as grad_mode
from ...core.layout import contiguous_format, strided
from ...core.layout_spec import refuse_layouts
from ...core.op import Op
from ...core.overrides import (
    DisableTorchFunctionSubclass,
    handles_dispatch,
    mode_handler,
    modes,
    public_function,
    switch,
)
from ...core.recording import record, record_inplace, tape, unrecorded
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...core.warn import user_level
from ...families.map import Map
from ...families.traced import Traced
from ...families.update import FusedUpdate
from ...ops.elementwise.pointwise import OPS
from ..namespaces import OpOverload, OpOverloadPacket, ops
from . import aten as aten_operators
from .aten_derivatives import JOINT, Context, Formula, formulas_of, summed_to
from .operators import tensors_in

# ---- Who is asked ----------------------------------------------------------------------------------------------------------


def handling(values: Sequence[Any]) -> list[Tensor]:
    """One object of each class with `__torch_dispatch__`, subclasses before their base classes."""
    result: list[Tensor] = []
    if not switch.dispatches:
        return result
    for tensor in tensors_in(values):
        kind = type(tensor)
        if kind is Tensor or not handles_dispatch(kind) or any(type(other) is kind for other in result):
            continue
        later = (place for place, other in enumerate(result) if issubclass(kind, type(other)))
        result.insert(next(later, len(result)), tensor)
    return result


def dispatched(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The result of a call for whose operators handlers are asked; PLAIN if there is none to ask."""
    if not modes.dispatch and not handling((*args, *kwargs.values())):
        return PLAIN
    if any(type(each) is Traced for each in args):
        return PLAIN  # the expression of an elementwise kernel is being built, and nothing is computed yet
    function = public_function(function)
    if isinstance(function, OpOverload):
        return call(function, args, kwargs)
    if isinstance(function, OpOverloadPacket):
        return _call_packet(function, args, kwargs)
    from .aten_calls import called, load_layers  # they call overloads through this module

    load_layers()
    return called(function, args, kwargs)


def _call_packet(packet: OpOverloadPacket, args: tuple, kwargs: dict[str, Any]) -> Any:
    found = resolve(packet, args, kwargs)
    return PLAIN if found is None else call_bound(*found)


def resolve(
    packet: OpOverloadPacket, args: Sequence[Any], kwargs: dict[str, Any], numbers: bool | None = None
) -> tuple[OpOverload, list[Any]] | None:
    """The first overload that the arguments fit, with the value of each of its arguments; None if they fit none.

    numbers: whether numbers fit arguments that are tensors, if it is not as the operator says.
    """
    outer, modes.dispatch = modes.dispatch, ()  # the error of an overload that does not fit prints tensors
    try:
        for name in packet.overloads():
            overload = getattr(packet, name)
            try:
                values = overload._schema.bind(
                    args, kwargs, overload._numbers if numbers is None else numbers
                )
            except RuntimeError:
                continue
            return overload, values
    finally:
        modes.dispatch = outer
    return None


def call(overload: OpOverload, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Any:
    """Call an overload, of which handlers are told."""
    return call_bound(overload, overload._schema.bind(args, kwargs or {}, overload._numbers))


# ---- Beneath autograd --------------------------------------------------------------------------------------------------------


def _told(overload: OpOverload, values: Sequence[Any], recording: bool = False) -> Any:
    """The answer of the innermost mode, else that of the classes of the arguments."""
    operator = overload._operator
    assert operator is not None
    args, kwargs = operator.arguments(values)
    objects = handling(values)
    # The backward pass of a graph that was recorded under a mode that is off now.
    if not objects and not modes.dispatch:
        return overload._op(values)
    types = tuple(type(each) for each in objects)
    with contextlib.nullcontext() if recording else unrecorded():
        if modes.dispatch:
            outer = modes.dispatch
            innermost, modes.dispatch = outer[-1], outer[:-1]
            try:
                answer = mode_handler(innermost, "__torch_dispatch__")(overload, types, args, kwargs)
            finally:
                modes.dispatch = outer
            if answer is not NotImplemented:
                return answer
        with DisableTorchFunctionSubclass():
            for each in objects:
                answer = type(each).__torch_dispatch__(overload, types, args, kwargs)  # type: ignore[attr-defined]
                if answer is not NotImplemented:
                    _note_aliases(overload, values, answer)
                    return answer
    listed = "".join(f"\n  - tensor subclass {kind}" for kind in types)
    raise TypeError(
        f"Multiple dispatch failed for '{overload}'; all __torch_dispatch__ handlers returned NotImplemented:\n{listed}"
    )


def _note_aliases(overload: OpOverload, values: Sequence[Any], answer: Any) -> None:
    """Count a write to tensors without memory as a new version, and let their views have the same versions."""
    schema = overload._schema
    if schema.is_mutable:
        for argument, value in zip(schema.arguments, values, strict=True):
            if argument.is_write and isinstance(value, Tensor) and value.spec.device.is_claimed:
                value._storage.version += 1
    elif schema._is_view_op() and isinstance(values[0], Tensor) and values[0].spec.device.is_claimed:
        for each in tensors_in((answer,)):
            if each.spec.device.is_claimed:
                each._storage = values[0]._storage


def call_bound(overload: OpOverload, values: Sequence[Any]) -> Any:
    """Call an overload with the value of each of its arguments: tell the handlers, then record the step."""
    tensors = tensors_in(values)
    if not grad_mode.enabled or all(each._autograd is None for each in tensors):
        return _told(overload, values)
    if overload._namespace != "aten":  # the kernels of custom operators record themselves
        return _told(overload, values, recording=True)
    step = _Step(overload, values)
    if overload._schema.is_mutable:
        target = values[0]
        return record_inplace(step.op, target, step.tensors, (), lambda: step.finish(_told(overload, values)))
    result = _told(overload, values)
    if step.is_constant:
        return result
    return step.finish(result)


class _Derivative(Derivative):
    """The derivative of one recorded call, which keeps what its formulas read itself."""

    def needs(self, wanted: int, n_inputs: int) -> Needs:
        return Needs(False, ())


class _Recorded(Op):
    """The op of one recorded call of an overload."""

    def __init__(self, name: str, derivative: Derivative):
        self.name, self.derivative = name, derivative


# Operators whose results are constants for autograd.
_CONSTANT = frozenset(
    "detach detach_ zeros_like ones_like empty_like full_like rand_like randn_like randint_like new_zeros new_ones new_empty "
    "new_full new_empty_strided sign sgn floor ceil round trunc argmax argmin eq ne lt le gt ge isnan isinf".split()
)


# Operators whose further results are differentiable as well.
_DIFFERENTIABLE_TWICE = frozenset(("native_group_norm",))


class _Step:
    """One call of an overload that is recorded: its tensors, and what the formulas of its derivative read."""

    def __init__(self, overload: OpOverload, values: Sequence[Any]):
        self.overload = overload
        name, overload_name = overload._opname, overload._schema.overload_name
        self.is_constant = name in _CONSTANT
        self.values = dict(zip([each.name for each in overload._schema.arguments], values, strict=True))
        self.tensors: list[Tensor] = []
        self.places: list[
            tuple[str, int | None]
        ] = []  # of each tensor: its argument, and its place in a list
        for argument, value in self.values.items():
            for place, each in enumerate(value) if isinstance(value, (tuple, list)) else ((None, value),):
                if isinstance(each, Tensor):
                    self.tensors.append(each)
                    self.places.append((argument, place))
        self.shapes = [
            each.spec.shape for each in self.tensors
        ]  # an operator in place may change that of its tensor
        self.joint = JOINT.get(name)
        self.formulas = None if self.joint else formulas_of(name, overload_name) or _by_row(name, self.values)
        self.specs = {
            argument: value.spec for argument, value in self.values.items() if isinstance(value, Tensor)
        }
        self.result_shapes: list[Any] = []
        self.node: Any = (
            None  # a weak reference to the node of the results, because the node refers to this object
        )
        self.read = self._read()
        self.saved = {
            key: _saved(value)
            for key, value in self.values.items()
            if key in self.read or key not in self.specs
        }
        self._note_versions()
        self.op = _Recorded(name.rstrip("_"), _Derivative(joint=self._pull_rule(), results=()))

    def _read(self) -> set[str]:
        """The names that the formulas of the wanted arguments read."""
        wanted = {
            argument
            for each, (argument, _) in zip(self.tensors, self.places, strict=True)
            if each._autograd is not None
        }
        self.wanted = wanted
        if self.joint is not None:
            functions: list[Formula] = [self.joint[1]]
        elif self.formulas is not None:
            functions = [formula for argument, formula in self.formulas.items() if argument in wanted]
        else:
            return set(self.values)
        return {name for each in functions for name in getattr(each, "reads", each.__code__.co_names)}

    def _note_versions(self) -> None:
        self.versions = {
            key: value._storage.version for key, value in self.saved.items() if isinstance(value, Tensor)
        }

    def finish(self, result: Any) -> Any:
        """Record the results and save those that formulas read."""
        if not self.overload._schema.is_mutable:
            self._note_versions()  # batch norm updates its running mean, which does not make its saved arguments wrong
        several = isinstance(result, (tuple, list))
        results = list(result) if several else [result]
        self.result_shapes = [each.spec.shape for each in results if isinstance(each, Tensor)]
        if not self.overload._schema.is_mutable:
            for each in results:
                if isinstance(each, Tensor) and each._base is not None:
                    for mark in ("_unwritable", "_unconnected"):  # it was made with recording off
                        each.__dict__.pop(mark, None)
                    each._autograd = None
            made = [each for each in results if isinstance(each, Tensor)]
            if all(each.spec.dtype.category < FLOAT for each in made):
                return result
            record(self.op, tuple(made) if several else made[0], self.tensors, ())
            edge = next((each._autograd for each in made if each._autograd is not None), None)
            if edge is not None:
                self.node = weakref.ref(endpoint(edge)[0])
            for each in made:
                if each._base is not None and any(each._storage is x._storage for x in self.tensors):
                    tape.recorded_view(each, self.tensors[0], several)
        for place, each in enumerate(results):
            key = f"result{place}" if place else "result"
            if key in self.read and isinstance(each, Tensor):
                hooked = bool(saved.hooked and saved.hooks.stack) and type(each) is Tensor
                self.saved[key] = save(each, place) if hooked else _saved(self._detached(key, each))
        return result

    def _detached(self, key: str, tensor: Tensor) -> Tensor:
        """A saved result, which PyTorch detaches unless it is a constant for autograd."""
        if key != "result" and self.overload._opname not in _DIFFERENTIABLE_TWICE:
            return tensor
        with unrecorded():
            return call(ops.aten.detach.default, (tensor,))

    def _pull_rule(self) -> Callable:
        def pull(ct: Any, out: Any, *inputs: Any) -> Sequence[Any]:
            return self.pull(ct)

        return pull

    def pull(self, g: Any) -> list[Any]:
        """The gradients of the tensors, given that of the result."""
        for key, version in self.versions.items():
            if self.saved[key]._storage.version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    f"{self.overload}, argument '{key}', is at version {self.saved[key]._storage.version}; expected version "
                    f"{version} instead."
                )
        node = None if self.node is None else self.node()
        values = {key: _unpacked(value, node) for key, value in self.saved.items()}
        for index, key in enumerate(("result", "result1", "result2")):
            if key in self.read and key in values:
                values[key] = self._detached(key, values[key])
                if grad_mode.enabled and self.node is not None and values[key]._autograd is None:
                    values[key]._autograd = self.node()._output(index)
        c = Context(g, values, self.specs)
        c.wanted = self.wanted  # type: ignore[attr-defined]
        if self.joint is not None:
            names, formula = self.joint
            gradients = dict(zip(names, formula(c), strict=False))
        elif self.formulas is not None:
            c.tensors_specs = [each.spec for each in self.tensors]  # type: ignore[attr-defined]
            c.result_shapes = self.result_shapes  # type: ignore[attr-defined]
            gradients = {
                argument: formula(c) for argument, formula in self.formulas.items() if argument in self.wanted
            }
        else:
            gradients = self._without_formula(g)
        found = []
        for (argument, place), shape in zip(self.places, self.shapes, strict=True):
            each = gradients.get(argument)
            each = each[place] if place is not None and each is not None else each
            found.append(None if each is None else summed_to(each, shape))
        return found

    def _without_formula(self, g: Any) -> dict[str, Any]:
        """The gradients by weft's own rules, of which handlers are not told."""
        from .aten_backward import pull

        objects = handling(self.tensors)
        plainly = getattr(objects[0], "_plainly", None) if objects else _called
        if plainly is None:
            raise NotImplementedError(
                f"the derivative of {self.overload} has no formula in aten operators yet, so it is not defined for "
                f"{type(objects[0]).__name__}"
            )
        if any(each._records for each in modes.dispatch):
            raise NotImplementedError(
                f"the derivative of {self.overload} has no formula in aten operators yet, so it cannot be recorded"
            )
        if not objects:
            warnings.warn(
                f"{self.overload}: its derivative has no formula in aten operators yet, so __torch_dispatch__ is not told of it",
                UserWarning,
                stacklevel=user_level(),
            )
        wanted = [place for place, each in enumerate(self.tensors) if each._autograd is not None]

        def gradients_of(arguments: dict[str, Any], cts: Any, *inputs: Tensor) -> tuple:
            return pull(functools.partial(again, arguments), cts, *inputs)

        def again(arguments: dict[str, Any], *chosen: Tensor) -> Any:
            inputs = iter(chosen)
            chosen_at = {self.places[place]: next(inputs) for place in wanted}
            values = []
            for argument, value in arguments.items():
                if isinstance(value, (tuple, list)) and value and isinstance(value[0], Tensor):
                    value = [chosen_at.get((argument, k), each) for k, each in enumerate(value)]
                values.append(chosen_at.get((argument, None), value))
            return self.overload._op(values)

        outer, modes.dispatch = modes.dispatch, ()
        try:
            found = plainly(gradients_of, self.values, g, *[self.tensors[place] for place in wanted])
        finally:
            modes.dispatch = outer
        gradients: dict[str, Any] = {}
        for place, each in zip(wanted, found, strict=True):
            argument, item = self.places[place]
            if item is None:
                gradients[argument] = each
            else:
                gradients.setdefault(argument, {})[item] = each
        return {
            key: _by_place(value, len(self.tensors)) if isinstance(value, dict) else value
            for key, value in gradients.items()
        }


def _by_row(name: str, arguments: dict[str, Any]) -> dict[str, Formula] | None:
    """Formulas made of the rules of weft's elementwise op of this name; None if there is none."""
    op = OPS.get(name.rstrip("_").replace("special_", "special.", 1))
    if op is None or op.derivative is None:
        return None
    names = [each for each in arguments if each not in ("alpha", "out")]
    rules: dict[str, Any] = dict(zip(names, op.derivative.rules, strict=False))
    if not rules or any(rule is None or rule.__code__.co_kwonlyargcount for rule in rules.values()):
        return None
    return {argument: _row_formula(rule, names) for argument, rule in rules.items()}


def _row_formula(rule: Callable, names: Sequence[str]) -> Formula:
    reads_result, positions = mentioned(rule, len(names))
    read = [name if place in positions else None for place, name in enumerate(names)]

    def formula(c: Context) -> Any:
        inputs = [None if name is None else getattr(c, name) for name in read]
        return rule(c.g, c.result if reads_result else None, *inputs)

    formula.reads = {*filter(None, read), *(("result",) if reads_result else ())}  # type: ignore[attr-defined]
    return formula


def _saved(value: Any) -> Any:
    """What a step keeps of a value: itself, or what the hooks on saved tensors make of its tensors."""
    if isinstance(value, Tensor):
        return save(value, value._autograd) if saved.hooked and saved.hooks.stack else value
    return type(value)(map(_saved, value)) if type(value) in (list, tuple) else value


def _unpacked(value: Any, node: Any) -> Any:
    if isinstance(value, saved.Packed):
        return unpack(value, node, True)
    if type(value) in (list, tuple):
        return type(value)([_unpacked(each, node) for each in value])
    return value


def _called(function: Callable, *args: Any) -> Any:
    return function(*args)


def _by_place(found: dict[int, Any], count: int) -> list[Any]:
    return [found.get(place) for place in range(count)]


wrappers = Lifetimes()  # the storages of tensors without memory that stand for others


@wrappers.switches.append
def _watch_wrappers(on: bool) -> None:
    (watch if on else unwatch)(wrapper_watched)


def wrapper_watched(op: Any, method: str, args: tuple, static: dict[str, Any]) -> Any:
    """Watcher of ops: an op that is given a wrapper of other tensors, which has no memory, is told to its class.

    Raises: NotImplementedError if the op is no operator, and so its class cannot be told.
    """
    objects = [each for each in handling(_flat(args)) if each.spec.device.is_claimed]
    if not objects or modes.dispatch:
        return PLAIN
    if isinstance(op, FusedUpdate) and method == "run":
        return op.compose(*args)
    if method == "run" and isinstance(op, Map) and not static:
        from .aten_calls import by_op

        return by_op(op, args)
    raise NotImplementedError(
        f"{op.name}: {type(objects[0]).__name__} has no memory of its own, and this step is not an operator that its "
        "__torch_dispatch__ can be told of"
    )


def _flat(values: Sequence[Any]) -> list[Any]:
    """The values, and the items of lists and tuples in their place."""
    return [each for value in values for each in (value if isinstance(value, (tuple, list)) else (value,))]


def watched(op: Any, method: str, args: tuple, static: dict[str, Any]) -> Any:
    """Watcher of ops: an elementwise op that a composed function calls itself is an operator for modes as well.

    The update of an optimizer, which is one kernel, is composed of operators. Of other ops only the mode itself decides.
    """
    if not modes.dispatch or method != "run":
        return PLAIN
    if isinstance(op, FusedUpdate) and not static:
        return op.compose(*args)
    if not isinstance(op, Map) or static:
        return modes.dispatch[-1]._call_op(op, args, static)
    from .aten_calls import by_op

    answer = by_op(op, args)
    return modes.dispatch[-1]._call_op(op, args, static) if answer is PLAIN else answer


# ---- From public functions to operators -----------------------------------------------------------------------------------------


@functools.cache
def paths() -> dict[Any, str]:
    """Public functions and methods -> the names of their operators."""
    listed = set(aten_operators.names())
    result: dict[Any, str] = {}
    for path, function in FUNCTIONS.items():
        space, _, last = path.rpartition(".")
        name = f"{space}_{last}" if space in ("linalg", "fft", "special") else last
        try:
            result.setdefault(function, name if name in listed or space == "nn.functional" else path)
        except TypeError:
            continue
    for name, member in vars(Tensor).items():
        if callable(member):
            result.setdefault(member, name)
        elif isinstance(member, property):
            result.setdefault(member.__get__, name)
    result[vars(Tensor)["where"]] = "Tensor.where"  # the condition is its second argument
    result[FUNCTIONS["nn.functional.unfold"]] = "nn.functional.unfold"  # the operator `unfold` is the method
    return result


# ---- Backward passes ---------------------------------------------------------------------------------------------------------------


class _ToldPass(engine._Pass):
    """A backward pass that adds cotangents up, and gives leaves their gradients, by operators that handlers are told of."""

    def _sum(self, a: Any, b: Tensor) -> Any:
        if not _is_told(b):
            return super()._sum(a, b)
        return (a.tensor if type(a) is engine._Sum else a) + b

    @staticmethod
    def _add_into(target: Tensor, ct: Tensor) -> Tensor:
        refuse_layouts((target.spec, ct.spec))  # the pass adds a dense cotangent to a sparse one itself
        return target.add_(ct)

    def _finish(self, leaf: Any, ct: Any, lone: bool) -> None:
        tensor = leaf.tensor()
        tells = type(ct) is not engine._Sum and _is_told(ct) and tensor is not None and self.accumulate
        if tells and not self.create_graph and tensor.__dict__.get("_grad") is None:
            ct, lone = _own_gradient(ct, tensor), True
        super()._finish(leaf, ct, lone)


def _is_told(ct: Tensor) -> bool:
    return bool(modes.dispatch) or type(ct) is not Tensor and handles_dispatch(type(ct))


def _own_gradient(ct: Tensor, tensor: Tensor) -> Tensor:
    """The first gradient of a leaf, with memory in the order of the leaf's."""
    wanted = tensor.spec
    if ct.spec.stride == wanted.stride if wanted.is_dense else ct.spec.is_contiguous:
        return ct.detach()
    if wanted.is_dense:
        copy = ct.new_empty_strided(
            wanted.shape, wanted.stride, dtype=ct.dtype, layout=strided, device=ct.device
        )
        return copy.copy_(ct)
    return ct.clone(memory_format=contiguous_format)


overrides.dispatcher = dispatched
engine.set_pass_type(_ToldPass)
