"""What is replayed: the public functions and the operators of Tensor, and the records that `replay_calls.py` reads.

A function is replayed if its call is decided by the metadata of its tensors and by its other arguments, see NAMES. The second call
with the same key runs the Python function under a watcher, and notes what it did: it returned its first argument, a view of it, the
number in it, or the result of one op. An op says by `launches_of` what it launches. Anything else is noted as not to be replayed.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

from ..core import autocast, grad_mode, tensor
from ..core.checking import write_checks
from ..core.code_exchange import code_like, displace, exchange_code
from ..core.device import CPU, default_device_hooks, device
from ..core.dispatch import PLAIN, unwatch, watch, watchers
from ..core.dtype import DType, bool_, float32, float64, int32, int64
from ..core.filling import when_filling_changes
from ..core.layout import Layout, MemoryFormat
from ..core.layout_calls import rules_of
from ..core.recording import tape
from ..core.registry import FUNCTIONS
from ..core.spec import Spec
from ..core.tensor import Tensor, address, make
from ..core.warn import issued
from ..engine import call_tables, host, objects
from ..engine.call_tables import Table
from ..families import native_calls
from ..families.custom_vjp import CustomVjp
from ..families.indexed import Gather
from ..families.kernel_graph import KernelGraph
from ..families.launches import OBJECT, OF_INPUT, OF_RESULT, Launches, address_of_faults
from ..families.map import Map, scalar_arguments
from ..families.map import launches_of as launches_of_map
from ..families.product import Product
from ..families.rearrange import Rearrange
from ..families.reduce import Reduce
from ..ops.assembly.copying import CopyTo, plan_of_copy
from ..ops.creation.creation import filled_plans
from ..ops.creation.random_launches import drawn, launches_of_draws
from . import replay_calls as calls
from .graph import Leaf, Node
from .saved import Saved

# The functions that are replayed, in all of their forms.
NAMES = """
    t transpose swapaxes swapdims permute movedim view reshape flatten unsqueeze squeeze expand expand_as view_as select narrow
    contiguous detach clone sum mean max amax min amin prod argmax argmin any all logsumexp mm bmm matmul softmax log_softmax relu
    cat stack where pow chunk split unbind index_select gather flip fliplr flipud roll
    diag diagflat diag_embed tril triu to float double half bfloat16 int long short byte char
    nn.functional.linear nn.functional.softmax nn.functional.log_softmax nn.functional.relu nn.functional.mse_loss
    nn.functional.cross_entropy
""".split()

# Functions whose result is the number in their tensor, and those whose results are no tensors and follow from the metadata.
READING = "item tolist __float__ __int__ __index__ __bool__".split()
ASKING = ("is_contiguous",)
# Constructors, and what they fill a new tensor with.
CREATING = {f"{form.format(name)}": value for form in ("{}", "{}_like", "new_{}")
            for name, value in (("empty", None), ("zeros", 0), ("ones", 1))}  # fmt: skip
# Functions whose result has values that follow from their arguments alone, if no argument besides the tensor whose metadata they
# read is a tensor. By their `__name__`.
CONSTANTS = """
    arange eye linspace logspace full scalar_tensor tril_indices triu_indices fft_fftfreq fft_rfftfreq
""".split()
CONSTANTS_LIKE = ("full_like", "new_full")
# Bytes of such a result, which its record keeps. A replayed call copies them, which takes 0.1 us for 4 KiB (AMD Zen 4).
MOST_BYTES = 1 << 14
# Functions that fill a new tensor with random numbers, those of the second line one like their tensor.
DRAWING = "rand randn randint normal randperm".split()
DRAWING_LIKE = "rand_like randn_like randint_like bernoulli".split()
# A call that takes longer is not learned: it would run twice more, and gain a thousandth of its time.
MOST_SECONDS = 1e-3
MOST_READ = 1000  # elements of a list: no signal is handled while they are read

_NUMBERS = {
    (float, float32): calls.FLOAT32,
    (float, float64): calls.FLOAT64,
    (int, int64): calls.INT64,
    (int, int32): calls.INT32,
    (bool, bool_): calls.BOOL,
}


class Refused(Exception):
    """A call that is not replayed."""


# ---- Records -------------------------------------------------------------------------------------------------------------


def _tensors(values: Sequence[Any]) -> list[Tensor]:
    """The tensors among the arguments of a call, in the order in which machine code finds them."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif type(value) in (tuple, list):
            found += [each for each in value if isinstance(each, Tensor)]
    return found


