"""Defines the restricted unpickler for untrusted files.

A pickle is a program. This interpreter supports only the instructions that checkpoints need. Globals must be on an allowlist,
and the interpreter never imports a module. It calls allowed callables through functions that check their arguments
(`rebuild.py`). It allocates memory only for bytes that the file contains.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from ..core.tensor import Tensor
from .allowed import added_globals
from .names import checked_calls, default_globals, is_absent, is_known, tensor_types
from .nested import DimRange
from .rebuild import count_hashes, set_tensor

NESTING = 1000  # depth of marks and of nested tuples, because hashing a tuple is recursive
KEY = 1000  # objects in a key, because hashing visits all of them, and shared ones repeatedly
LINE = 1024  # bytes in the name of a global
BLOCKED = frozenset(("sys", "os", "posix", "nt"))  # modules that are blocked even if a user allows them

# From Python 2's names to Python 3's.
_RENAMED = {"__builtin__": "builtins", "copy_reg": "copyreg", "torch.tensor": "torch._tensor"}

# Errors that a damaged pickle causes in the interpreter, such as too few operands or operands of a wrong type.
_SIZED = (str, bytes, tuple, list, dict)
_DAMAGE = (
    IndexError, KeyError, TypeError, ValueError, AttributeError, OverflowError, struct.error, RecursionError,
)  # fmt: skip


class Stream:
    """Reads the instructions of a pickle from a file object. Never requests more bytes than the file has."""

    def __init__(self, file: Any):
        self.file = file
        start = file.tell()
        self.size = file.seek(0, io.SEEK_END)
        file.seek(start)

    def take(self, size: int) -> bytes:
        if size > 16 and size > self.size - self.file.tell():
            raise EOFError(f"the pickle ends within the {size} bytes wanted at byte {self.file.tell()}")
        content = self.file.read(size)
        if len(content) != size:
            raise EOFError("Ran out of input: the pickle ends without its last instruction")
        return content

    def line(self) -> str:
        content = self.file.readline(LINE)
        if not content.endswith(b"\n"):
            if len(content) < LINE:
                raise EOFError("Ran out of input: the pickle ends within the name of a global")
            raise pickle.UnpicklingError(f"the name of a global has more than {LINE} bytes")
        return content[:-1].decode("utf-8")


class Unpickler:
    """Reads one pickle from a file object. `persistent_load(id)` returns storages.

    Raises: pickle.UnpicklingError for pickles that are not allowed or damaged; EOFError if the file ends too early;
    NotImplementedError for objects that weft does not have; RuntimeError for tensors that exceed their storage.
    """

    def __init__(
        self, file: Any, persistent_load: Callable[[Any], Any] | None = None, encoding: str = "utf-8"
    ):
        self.stream = Stream(file)
        self.persistent_load = persistent_load
        self.encoding = encoding
        self.added = added_globals()
        self.called = {id(each): each for each in self.added.values()}
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        # id of a nested tuple -> (its depth, the number of objects that its hash visits, the tuple). Keeping the tuple alive
        # ensures that no other object gets its id.
        self.nested: dict[int, tuple[int, int, Any]] = {}
        # id of a dict -> (the number of keys for each hash, the dict).
        self.hashes: dict[int, tuple[Counter[int], Any]] = {}
        # Limits the number of objects that calls create, because a call can create many objects from a few bytes.
        self.budget = self.stream.size + 1000

    def load(self) -> Any:
        """Run the pickle and return the object."""
        take, steps = self.stream.take, _STEPS
        while True:
            (code,) = take(1)
            if code == _STOP:
                return self._pop()
            step = steps.get(code)
            if step is None:
                raise pickle.UnpicklingError(f"Unsupported operand {code}{_described(code)}")
            try:
                step(self)
            except _Outside as error:
                raise error.error from None
            except _DAMAGE as error:
                raise pickle.UnpicklingError(
                    f"instruction{_described(code)} before byte {self.stream.file.tell()} of the pickle failed: "
                    f"{type(error).__name__}: {error}"
                ) from error

    def _pop(self) -> Any:
        if not self.stack:
            raise pickle.UnpicklingError("the pickle takes more from its stack than it put there")
        return self.stack.pop()

    def _pop_mark(self) -> list[Any]:
        if not self.marks:
            raise pickle.UnpicklingError("the pickle goes back to a mark that it did not set")
        items, self.stack = self.stack, self.marks.pop()
        return items

    # -- names and calls ----------------------------------------------------------------------------------------------

    def name(self) -> None:
        module, name = read_global(self.stream)
        full = f"{module}.{name}"
        if module in BLOCKED:
            raise pickle.UnpicklingError(
                f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked."
            )
        found = default_globals().get(full, self.added.get(full))
        if found is None:
            if is_absent(full):
                raise NotImplementedError(
                    f"{full} is not available in this version of weft; the file needs it"
                )
            advised = full.removeprefix("builtins.")
            raise pickle.UnpicklingError(
                f"Unsupported global: GLOBAL {advised} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{advised}])` or the "
                f"`torch.serialization.safe_globals([{advised}])` context manager to allowlist this global if you "
                "trust this class/function."
            )
        self.stack.append(found)

    def reduce(self) -> None:
        arguments = self._pop()
        function = self._pop()
        if type(arguments) is not tuple:
            raise pickle.UnpicklingError(f"a call has arguments of type {type(arguments).__name__}")
        # Compare identities, because hashing an object of the file may be expensive.
        if call := checked_calls().get(id(function)):
            self._spend(*arguments)
            self.stack.append(call(*arguments))
        elif id(function) in self.called:
            self.stack.append(_outside(function, *arguments))
        else:
            raise pickle.UnpicklingError(
                f"Trying to call reduce for unrecognized function {_brief(function)}"
            )

    def new_object(self) -> None:
        arguments, cls = self._pop(), self._pop()
        if type(arguments) is not tuple:
            raise pickle.UnpicklingError(f"a call has arguments of type {type(arguments).__name__}")
        if id(cls) in self.called and isinstance(cls, type):
            self.stack.append(_outside(cls.__new__, cls, *arguments))
        elif isinstance(cls, type) and id(cls) in tensor_types() and not arguments:
            self.stack.append(cls())  # an empty tensor, whose state BUILD sets
        elif call := checked_calls().get(id(cls)):
            self._spend(*arguments)
            self.stack.append(call(*arguments))
        else:
            raise pickle.UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
                f"{_brief(cls)}"
            )

    def build(self) -> None:
        state = self._pop()
        target = self.stack[-1]
        if id(type(target)) in self.called:
            _outside(_set_state, target, state)
        elif type(target) in (OrderedDict, Counter) and type(state) is dict:
            self._spend(state)
            target.__dict__.update(state)
        elif id(type(target)) in tensor_types():
            set_tensor(target, state)
        elif type(target) is DimRange:
            target.__setstate__(state)
        else:
            raise pickle.UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{type(target)}"
            )

    def persistent(self) -> None:
        identity = self._pop()
        if self.persistent_load is None or type(identity) not in (tuple, int):
            raise pickle.UnpicklingError(
                f"persistent_load id must be tuple or int, but got {type(identity)}"
                if self.persistent_load
                else "unsupported persistent id encountered"
            )
        if type(identity) is tuple and (not identity or as_text(identity[0]) != "storage"):
            raise pickle.UnpicklingError(
                f"Only persistent_load of storage is allowed, but got {type(identity[0]) if identity else identity}"
            )
        self.stack.append(_outside(self.persistent_load, identity))

    # -- containers ---------------------------------------------------------------------------------------------------

    def mark(self) -> None:
        if len(self.marks) >= NESTING:
            raise pickle.UnpicklingError(f"more than {NESTING} containers within each other")
        self.marks.append(self.stack)
        self.stack = []

    def make_tuple(self, items: list[Any]) -> None:
        made = tuple(items)
        inner = [self._nesting(each) for each in items if isinstance(each, tuple)]
        if inner:
            depth = 1 + max(depth for depth, _ in inner)
            if depth > NESTING:
                raise pickle.UnpicklingError(f"more than {NESTING} tuples within each other")
            self.nested[id(made)] = depth, len(items) + sum(size for _, size in inner), made
        self.stack.append(made)

    def _nesting(self, value: tuple) -> tuple[int, int]:
        """Return the depth of a tuple, and the number of objects that its hash visits."""
        depth, size, _ = self.nested.get(id(value), (1, len(value), None))
        return depth, size

    def take_tuple(self, size: int) -> None:
        if len(self.stack) < size:
            raise IndexError("the stack has too few items")
        items = self.stack[-size:]
        del self.stack[-size:]
        self.make_tuple(items)

    def extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise pickle.UnpicklingError(f"Can only append to lists, but got {type(target)}")
        target.extend(items)

    def set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) not in (dict, OrderedDict, Counter) and not (
            isinstance(target, dict) and id(type(target)) in self.called
        ):
            raise pickle.UnpicklingError(
                "Can only SETITEMS for dict, collections.OrderedDict, collections.Counter, but got "
                f"{type(target)}"
            )
        if len(items) % 2:
            raise ValueError("a key has no value")
        self._check_keys(items[::2])
        counts, _ = self.hashes.setdefault(id(target), (Counter(), target))
        count_hashes(items[::2], counts)
        for key, value in zip(items[::2], items[1::2]):
            target[key] = value

    def _check_keys(self, keys: Iterable[Any]) -> None:
        for key in keys:
            if isinstance(key, tuple) and self._nesting(key)[1] > KEY:
                raise pickle.UnpicklingError(f"a key of a dict or set is made of more than {KEY} objects")

    def _spend(self, *arguments: Any) -> None:
        """Count the objects that a call creates from its arguments, and check the limits."""
        for each in arguments:
            self.budget -= len(each) if isinstance(each, _SIZED) else 0
            if isinstance(each, (tuple, list)):
                # The elements may become keys of a set or, as pairs, of a dict.
                self._check_keys(each)
                for part in each:
                    self.budget -= len(part) if isinstance(part, _SIZED) else 0
                    if isinstance(part, list):
                        self._check_keys(part)
        if self.budget < 0:
            raise pickle.UnpicklingError(
                "the calls of the pickle make more objects than the pickle has bytes"
            )

    # -- numbers and texts --------------------------------------------------------------------------------------------

    def push_text(self) -> None:
        (size,) = struct.unpack("<I", self.stream.take(4))
        self.stack.append(str(self.stream.take(size), "utf-8", "surrogatepass"))

    def push_bytes(self) -> None:
        """Return a string of Python 2."""
        content = self.stream.take(self.stream.take(1)[0])
        self.stack.append(content if self.encoding == "bytes" else content.decode(self.encoding))

    def push_long(self) -> None:
        content = self.stream.take(self.stream.take(1)[0])
        self.stack.append(int.from_bytes(content, "little", signed=True))

    def push_number(self, form: str, size: int) -> None:
        self.stack.append(struct.unpack(form, self.stream.take(size))[0])

    def get(self, form: str, size: int) -> None:
        (index,) = struct.unpack(form, self.stream.take(size))
        if index not in self.memo:
            raise pickle.UnpicklingError(f"the pickle recalls object {index}, which it did not memorise")
        self.stack.append(self.memo[index])

    def put(self, form: str, size: int) -> None:
        (index,) = struct.unpack(form, self.stream.take(size))
        self.memo[index] = self.stack[-1]

    def protocol(self) -> None:
        (version,) = self.stream.take(1)
        if version not in (2, 3):
            raise pickle.UnpicklingError(
                f"pickle protocol {version}: weights_only reads the protocols 2 and 3; save with pickle_protocol=2"
            )


class _Outside(Exception):
    """Wraps an error of code that a user has allowed, so that it is not reported as a damaged file."""

    def __init__(self, error: Exception):
        self.error = error


def _outside(function: Callable, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        raise _Outside(error) from None


def _set_state(target: Any, state: Any) -> None:
    """Set the state of an object as pickle does."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    own, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if own:
        target.__dict__.update(own)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


