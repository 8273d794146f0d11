"""Where machine code takes the place of Python functions: operators of Tensor, public functions and methods of elementwise ops.

The functions of `families/calls.py` stay what they are, and stay the definition. An operator of Tensor is a C function in a slot
of the class: that of machine code takes the place of CPython's. A public function keeps its identity and its signature, because
programs and handlers compare functions; its code is exchanged for code that calls machine code, or a copy of the function with
its own code (`core/code_exchange.py`).

This happens when a process has made ENOUGH storages, so that imports and short scripts do not pay for it. If the machine code
is not in the disk cache, a thread compiles it meanwhile. WEFT_CALLS=python switches all this off, WEFT_CALLS=native does it when
weft is imported.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from inspect import getattr_static
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any, NamedTuple

from ..core import modes
from ..core.code_exchange import code_like, displace, exchange_code, own_code
from ..core.dispatch import fast_path_switches, watchers
from ..core.dtype import DType, compute_type, float32, float64, when_plans_expire
from ..core.locks import new_lock
from ..core.registry import FUNCTIONS
from ..core.settings import refuse_setting
from ..core.spec import Spec
from ..core.subclasses import plain_class_hooks
from ..core.tensor import Tensor, plain_type_hooks, plain_types
from ..engine import call_tables, host, storages
from ..engine.background import at_end_of_warming
from ..engine.call_tables import ENTRIES_OF_ALL_OPS, STRIDES, WORDS, Table, key_of_objects
from ..engine.kernel import sharing_words
from ..engine.memory import FENCE
from ..engine.objects import (
    add_memory,
    add_object,
    layout_is_known,
    module_ir,
    set_slot,
    slot,
)
from . import calls, map_calls, op_calls
from .calls import Shortcut
from .map import Map, Plan


class Part(NamedTuple):
    """Functions of machine code that another file contributes to the module."""

    functions: Callable[[], list]
    prepare: Callable[[], None]  # makes the names known that the functions refer to
    names: tuple[str, ...] = ()  # functions whose addresses `install` gets
    install: Callable[[dict[str, int]], None] = lambda addresses: None


parts: list[Part] = []

# Storages. Installing the machine code takes 35 ms (AMD Zen 3), as much as 20,000 to 40,000 calls save. So a process loses at most
# about as much by waiting as it would lose by not waiting, and programs of a few seconds or with ever new sizes do not pay.
ENOUGH = 20_000

_watched = host.keepalive((ctypes.c_uint8 * 2)())  # see `Call` in map_calls.py
# The class besides Tensor whose objects are plain tensors, once it exists (`nn.Parameter`); machine code reads its address.
_other_plain_type = host.keepalive(ctypes.c_void_p(id(Tensor)))


@plain_type_hooks.append
def _set_plain_type(cls: type) -> None:
    _other_plain_type.value = id(host.keepalive(cls))


@fast_path_switches.append
def _set_watched(on: bool) -> None:
    _watched[0] = not on


@modes.mode_switches.append
def _set_modes(on: bool) -> None:
    _watched[1] = on


when_plans_expire.append(call_tables.forget_records)


# ---- Records -------------------------------------------------------------------------------------------------------------


def _words(plan: Any, key: tuple) -> bytes | None:
    """The words of a record for the calls of this plan; None if machine code cannot run it."""
    entry, allocate = plan.entry, plan.allocate
    if plan.deferred is not None and plan.habit is None:
        return None
    if type(entry) is not BuiltinFunctionType or type(allocate) is not BuiltinFunctionType:
        return None  # another device, or a launch of several kernels
    row, *sharing = sharing_words(entry) or (entry.__self__, 0, 0, 0, 0, 0)
    if type(row) is not int or not row:  # a kernel that is no row
        return None
    tensors = [each for each in key if type(each) is Spec]
    if not tensors:  # `torch.mul(2, 2.5)`; machine code finds the numbers behind a tensor
        return None
    number = _number(plan.operand_dtype, [each for each in key if type(each) is not Spec])
    operands = 1 + len(tensors)
    if number is None or operands > STRIDES:
        return None
    meta = struct.unpack(f"{2 + operands}q", ctypes.string_at(plan.meta, 8 * (2 + operands)))
    flat = meta[0] == 1
    strides = meta[2:] if flat else ()
    limited, turns = plan.limits is not None, plan.habit.address if plan.habit else 0
    values = row, plan.meta, plan.count, number, limited, operands, *sharing, turns, flat, *strides
    return struct.pack(f"{len(values)}q", *values).ljust(8 * len(WORDS), b"\0")


def _number(dtype: DType, kinds: Sequence[type]) -> int | None:
    """As what a kernel that computes in `dtype` reads numbers of these types; None if machine code does not convert them."""
    if not kinds:
        return 0
    compute = compute_type(dtype)
    if compute is float32:
        return map_calls.FLOAT32
    if compute is float64:
        return map_calls.FLOAT64
    return map_calls.INTEGER if compute.kind in "iu" and all(kind is int for kind in kinds) else None


def _add_record(table: Table, plan: Any, words: bytes | None, keys: Sequence[Any]) -> None:
    """Add the record of a plan; machine code leaves the calls with these keys alone if there is no plan or there are no words."""
    key = key_of_objects(keys)
    if words is None:
        table.add((key, None, keys))
    else:
        table.add((key, words, plan.spec, plan.allocate.__self__, _node_parts(plan.record), plan, keys))


def _node_parts(recorder: Any) -> tuple | bool | None:
    """What machine code makes nodes of: None if no call has been recorded, False if machine code does not record such calls."""
    if recorder is None:
        return None
    parts = getattr(recorder, "parts", None)
    return False if parts is None else (parts[0], recorder.__self__, parts[1])


def _keys(operands: Sequence[Any]) -> tuple:
    return tuple([each.spec if type(each) in plain_types else type(each) for each in operands])


def _learner(plans: Any, table: Callable[[], Table], reflects: bool) -> Callable[..., None]:
    """The function that adds a record for operands of a call that has just been run by the Python function."""

    def learn(*operands: Any) -> None:
        key = _keys(operands)
        plan = plans.get(key) if reflects or type(key[0]) is Spec else None
        words = _words(plan, key) if type(plan) is Plan else None
        _add_record(table(), plan, words, key if len(key) > 1 else (*key, None))

    return learn


def _learner_of_shortcut(owner: object, shortcut: Shortcut) -> Callable[..., None]:
    """As `_learner`, for a shortcut."""
    op, arity, fits, small, method = shortcut

    def learn(*operands: Any) -> None:
        keys = _keys(operands)
        plan, words = None, None
        if (not arity or len(keys) == arity) and fits(*keys):
            plan, words = _plan_of_method(op, method, keys)
        if words is not None and small:
            words = words[: 8 * _LIMITED] + struct.pack("q", 1) + words[8 * _LIMITED + 8 :]
        _add_record(_shortcut_tables[method], plan, words, (owner, *keys))

    return learn


_LIMITED = WORDS.index("limited")
_shortcut_tables: dict[str, Table] = {}
_PLANS = {"run": "plans", "inplace": "inplace_plans", "into": "into_plans"}


def _plan_of_method(op: Map, method: str, keys: tuple) -> tuple[Any, bytes | None]:
    """The plan for a method with operands of these specs and types, and the words of its record."""
    simple = method == "run" or op.is_kernel and type(op).write is Map.write
    plan = getattr(op, _PLANS[method]).get(keys) if simple else None
    return plan, _words(plan, keys[1:] if method == "into" else keys) if type(plan) is Plan else None


def _learner_of_method(called: str, table: Callable[[], Table]) -> Callable[..., None]:
    """As `_learner`, for a method of ops."""

    def learn(op: Any, *operands: Any) -> None:
        keys = _keys(operands)
        plan, words = _plan_of_method(op, called, keys)
        _add_record(table(), plan, words, (op, *keys))

    return learn


# ---- Public functions and methods --------------------------------------------------------------------------------------------


def _code_in(outer: Callable, called: str = "function") -> CodeType:
    """The code of a function that `outer` defines."""
    (found,) = [
        each for each in outer.__code__.co_consts if type(each) is CodeType and each.co_name == called
    ]
    return found


class _Form(NamedTuple):
    """What takes the place of a function's code: source, in which `native` and `python` stand for the builtin and for a copy of
    the function with its own code; the builtin; and the free variable that holds the function of the op, if it is another.
    """

    source: str
    called: str
    inner: str = ""


_UNARY = """def function(input, *, out=None):
    if out is None:
        return 'native'(input)
    return 'into'(out, input)"""
_BINARY = """def function(input, other, *, out=None):
    if out is None:
        return 'native'(input, other)
    return 'into'(out, input, other)"""
_INPLACE_UNARY = """def function(self):
    return 'native'(self)"""
_INPLACE = """def function(self, other):
    return 'native'(self, other)"""
_SCALED = """def function(input, other, *older, alpha=1, out=None):
    if alpha is 1 and not older:
        if out is None:
            return 'native'(input, other)
        return 'into'(out, input, other)
    return 'python'(input, other, *older, alpha=alpha, out=out)"""
_SCALED_INPLACE = """def function(self, other, *older, alpha=1):
    if alpha is 1 and not older:
        return 'native'(self, other)
    return 'python'(self, other, *older, alpha=alpha)"""

_SHORTCUT = """def function(*args, **kwargs):
    if not kwargs:
        return 'native'(*args)
    return 'python'(*args, **kwargs)"""

# The identity of a function's code -> what takes its place.
_FORMS = {
    id(_code_in(calls.unary)): _Form(_UNARY, "call_unary"),
    id(_code_in(calls.binary)): _Form(_BINARY, "call_binary"),
    id(_code_in(calls.inplace_unary, "method")): _Form(_INPLACE_UNARY, "call_inplace_unary"),
    id(_code_in(calls.inplace_of, "method")): _Form(_INPLACE, "call_inplace_binary"),
    id(_code_in(calls.with_alpha)): _Form(_SCALED, "call_binary", "plain"),
    id(_code_in(calls.with_alpha, "method")): _Form(_SCALED_INPLACE, "call_inplace_binary", "plain_inplace"),
}


def _candidates() -> Iterator[FunctionType]:
    """Public functions and methods, each once. Operators keep their code, for calls that a slot does not take."""
    seen = {id(vars(Tensor)[each]) for each in _operator_methods()}
    members: list[Any] = [*FUNCTIONS.values(), *vars(Tensor).values()]
    for each in members:
        if isinstance(each, FunctionType) and id(each) not in seen:
            seen.add(id(each))
            yield each


def _cells(function: FunctionType) -> dict[str, Any]:
    """The free variables of a function."""
    return {
        name: cell.cell_contents
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ())
    }


def _exchanges(addresses: dict[str, int]) -> Iterator[tuple[FunctionType, CodeType]]:
    candidates = list(_candidates())
    for function in candidates:
        form = _FORMS.get(id(own_code(function)))  # hashing the code itself takes 20 us
        if form is None:
            continue
        variables = _cells(function)
        if form.inner:
            variables = _cells(variables[form.inner])
        if variables["plain"] is Tensor:  # not an op that does more than to run a kernel
            python = displace(function)
            table = _new_table(variables, python=python)
            native = host.builtin(addresses[form.called], function.__name__, table.bound)
            into = (
                _shortcut_builtin(
                    addresses, Shortcut(variables["op"], 0, _always, False, "into"), _with_out(python)
                )
                if "'into'" in form.source
                else None
            )
            yield (
                function,
                code_like(function.__code__, form.source, native=native, python=python, into=into),
            )
    for function in candidates:
        found = calls.shortcut_of(function)
        if found is not None and found.op.is_kernel:
            python = displace(function)
            native = _shortcut_builtin(addresses, found, python)
            yield function, code_like(function.__code__, _SHORTCUT, native=native, python=python)


def _shortcut_builtin(addresses: dict[str, int], shortcut: Shortcut, python: Callable) -> Callable:
    """The builtin of a shortcut, which leaves unusual calls to `python`."""
    owner = object()
    table = Table(entries=0, python=python, learn=_learner_of_shortcut(owner, shortcut), owner=owner)
    return host.builtin(addresses[f"shortcut.{shortcut.method}"], shortcut.op.name, table.bound)


def _always(*kinds: Any) -> bool:
    return True


def _with_out(function: Callable) -> Callable:
    return lambda out, *operands: function(*operands, out=out)


def _new_table(variables: dict[str, Any], reflects: bool = False, **objects: Any) -> Table:
    """The table for a function of `families/calls.py` with these free variables."""
    learn = _learner(variables["plans"], lambda: table, reflects)
    table = Table(learn=learn, **objects)
    return table


# ---- Operators ---------------------------------------------------------------------------------------------------------------

_REFLECTED = _code_in(calls.reflected)


def _operator_methods() -> list[str]:
    return [
        *(name for names in map_calls.BINARY_SLOTS.values() for name in names),
        *map_calls.UNARY_SLOTS.values(),
        *map_calls.INPLACE_SLOTS.values(),
        *map_calls.COMPARISONS,
        *map_calls.POWER,
    ]


def _prepare_operators() -> None:
    """Make the names known that the machine code of operators refers to."""
    members = vars(Tensor)
    for called, (method, reflected) in map_calls.BINARY_SLOTS.items():
        function, other = members[method], members[reflected]
        reflects = own_code(other) is _REFLECTED
        _add_table(called, _new_table(_cells(function), reflects, python=function, reflected=other))
    for called, method in map_calls.UNARY_SLOTS.items():
        _add_table(called, _new_table(_cells(members[method]), python=members[method]))
    for called, method in map_calls.INPLACE_SLOTS.items():
        _add_table(called, _new_table(_cells(_cells(members[method])["method"]), python=members[method]))
    _prepare_powers()
    tables = [_new_table(_cells(members[each]), python=members[each]) for each in map_calls.COMPARISONS]
    addresses = host.keepalive((ctypes.c_size_t * len(tables))(*[each.address for each in tables]))
    add_memory("comparisons", ctypes.addressof(addresses))
    add_memory("python.tp_richcompare", slot(Tensor, "tp_richcompare"))


def _prepare_powers() -> None:
    members = vars(Tensor)
    power, reflected = (members[each] for each in map_calls.POWER)
    variables = _cells(calls.powers[None])
    _add_table("nb_power", _new_table(variables, python=power, reflected=reflected))
    words = []
    for exponent, function in calls.powers.items():
        if exponent is not None:
            words.append(struct.pack("dQ", exponent, _power_table(function, power).address))
    memory = host.keepalive(ctypes.create_string_buffer(struct.pack("q", len(words)) + b"".join(words)))
    add_memory("powers", ctypes.addressof(memory))


def _power_table(function: FunctionType, power: FunctionType) -> Table:
    """The table for a power whose exponent has an op of its own; integers to this power are computed otherwise."""
    learn = _learner(_cells(function)["plans"], lambda: table, False)
    table = Table(
        python=power, learn=lambda tensor, exponent: tensor.spec.dtype.kind in "fc" and learn(tensor)
    )
    return table


def _add_table(called: str, table: Table) -> None:
    add_memory(f"table.{called}", table.address)
    add_memory(f"python.{called}", slot(Tensor, called))


def _install_operators(addresses: dict[str, int]) -> None:
    """Put the machine code of operators into Tensor and into subclasses that use all of its operators."""
    members = vars(Tensor)

    def put(cls: Any) -> None:
        if all(getattr_static(cls, each) is members[each] for each in _operator_methods()):
            for called in map_calls.SLOTS:
                set_slot(cls, called, addresses[f"slot.{called}"])
            for subclass in cls.__subclasses__():
                put(subclass)

    put(Tensor)
    plain_class_hooks.append(put)


# ---- Methods of ops --------------------------------------------------------------------------------------------------------


def _prepare_methods() -> None:
    """Make the names known that the machine code of methods of ops refers to."""
    for called in op_calls.METHODS:
        table = _method_table(called)
        add_memory(f"table.{called}", table.address)
        _shortcut_tables[called] = table = Table(ENTRIES_OF_ALL_OPS)
        add_memory(f"table.shortcut.{called}", table.address)


def _method_table(called: str) -> Table:
    learn = _learner_of_method(called, lambda: table)
    table = Table(ENTRIES_OF_ALL_OPS, python=vars(Map)[called], learn=learn)
    return table


def _install_methods(addresses: dict[str, int]) -> None:
    called_by_python = vars(Map)["run"]
    for called in op_calls.METHODS:
        setattr(Map, called, host.method(Map, called, addresses[f"op.{called}"], host.METH_FASTCALL))
    if vars(Map)["__call__"] is called_by_python:  # no watcher is asked, see `Op.__call__`
        Map.__call__ = vars(Map)["run"]  # type: ignore[method-assign]


# ---- When --------------------------------------------------------------------------------------------------------------------

_NAMES = (
    *("remember", "forget"),
    *map_calls.BUILTINS,
    *(f"slot.{each}" for each in map_calls.SLOTS),
    *(f"{kind}.{each}" for kind in ("op", "shortcut") for each in op_calls.METHODS),
)
_OBJECTS = {
    "tensor": Tensor,
    "float": float,
    "int": int,
    "tuple": tuple,
    "one": 1,
    "enabled": "enabled",
    "watchers": watchers,
}


@functools.cache
def _ir() -> str:
    return module_ir(
        [
            *call_tables.functions(),
            *map_calls.functions(),
            *op_calls.functions(),
            *(f for part in parts for f in part.functions()),
        ]
    )


_lock = new_lock()


def install() -> None:
    """Put the machine code into its places, if it is not there yet."""
    with _lock:
        _install()


@functools.cache
def _install() -> None:
    for key, value in _OBJECTS.items():
        add_object(key, value)
    add_memory("watched", ctypes.addressof(_watched))
    add_memory("other_plain_type", ctypes.addressof(_other_plain_type))
    for part in parts:
        part.prepare()
    storages.allocator(64)  # makes known what it allocates with
    _prepare_operators()
    _prepare_methods()
    names = [*_NAMES, *(name for part in parts for name in part.names)]
    # The code has few loops. Vectorizing it takes as long again (0.35 s more on AMD Zen 4), and calls do not become faster.
    addresses = dict(zip(names, host.compile_ir(_ir(), *names, vectorize=False)))
    Table.code = addresses
    collecting = gc.isenabled()
    gc.disable()  # what is made here lives for ever; looking through it would take 35 ms
    try:
        exchange_code(list(_exchanges(addresses)))
        _install_operators(addresses)
        _install_methods(addresses)
        for part in parts:
            part.install(addresses)
        for function in _followers:
            function()
    finally:
        if collecting:
            gc.enable()


_followers: list[Callable[[], None]] = []


def when_installed(function: Callable[[], None]) -> None:
    """Call `function` when the machine code is in its places: now, or later, or never."""
    with _lock:
        if _install.cache_info().currsize:
            function()
        else:
            _followers.append(function)


def _install_soon() -> None:
    if not Table.code:
        call_tables.patience.value = call_tables.PATIENCE
    if host.cached(_ir(), host.SIMPLIFIED) is not None:
        install()
    else:
        threading.Thread(target=install, name="weft compiles calls").start()


def arrange() -> None:
    """Install the machine code when the time has come, see the top of this file."""
    chosen = os.environ.get("WEFT_CALLS", "")
    if chosen not in ("", "python", "native"):
        refuse_setting(f"WEFT_CALLS must be 'python' or 'native', not {chosen!r}")
    if FENCE or chosen == "python" or not layout_is_known():
        return
    if chosen == "native":
        install()
    else:
        storages.when_busy(ENOUGH, _install_soon)
        at_end_of_warming(install)