def _record(
    called: str, key: bytes, given: Sequence[Any], ops: list, result: Any, places: Sequence[tuple[int, int]]
) -> tuple:
    """The record of a call with these arguments, which made the calls `ops` of ops. `places` are those of an index."""
    alive: list[Any] = [given_part for value in given for given_part in _parts(value)]
    tensors = _tensors(given)
    try:
        if called in ASKING:
            recipe, spec, node = struct.pack("q", calls.OBJECT_ITSELF), result, None
        elif called in READING:
            recipe, spec, node = _read(tensors, result), None, None
        elif called in CREATING:
            recipe, spec, node = _created(CREATING[called], result, alive), None, None
        elif called in CONSTANTS or called in CONSTANTS_LIKE:
            if len(tensors) != (called in CONSTANTS_LIKE):
                raise Refused
            recipe, spec, node = _constant(result, alive), None, None
        else:
            recipe, spec, node = _described(tensors, ops, result, alive, places)
    except Refused:
        recipe, spec, node = struct.pack("q", calls.NEVER), None, None
    return key, recipe, spec, node, tuple(alive)


def _parts(value: Any) -> Iterator[Any]:
    """The objects of an argument whose addresses are in the key."""
    if type(value) in (tuple, list):
        for each in value:
            yield from _parts(each)
    elif isinstance(value, Tensor):
        yield value.spec
    else:
        yield value


def _described(
    tensors: list[Tensor], ops: list, result: Any, alive: list, places: Sequence[tuple[int, int]]
) -> tuple[bytes, Any, Any]:
    if tensors and result is tensors[0] and not ops:
        return struct.pack("q", calls.SAME), None, None
    if type(result) is Tensor and len(tensors) == 1 and result._storage is tensors[0]._storage:
        return _view(tensors[0], result, alive, places)
    results = result if isinstance(result, tuple) else (result,)
    if places or not results or not all(type(each) is Tensor and not each.__dict__ for each in results):
        raise Refused
    if isinstance(result, tuple) and any(each._autograd is not None for each in results):
        raise Refused
    if len(tensors) == 1 and all(each._storage is tensors[0]._storage for each in results):
        return _views(tensors[0], results, alive), None, None
    if len(ops) != 1 or ops[0][3] is not result or any(each._base is not None for each in results):
        raise Refused
    op, args, static, _ = ops[0]
    recipe = _program(launches_of(op, args, static), tensors, result, alive)
    return recipe, None, _node(results[0], tensors, alive)


def _read(tensors: list[Tensor], result: Any) -> bytes:
    """The recipe of a call whose result is the number in a tensor, or a list of the numbers in a tensor of one dim."""
    spec = tensors[0].spec
    first = result[0] if type(result) is list and result else result
    kind = _NUMBERS.get((type(first), spec.dtype))
    if kind is None or len(tensors) != 1 or spec.conj or spec.neg or spec.device is not CPU:
        raise Refused
    if type(result) is not list and spec.numel == 1:
        return struct.pack("2q", calls.NUMBER, kind)
    if len(spec.shape) != 1 or len(result) != spec.numel or spec.numel > MOST_READ:
        raise Refused
    return struct.pack("4q", calls.NUMBERS, kind, spec.numel, spec.byte_stride[0])