def as_text(value: Any) -> Any:
    """A string of PyTorch, which is bytes in files of Python 2."""
    return value.decode("latin1") if isinstance(value, bytes) else value


def read_global(stream: Stream) -> tuple[str, str]:
    """Return the module and the name of a GLOBAL instruction, translated to Python 3."""
    module, name = stream.line(), stream.line()
    return _RENAMED.get(module, module), name


def _brief(value: Any) -> str:
    """A short text for an object in an error message, because printing an object of the file could take very long."""
    return repr(value) if callable(value) and not isinstance(value, Tensor) else f"an object of {type(value)}"


def _described(code: int) -> str:
    import pickletools  # imported here, because only error messages need it

    return "".join(f" {each.name}" for each in pickletools.opcodes if ord(each.code) == code)


_STOP = ord(pickle.STOP)
# fmt: off
_STEPS: dict[int, Callable[[Unpickler], None]] = {code[0]: step for code, step in {
    pickle.PROTO:           Unpickler.protocol,
    pickle.GLOBAL:          Unpickler.name,
    pickle.REDUCE:          Unpickler.reduce,
    pickle.NEWOBJ:          Unpickler.new_object,
    pickle.BUILD:           Unpickler.build,
    pickle.BINPERSID:       Unpickler.persistent,
    pickle.MARK:            Unpickler.mark,
    pickle.TUPLE:           lambda self: self.make_tuple(self._pop_mark()),
    pickle.TUPLE1:          lambda self: self.take_tuple(1),
    pickle.TUPLE2:          lambda self: self.take_tuple(2),
    pickle.TUPLE3:          lambda self: self.take_tuple(3),
    pickle.APPEND:          lambda self: self.extend([self._pop()]),
    pickle.APPENDS:         lambda self: self.extend(self._pop_mark()),
    pickle.SETITEM:         lambda self: self.set_items([self._pop(), self._pop()][::-1]),
    pickle.SETITEMS:        lambda self: self.set_items(self._pop_mark()),
    pickle.NONE:            lambda self: self.stack.append(None),
    pickle.NEWTRUE:         lambda self: self.stack.append(True),
    pickle.NEWFALSE:        lambda self: self.stack.append(False),
    pickle.EMPTY_TUPLE:     lambda self: self.stack.append(()),
    pickle.EMPTY_LIST:      lambda self: self.stack.append([]),
    pickle.EMPTY_DICT:      lambda self: self.stack.append({}),
    pickle.EMPTY_SET:       lambda self: self.stack.append(set()),
    pickle.BININT:          lambda self: self.push_number("<i", 4),
    pickle.BININT1:         lambda self: self.push_number("<B", 1),
    pickle.BININT2:         lambda self: self.push_number("<H", 2),
    pickle.BINFLOAT:        lambda self: self.push_number(">d", 8),
    pickle.LONG1:           Unpickler.push_long,
    pickle.BINUNICODE:      Unpickler.push_text,
    pickle.SHORT_BINSTRING: Unpickler.push_bytes,
    pickle.BINGET:          lambda self: self.get("<B", 1),
    pickle.LONG_BINGET:     lambda self: self.get("<I", 4),
    pickle.BINPUT:          lambda self: self.put("<B", 1),
    pickle.LONG_BINPUT:     lambda self: self.put("<I", 4),
}.items()}
# fmt: on