def _created(value: Any, result: Any, alive: list) -> bytes:
    """The recipe of a constructor of dense tensors."""
    spec = _spec_of_new(result)
    allocate, launch, arguments = filled_plans[spec, value]
    given = [] if launch is None else [_RESULT, *map(_object, (*arguments, launch.meta, launch.count))]
    steps = [] if launch is None else [(launch.entry, given)]
    alive.append(launch)
    return _program(Launches([allocate], steps), [], result, alive)


def _spec_of_new(result: Any) -> Spec:
    """The Spec of the result of a constructor. Raises: Refused if it is more than a new tensor with numbers."""
    if (
        type(result) is not Tensor
        or result._autograd is not None
        or result._base is not None
        or result.__dict__
    ):
        raise Refused
    return result.spec


def _constant(result: Any, alive: list) -> bytes:
    """The recipe of a call that makes a tensor with these numbers. The record keeps the tensor, from which calls copy them."""
    spec = _spec_of_new(result)
    plan = plan_of_copy(spec, spec)
    if plan is None or spec.device is not CPU or not 0 < spec.nbytes <= MOST_BYTES or not spec.is_contiguous:
        raise Refused
    alive += [result, plan]
    given = [_RESULT, *map(_object, (address(result), plan.meta, plan.count))]
    return _program(Launches([plan.allocate], [(plan.entry, given)]), [], result, alive)


def _views(base: Tensor, views: Sequence[Tensor], alive: list) -> bytes:
    root = base if base._base is None else base._base
    words = [calls.VIEWS, len(views)]
    if type(views) is not tuple or base._autograd is not None:
        raise Refused
    for view in views:
        if view._base is not root or view.spec.dtype is not base.spec.dtype:
            raise Refused
        alive.append(view.spec)
        words += [view._byte_offset - base._byte_offset, id(view.spec)]
    return struct.pack(f"{len(words)}q", *words)


def _view(
    base: Tensor, view: Tensor, alive: list, places: Sequence[tuple[int, int]]
) -> tuple[bytes, Any, Any]:
    root = base if base._base is None else base._base
    if view._base is not None and view._base is not root:
        raise Refused
    recorded = view._autograd is not None
    if view.spec.dtype is not base.spec.dtype:  # depends on where the tensor starts
        raise Refused
    if recorded and not grad_mode.mode.enabled or view.__dict__ and not recorded:
        raise Refused
    if recorded and view._base is None:
        raise Refused
    steps = [base.spec.byte_stride[dim] for dim, _ in places]
    before = sum([step * start for step, (_, start) in zip(steps, places, strict=True)])
    by = view._byte_offset - base._byte_offset - before
    recipe = struct.pack(f"{3 + len(steps)}q", calls.VIEW, by, view._base is not None, *steps)
    return recipe, view.spec, _node(view, [base], alive, places)


def _is_bare(kind: type) -> bool:
    """Whether tuples of this class hold nothing but their items. From Python 3.14 on, tuples have a field for their hash."""
    return kind.__basicsize__ == tuple.__basicsize__ == object.__basicsize__ + 8 and not kind.__dictoffset__


_no_faults = host.keepalive(ctypes.c_int64())


def _program(launches: Launches, tensors: list[Tensor], result: Any, alive: list) -> bytes:
    """The recipe of a call that makes the result, a tensor or a tuple of them, by these launches."""
    several = isinstance(result, tuple)
    kind, results = type(result), result if several else (result,)
    if len(results) > calls.MOST_RESULTS or several and not _is_bare(kind):
        raise Refused
    scratch = 0 if launches.scratch is None else id(launches.scratch)
    faults = launches.faults or ctypes.addressof(_no_faults)
    words = [calls.PROGRAM, len(launches.steps), scratch, len(results), id(kind) if several else 0, faults]
    alive += [
        launches.keepalive,
        launches.scratch,
        kind,
        *launches.allocators,
        *(each.spec for each in results),
    ]
    for allocate, each in zip(launches.allocators, results, strict=True):
        words += [id(allocate), id(each.spec)]
    positions = {id(each): k for k, each in enumerate(tensors)}
    # An input's tensor, storage and address; a result's storage and tensor; scratch memory. Addresses with an offset follow.
    owned = 3 * len(tensors) + 2 * len(results) + 1
    for function, arguments in launches.steps:
        alive.append(function)
        words += [id(function), len(arguments)]
        if len(arguments) > calls.MOST_ARGUMENTS:
            raise Refused
        for source, value, offset in arguments:
            if source == OBJECT:
                alive.append(value)
                words += [source, id(value), 0]
            elif source == OF_INPUT:
                if id(value) not in positions:
                    raise Refused
                words += [source, positions[id(value)], offset]
            else:
                words += [source, value, offset]
            owned += offset != 0
    if owned > calls.MOST_OWNED:
        raise Refused
    return struct.pack(f"{len(words)}q", *words)


def _node(result: Tensor, tensors: list[Tensor], alive: list, places: Sequence[tuple[int, int]] = ()) -> Any:
    """How the node of a result is made again; None if there is none."""
    node = result._autograd
    if node is None:
        return None
    kind = type(node)
    plain = isinstance(node, Node) and kind.__basicsize__ == Node.__basicsize__ and not kind.__dictoffset__
    if not plain or node._notes is not None or type(node._saved) is not tuple:
        raise Refused
    edges = {id(each._autograd): k for k, each in enumerate(tensors) if each._autograd is not None}
    if len(edges) < sum(each._autograd is not None for each in tensors):
        raise Refused
    words = [len(node._edges), *(-1 if edge is None else edges[id(edge)] for edge in node._edges)]
    words.append(len(node._saved))
    first = len(node._saved) - len(places)
    for k, entry in enumerate(node._saved):
        if k < first:
            words += _saved(entry, result, tensors, alive)
        elif entry != places[k - first][1]:
            raise Refused
        else:
            words += calls.SAVED_POSITION, k - first
    return kind, node._spec, struct.pack(f"{len(words)}q", *words)


def _saved(entry: Any, result: Tensor, tensors: list[Tensor], alive: list) -> tuple[int, int]:
    if type(entry) is Saved:
        if entry.storage is result._storage and entry.edge == 0:
            return calls.SAVED_RESULT, 0
        for k, each in enumerate(tensors):
            if entry.storage is each._storage and (entry.start, entry.spec) == (each._byte_offset, each.spec):
                if entry.edge is each._autograd:
                    return calls.SAVED_INPUT, k
    elif entry is None or type(entry) in (bool, int, float, complex):
        alive.append(entry)
        return calls.VALUE, id(entry)
    raise Refused


# ---- What ops launch -----------------------------------------------------------------------------------------------------


_RESULT = (OF_RESULT, 0, 0)


def _input(tensor: Tensor, offset: int = 0) -> tuple[int, Any, int]:
    return OF_INPUT, tensor, offset


def _object(value: Any) -> tuple[int, Any, int]:
    return OBJECT, value, 0


@functools.singledispatch
def launches_of(op: Any, args: tuple, static: dict) -> Launches:
    """What a call `op(*args, **static)` launches. Raises: Refused if that is not known."""
    raise Refused


@launches_of.register
def _(op: Reduce, args: tuple, static: dict) -> Launches:
    params = static.get("params", ())
    key = static["dims"], static.get("keepdim", False), static.get("dtype"), len(params)
    plan = op.plans[(tuple([each.spec for each in args]), *key)]
    if not plan.results[0].numel:
        raise Refused
    results = [(OF_RESULT, k, 0) for k in range(len(plan.results))]
    numbers = [n for value in params for n in scalar_arguments(value, plan.operand_dtype.to_real())]
    given = [*results, *map(_input, args), *map(_object, (plan.reduced, *numbers, plan.meta, plan.count))]
    return Launches(plan.allocators, [(plan.entry, given)], keepalive=plan)