def unsafe_globals(file: Any) -> list[str]:
    """The globals in a pickle that neither the default allowlist nor the user allows. Creates no objects.

    Raises: pickle.UnpicklingError for unsupported instructions.
    """
    stream, found = Stream(file), set()
    sizes: dict[int, int] = {pickle.PROTO[0]: 1, pickle.BINFLOAT[0]: 8}
    sizes |= {code[0]: 1 for code in (pickle.BININT1, pickle.BINGET, pickle.BINPUT)}
    sizes |= {code[0]: 4 for code in (pickle.BININT, pickle.LONG_BINGET, pickle.LONG_BINPUT)} | {
        pickle.BININT2[0]: 2
    }
    while (code := stream.take(1)[0]) != _STOP:
        if code not in _STEPS:
            raise pickle.UnpicklingError(f"Unsupported operand {code}{_described(code)}")
        if code == pickle.GLOBAL[0]:
            found.add(".".join(read_global(stream)))
        elif code == pickle.BINUNICODE[0]:
            stream.take(int.from_bytes(stream.take(4), "little"))
        elif code in (pickle.SHORT_BINSTRING[0], pickle.LONG1[0]):
            stream.take(stream.take(1)[0])
        else:
            stream.take(sizes.get(code, 0))
    added = added_globals()
    return [name for name in found if not is_known(name) and name not in added]