@launches_of.register
def _(op: Product, args: tuple, static: dict) -> Launches:
    plan = op.plans[args[0].spec, args[1].spec]
    if plan.entry is None:
        raise Refused
    given = [_RESULT, *map(_input, args), *map(_object, (plan.meta, plan.count))]
    return Launches([plan.allocate], [(plan.entry, given)], keepalive=plan)


@launches_of.register
def _(op: Map, args: tuple, static: dict) -> Launches:
    launches = op.launches(*args)
    if launches is None:
        raise Refused
    return launches


@launches_of.register
def _(op: CustomVjp, args: tuple, static: dict) -> Launches:
    launches = None if op.launches is None or static else op.launches(*args)
    if launches is None:
        raise Refused
    return launches


@launches_of.register
def _(op: CopyTo, args: tuple, static: dict) -> Launches:
    plan = plan_of_copy(args[0].spec, args[1])
    launches = None if plan is None else launches_of_map(plan, args[:1])
    if launches is None:
        raise Refused
    return launches


@launches_of.register
def _(op: Rearrange, args: tuple, static: dict) -> Launches:
    tensors, *rest = args
    plan = op.plans[(tuple(rest), *[each.spec for each in tensors])]
    steps = [
        (entry, [(OF_RESULT, 0, at), _input(tensors[source], start), _object(meta), _object(count)])
        for source, start, at, entry, meta, count in plan.copies
    ]
    if plan.woven is not None:
        given = [_RESULT, *map(_input, tensors), *map(_object, (plan.woven.meta, plan.woven.count))]
        steps.append((plan.woven.entry, given))
    return Launches([plan.allocate], steps, keepalive=plan)


@launches_of.register
def _(op: KernelGraph, args: tuple, static: dict) -> Launches:
    inputs, *rest = args
    statics = rest[0] if rest else static.get("static", ())
    if (rest[1:] and rest[1]) or static.get("numbers"):
        raise Refused
    launches = launches_of_graph(op, inputs, statics)
    if launches.written:
        raise Refused
    return launches


def launches_of_graph(op: KernelGraph, inputs: Sequence[Any], statics: tuple) -> Launches:
    """What a call of a kernel graph launches, if numbers are given and inputs are written to as well."""
    plan = op.plans[(*[None if each is None else each.spec for each in inputs], *statics)]
    launches = plan.launches
    if launches is None or plan.idle:
        raise Refused
    faults = 0 if plan.faults is None else address_of_faults(plan.faults)
    if plan.faults is not None and not faults:
        raise Refused
    steps = [
        (
            entry,
            [
                _input(inputs[value], offset) if kind == OF_INPUT else (kind, value, offset)
                for kind, value, offset in given
            ],
        )
        for entry, given in launches.steps
    ]
    return launches._replace(steps=steps, faults=faults, keepalive=plan)


@launches_of.register
def _(op: Gather, args: tuple, static: dict) -> Launches:
    input, indices, chosen = args
    plan = op.plans[(input.spec, chosen, *[index.spec for index in indices])]
    launch, faults = plan.launch, address_of_faults(plan.faults)
    if launch is None or not faults or input.spec.conj or input.spec.neg:
        raise Refused
    constants = map(_object, (launch.table, launch.meta, launch.count))
    given = [_RESULT, _input(input), *map(_input, indices), *constants]
    return Launches([plan.allocate], [(launch.entry, given)], None, faults, keepalive=plan)


# ---- Tables --------------------------------------------------------------------------------------------------------------


class Calls(Table):
    """The records of one function."""

    def __init__(self, python: Callable):
        super().__init__(ENTRIES, python=python, learn=functools.partial(_learn, self))
        self.called, self.python, self.learned = python.__name__, python, 0

    @functools.cached_property
    def key_of(self) -> Callable[..., bytes | None]:
        """The key of the call with these arguments, None if it has none."""
        return self.function("key_of", keywords=True)

    def learn(self, record: tuple) -> None:
        """Add a record; after too many, learn no more."""
        self.add(record)
        self.learned += 1
        if self.learned == MOST_LEARNED:
            self.set("learn", self.python)


ENTRIES = 128
# Of one function: one whose keys push each other out of its table must stop learning.
MOST_LEARNED = 500

default_device_hooks.append(call_tables.forget_records)
when_filling_changes.append(call_tables.forget_records)


def _learn(table: Calls, /, *args: Any, **kwargs: Any) -> Any:
    """Run the Python function, and note what it does."""
    key = None if rules_of((*args, *kwargs.values())) else table.key_of(*args, **kwargs)
    if key is None:
        return table.python(*args, **kwargs)
    if table.called in DRAWING or table.called in DRAWING_LIKE:
        return _learn_draws(table, key, args, kwargs)
    before, warned, start = _versions(args, kwargs), issued.count, time.perf_counter()
    result = table.python(*args, **kwargs)
    if time.perf_counter() - start > MOST_SECONDS or issued.count != warned or rules_of((result,)):
        return result
    if _versions(args, kwargs) != before:  # the function writes into an argument, so it must not run again
        return result
    ops: list = []
    storages: set[Any] = set()
    copies = [_stand_in(value, storages) for value in (*args, *kwargs.values())]
    given, named = copies[: len(args)], dict(zip(kwargs, copies[len(args) :]))
    try:
        seen = _watched(table.python, given, named, ops)
        again = table.python(*given, **named)  # not watched, because watchers change how a call is recorded
    except RuntimeError:  # a copy that requires grad is a leaf, which relu(inplace=True) must not write to
        return result
    if ops and (ops[-1][3] is seen or type(ops[-1][3]) is tuple and _is_made_of(seen, ops[-1][3])):
        ops[-1] = (*ops[-1][:3], again)
    places = _places(copies) if table is _of_methods["__getitem__"] else ()
    table.learn(_record(table.called, key, (*copies, tuple(kwargs)), ops, again, places))
    return result


def _learn_draws(table: Calls, key: bytes, args: Sequence[Any], kwargs: dict) -> Any:
    """As `_learn`, for a function that draws random numbers."""
    warned, given = issued.count, (*args, *kwargs.values())
    result, draws = drawn(table.python, args, kwargs)
    if issued.count != warned:
        return result
    alive = [part for value in (*given, tuple(kwargs)) for part in _parts(value)]
    try:
        spec = _spec_of_new(result)
        if len(_tensors(given)) != (table.called in DRAWING_LIKE) or spec.device is not CPU:
            raise Refused
        launches = launches_of_draws(table.called, result, draws)
        if launches is None:
            raise Refused
        recipe = _program(launches, [], result, alive)
    except Refused:
        recipe = struct.pack("q", calls.NEVER)
    table.learn((key, recipe, None, None, tuple(alive)))
    return result


def _versions(args: Sequence[Any], kwargs: dict[str, Any]) -> list[int]:
    """How often the memory of each tensor was written to."""
    return [each._storage.version for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]


def _is_made_of(result: Any, parts: tuple) -> bool:
    """Whether a result is a tuple of these tensors, such as one with names."""
    same_length = isinstance(result, tuple) and len(result) == len(parts)
    return same_length and all(a is b for a, b in zip(result, parts, strict=True))


def _places(args: Sequence[Any]) -> list[tuple[int, int]]:
    """The dims and the starts of the ints and slices of an index, if its key has them without their places."""
    tensor, index = args
    items = index if type(index) is tuple else (index,)
    if not all(type(each) in (int, slice) for each in items):
        return []
    sizes = tensor.spec.shape
    starts = [
        each % sizes[k] if type(each) is int else each.indices(sizes[k])[0] for k, each in enumerate(items)
    ]
    return list(enumerate(starts))


def _stand_in(value: Any, storages: set) -> Any:
    """The argument, with a tensor of its own in place of each tensor: no two of them are one object, or share memory or an edge.

    So it is plain which operand of an op, and which value that a node saves, comes from which argument.
    """
    if type(value) in (tuple, list):
        return type(value)([_stand_in(each, storages) for each in value])
    if not isinstance(value, Tensor):
        return value
    storage = value._storage
    if storage in storages:
        storage = storage.clone()
    storages.add(storage)
    found = make(storage, value._byte_offset, value.spec)
    found._base = value._base
    if value._autograd is not None:
        found._autograd = Leaf(found)
    return found


def _watched(function: Callable, args: Sequence[Any], kwargs: dict, ops: list) -> Any:
    """Call the function, and note the calls of ops that it makes itself: (op, arguments, keyword arguments, result)."""
    thread, inside = threading.get_ident(), False

    def watcher(op: Any, method: str, given: tuple, static: dict) -> Any:
        nonlocal inside
        if inside or threading.get_ident() != thread:
            return PLAIN
        if method != "run":
            ops.append((None, (), {}, None))
            return PLAIN
        inside = True
        try:
            result = op.run(*given, **static)
        finally:
            inside = False
        ops.append((op, given, static, result))
        return result

    watch(watcher, plain=True)
    try:
        return function(*args, **kwargs)
    finally:
        unwatch(watcher)


# ---- Installing ------------------------------------------------------------------------------------------------------------

_SOURCE = """def function(*args, **kwargs):
    return 'native'(*args, **kwargs) if kwargs else 'native'(*args)"""

_SLOTS = {
    "nb_float": "__float__", "nb_int": "__int__", "nb_index": "__index__", "nb_bool": "truth",
    "nb_matrix_multiply": "product", "mp_subscript": "__getitem__",
}  # fmt: skip
ADDRESSES = (
    "key_of",
    "replayed",
    *(f"slot.{each}" for each in _SLOTS.values()),
)

_of_methods: dict[str, Calls] = {}


def prepare() -> None:
    """Make the names known that the machine code refers to."""
    known = {
        "none_type": type(None), "bool": bool, "ellipsis": type(...), "dtype": DType, "memory_format": MemoryFormat, "slice": slice,
        "layout": Layout, "device": device, "str": str,
        "list": list, "recorded_view": tape.recorded_view,
        "watchers": watchers, "new_hooks": tensor.new_hooks, "autocasts": autocast.open_contexts,
    }  # fmt: skip
    for key, value in known.items():
        objects.add_object(key, value)
    objects.add_memory("patience", ctypes.addressof(call_tables.patience))
    for method in calls.METHODS:
        function = vars(Tensor)[method]
        objects.add_object(f"method.{method}", function)
        _of_methods[method] = Calls(displace(function))
        objects.add_memory(f"table.{method}", _of_methods[method].address)
    objects.add_object("method.__rmatmul__", vars(Tensor)["__rmatmul__"])


def install(addresses: dict[str, int]) -> None:
    """Put the machine code into its places."""
    exchanges = []
    for function in _functions():
        write_checks(function)
        table = _of_methods.get(function.__name__) or Calls(displace(function))
        native = host.builtin(addresses["replayed"], function.__name__, table.bound, keywords=True)
        exchanges.append((function, code_like(function.__code__, _SOURCE, native=native)))
    exchange_code(exchanges)
    for slot, called in _SLOTS.items():
        objects.set_slot(Tensor, slot, addresses[f"slot.{called}"])


def _functions() -> Iterator[FunctionType]:
    seen: set[int] = set()
    for each in (
        *NAMES,
        *READING,
        *ASKING,
        *CREATING,
        *CONSTANTS,
        *CONSTANTS_LIKE,
        *DRAWING,
        *DRAWING_LIKE,
        *calls.METHODS,
    ):
        for found in (FUNCTIONS.get(each.replace("fft_", "fft.")), vars(Tensor).get(each)):
            if isinstance(found, FunctionType) and id(found) not in seen:
                seen.add(id(found))
                yield found


native_calls.parts.append(native_calls.Part(calls.functions, prepare, ADDRESSES, install))
