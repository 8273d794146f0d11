"""A record: what one call of a function did, as a function of its own, with the conditions under which it may be repeated.

`record(function, args, kwargs)` runs the function in the interpreter (`_interpreter.py`) on copies of its tensors, while a tape
(`_tape.py`) notes the launches. It returns the source of a Python function, compiled, which for a later call

    checks the guards: the specs of the tensors, values of Python, what was read from outside; else it answers MISS
    allocates the results, and one block for all intermediate values
    launches the kernels, most of them by one machine-code function (`_launcher.py`)
    makes the tensors that the function returns, and sets `.grad` where the function did
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..autograd.graph import Leaf, Node, Output, next_order
from ..autograd.saved import RELEASED
from ..core import autocast
from ..core.code_exchange import watched_functions
from ..core.device import CPU
from ..core.dispatch import watchers
from ..core.grad_mode import detours, mode, open_inference
from ..core.spec import Spec
from ..core.storage import Storage
from ..core.tensor import Tensor, make, new_hooks, of_class, plain_types
from ..core.warn import issued
from ..engine.objects import layout_is_known
from ..engine.storages import allocator
from ..nn.hooks import any_global
from . import _instructions_3_12, _instructions_3_13  # noqa: F401 (newer versions replace what they changed)
from ._backward import Backward, CompiledFunctionBackward, is_result
from ._interpreter import _PURE, MISSING, Interpreter, bits
from ._launcher import MISS, RECORDED, STORAGE_ITSELF, UNRECORDED, Base, native_make, stage_of
from ._memory import Bases, layout, refs
from ._tape import Ref, Tape, TapedStorage, Unsupported, tensors_in

# Bytes of the tensors of a call. Kernels of larger tensors take so long that Python does not matter, and eager calls fuse them.
MOST_BYTES = 64 << 20


# As for other calls, see `families/native_calls.py`.
WITH_MACHINE_CODE = os.environ.get("WEFT_CALLS") != "python" and layout_is_known()
# While one of these is not empty, calls may do something else: watchers, hooks on saved tensors, transforms, modes with
# `__torch_function__`, autocast, inference mode, hooks of all modules. Objects of classes with `__torch_function__` are no arguments of
# a record.
_UNUSUAL = (
    watchers,
    detours,
    new_hooks,
    watched_functions,
    autocast.open_contexts,
    open_inference,
    any_global,
)


def is_usual() -> bool:
    """Whether no mode, watcher or transform changes what calls do, so that records may be made and used."""
    return not any(_UNUSUAL)


class Source:
    """A tensor from outside: an argument, a tensor that the function reads elsewhere, or the gradient of one of these."""

    def __init__(self, number: int, tensor: Tensor, copy: Tensor, storage: int, gradient_of: Source | None):
        self.name, self.tensor, self.copy, self.storage = f"x{number}", tensor, copy, storage
        self.spec, self.start, self.edge = copy.spec, copy._byte_offset, copy._autograd
        self.gradient_of = gradient_of
        self.gradient: Source | None = None
        self.is_argument = False
        self.is_read = (
            False  # whether the function reads the tensor from outside: the record is for this very tensor
        )


class Recorder:
    """The recording of one call."""

    def __init__(self, function: Callable, args: tuple, kwargs: dict[str, Any]):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.tape = Tape()
        self.sources: dict[int, Source] = {}  # by the id of the tensor
        self.of_copy: dict[int, Source] = {}
        self.storages: dict[int, int] = {}  # storages from outside, by id: the number of the copy on the tape
        self.nbytes = 0
        self.known: dict[str, Any] = {}  # the namespace of the function that is written
        self.alive: list[Any] = []  # until the recording ends, so that ids stay those of one object
        self.arguments: list[str] = []  # lines that check and unpack the arguments
        self.run = Interpreter(self.copy_of, self.tape.check)

    # -- copies of tensors ---------------------------------------------------------------------------------------------

    def copy_of(self, tensor: Tensor) -> Tensor:
        found = self.source(tensor)
        found.is_read = True
        return found.copy

    def source(self, tensor: Tensor, gradient_of: Source | None = None) -> Source:
        found = self.sources.get(id(tensor))
        if found is not None:
            return found
        edge, spec = tensor._autograd, tensor.spec
        if isinstance(tensor._storage, TapedStorage):
            raise Unsupported("a tensor that the function has made is read from outside")
        if type(tensor) not in plain_types:
            raise Unsupported(f"a tensor of class {type(tensor).__name__} is used")
        if type(spec) is not Spec:
            raise Unsupported("a tensor is sparse, quantized, nested or named")
        if spec.device is not CPU:
            raise Unsupported("a tensor is not on the CPU")
        if any(
            name.startswith("_") and name != "_grad" and not name.startswith("_dynamo")
            for name in tensor.__dict__
        ):
            raise Unsupported("a tensor has unusual attributes")
        if edge is not None and tensor._base is not None:
            raise Unsupported("a view that requires grad is used")
        if type(edge) is Leaf:
            if edge.hooks or edge.after or edge.of_node is not None or not edge.lasting:
                raise Unsupported("a tensor has hooks, or belongs to a transform")
        elif edge is not None and not isinstance(edge, (Node, Output)):
            raise Unsupported("a tensor has tangents")
        copy = of_class(type(tensor), make(self.storage(tensor._storage), tensor._byte_offset, spec))
        if edge is not None:
            copy._autograd = Leaf(copy)
        found = Source(len(self.sources), tensor, copy, self.tape.number_of[id(copy._storage)], gradient_of)
        self.sources[id(tensor)] = self.of_copy[id(copy)] = found
        gradient = tensor.__dict__.get("_grad")
        if gradient is not None:
            found.gradient = self.source(gradient, found)
            copy._grad = found.gradient.copy  # type: ignore[attr-defined]
        return found

    def storage(self, storage: Storage) -> Storage:
        number = self.storages.get(id(storage))
        if number is None:
            self.nbytes += storage.nbytes_
            if self.nbytes > MOST_BYTES:
                raise Unsupported("the tensors are so large that Python does not matter")
            was, self.tape.inside = self.tape.inside, True
            try:
                copy = storage.clone()
            finally:
                self.tape.inside = was
            copy.version = 0
            number = self.storages[id(storage)] = self.tape.add(copy)
            self.alive.append(storage)
            self.tape.given[number] = copy
        return self.tape.given[number]

    # -- arguments -----------------------------------------------------------------------------------------------------

    def argument(self, value: Any, path: str) -> Any:
        """The copy of an argument; adds the lines that check the argument of a later call."""
        check, lines = "    if {}: return MISS", self.arguments
        if isinstance(value, Tensor):
            found = self.source(value)
            if found.is_argument:
                lines.append(check.format(f"{path} is not {found.name}"))
            else:
                found.is_argument = True
                lines.append(f"    {found.name} = {path}")
            return found.copy
        kind = type(value)
        if kind in (tuple, list, dict):
            name = f"c{len(lines)}"
            lines.append(f"    {name} = {path}")
            lines.append(check.format(f"type({name}) is not {kind.__name__} or len({name}) != {len(value)}"))
            copy: Any
            if kind is dict:
                for key in value:
                    if type(key) not in (str, int):
                        raise Unsupported("a dictionary with unusual keys is an argument")
                keys = self.constant(tuple(value))
                lines.append(check.format(f"tuple({name}) != {keys}"))
                copy = {key: self.argument(each, f"{name}[{key!r}]") for key, each in value.items()}
            else:
                copy = kind([self.argument(each, f"{name}[{k}]") for k, each in enumerate(value)])
            self.run.read_only[id(copy)] = copy
            return copy
        self.run.outside(value)
        constant = self.constant(value)
        if kind in (float, complex):
            self.known["bits"] = bits
            written = self.constant(bits(value))
            lines.append(check.format(f"type({path}) is not {kind.__name__} or bits({path}) != {written}"))
        elif kind in (int, str, bytes):
            lines.append(check.format(f"type({path}) is not {kind.__name__} or {path} != {constant}"))
        elif kind in _PURE and value is not None and kind is not bool:
            lines.append(check.format(f"type({path}) is not type({constant}) or {path} != {constant}"))
        else:
            lines.append(check.format(f"{path} is not {constant}"))
        return value

    def constant(self, value: Any) -> str:
        name = f"k{len(self.known)}"
        self.known[name] = value
        return name

    # -- the run -------------------------------------------------------------------------------------------------------

    def record(self) -> Callable:
        """The function `(args, kwargs)` that repeats the call, or answers MISS.

        Raises: Unsupported.
        """
        outer = mode.enabled, mode.inference, mode.reverse
        warned = issued.count
        try:
            with self.tape:
                args = tuple([self.argument(each, f"args[{k}]") for k, each in enumerate(self.args)])
                kwargs = {
                    name: self.argument(each, f"kwargs[{name!r}]") for name, each in self.kwargs.items()
                }
                result = self.run.call(self.function, args, kwargs)
                self.tape.check()
                self.check_state(outer, warned)
                return self.write(result)
        finally:
            mode.enabled, mode.inference, mode.reverse = outer

    def check_state(self, outer: tuple, warned: int) -> None:
        """Raises: Unsupported if the run has changed what a record does not repeat."""
        if (mode.enabled, mode.inference, mode.reverse) != outer:
            raise Unsupported("grad mode is changed")
        self.tape.check_draws()
        if issued.count != warned:
            raise Unsupported("a warning is issued")
        for each in self.sources.values():
            copy = each.copy
            number = self.tape.number_of.get(id(copy._storage))
            if copy.spec is not each.spec or copy._byte_offset != each.start or number != each.storage:
                raise Unsupported("a tensor from outside gets another shape or other memory")
            if copy._autograd is not each.edge:
                raise Unsupported("a tensor from outside that requires grad is written to")

    # -- the function that is written ----------------------------------------------------------------------------------

    def write(self, result: Any) -> Callable:
        tape, known = self.tape, self.known
        self.results: dict[int, str] = {}  # tensors that the function makes, by id: their variables
        self.made: list[str] = []  # lines that make them
        self.containers: set[int] = set()  # ids of the lists and dictionaries that are returned
        self.returned: dict[int, str] = {}  # their storages: variables
        self.kept: dict[
            int, int
        ] = {}  # storages that the backward pass needs: their offsets in a block of their own
        self.backward = self.differentiated(result)
        value = self.value(result)
        gradients = self.gradients()
        node = self.node() if self.backward else []
        known |= {"MISS": MISS, "MISSING": MISSING, "Tensor": Tensor, "Leaf": Leaf, "make": make, "mode": mode,
                  }  # fmt: skip
        unusual = {f"unusual{k}": each for k, each in enumerate(_UNUSUAL)}
        known |= unusual
        lines = ["def replay(args, kwargs):", f"    if {' or '.join(unusual)}: return MISS"]
        lines.append(
            f"    if len(args) != {len(self.args)} or mode.enabled is not {mode.enabled}: return MISS"
        )
        names = self.constant(tuple(self.kwargs))
        lines.append(f"    if {f'tuple(kwargs) != {names}' if self.kwargs else 'kwargs'}: return MISS")
        lines += self.arguments + self.guards()
        self.is_native = self.can_check_natively()
        lines += self.tensor_guards()
        lines += [] if self.is_native else self.sizes_and_places()
        sizes = {
            number: tape.sizes[number]
            for number in tape.made
            if number not in self.returned and number not in self.kept and number not in tape.constants
        }
        places, end = layout(tape.steps, sizes)
        if end:
            known["allocate"] = allocator(end)
            lines += ["    block = allocate()", *([] if self.is_native else ["    b = block.ptr"])]
        if self.kept:
            known["allocate_kept"] = allocator(self.kept_bytes)
            lines += ["    kept = allocate_kept()", *([] if self.is_native else ["    k = kept.ptr"])]
        for number, name in self.returned.items():
            known[f"allocate_{name}"] = allocator(tape.sizes[number])
            lines += [
                f"    {name} = allocate_{name}()",
                *([] if self.is_native else [f"    p{name} = {name}.ptr"]),
            ]
        pointer = "" if self.is_native else "p"
        given = {each.storage: each for each in reversed(self.sources.values())}
        constants: list[Storage] = []  # which the record keeps alive

        def find(ref: Ref) -> tuple[str | None, int]:
            number = ref.storage
            if number in places:
                return "block" if self.is_native else "b", places[number] + ref.offset
            if number in self.returned:
                return f"{pointer}{self.returned[number]}", ref.offset
            if number in given:
                return f"{pointer}{given[number].name}", ref.offset - given[number].start
            if number in self.kept:
                return "kept" if self.is_native else "k", self.kept[number] + ref.offset
            constants.append(tape.constants[number])
            return None, tape.address(number) + ref.offset

        known["function"] = self.function
        launches = Bases(find, self.described if self.is_native else None).launches(tape.steps, known)
        if tape.follows_indices:
            if tape.draws or not tape.written.isdisjoint(tape.given):
                raise Unsupported(
                    "bad indices could be noticed only after a tensor was written to, or random numbers drawn"
                )
            known["faults"] = CPU.backend.faults
            launches.insert(0, "    before = faults[0]")
            launches.append(
                "    if faults[0] != before: return function(*args, **kwargs)  # raises the error"
            )
        lines += launches
        lines += self.made + node + gradients
        lines.append(f"    return {value}")
        known["constants"] = constants
        exec(compile("\n".join(lines), "<weft compiled function>", "exec"), known)
        replay = known["replay"]
        replay.source = "\n".join(lines)
        return replay

    def guards(self) -> list[str]:
        """Lines that check what the function read from outside."""
        found = []
        for guard in self.run.guards.values():
            owner, value = self.constant(guard.owner), self.constant(guard.value)
            name = self.constant(guard.name)
            if guard.kind == "items" or type(guard.value) in (int, float, complex, str, bytes):
                found.append(
                    f"{self.constant(guard.holds)}()"
                    if guard.kind != "length"
                    else f"len({owner}) == {value}"
                )
            elif guard.kind == "item":
                read = (
                    f"{owner}.get({name}, MISSING)"
                    if guard.value is MISSING
                    else f"{name} in {owner} and {owner}[{name}]"
                )
                found.append(f"{read} is {value}")
            elif guard.kind == "class":
                found.append(f"{owner}.__dict__.get({name}, MISSING) is {value}")
            elif guard.kind == "attribute":
                found.append(f"getattr({owner}, {name}, MISSING) is {value}")
            else:
                found.append(f"{owner}.cell_contents is {value}")
        if not found:
            return []
        checks = "        if not (" + "\n            and ".join(found) + "\n        ): return MISS"
        return ["    try:", checks, "    except Exception: return MISS  # the function itself raises it"]

    def tensor_guards(self) -> list[str]:
        lines = []
        tape = self.tape
        used = {ref.storage for step in tape.steps for ref in refs(step)} if self.is_native else ()
        bound: list[Source] = []  # those that have a variable
        for each in self.sources.values():
            x, is_read = each.name, self.reads_gradient(each)
            if each.is_argument:
                if each.is_read:
                    lines.append(f"    if {x} is not {self.constant(each.tensor)}: return MISS")
            elif each.is_read:
                self.known[x] = each.tensor
            elif each.gradient_of is None or self.reads_gradient(each.gradient_of):
                assert each.gradient_of is not None
                lines.append(f"    {x} = {each.gradient_of.name}.__dict__.get('_grad')")
            else:
                continue
            bound.append(each)
            if each.storage in used and each.edge is None and not is_read:
                continue  # the launcher checks it
            kind, spec = self.constant(type(each.tensor)), self.constant(each.spec)
            condition = f"type({x}) is not {kind} or {x}.spec is not {spec}"
            if each.edge is None:
                condition += f" or {x}._autograd is not None"
            elif type(each.tensor._autograd) is Leaf:
                condition += f" or type(e := {x}._autograd) is not Leaf or e.hooks or e.after or e.of_node is not None or not e.lasting"
            else:
                condition += f" or {x}._autograd is None or type({x}._autograd) is Leaf"
            lines.append(f"    if {condition}: return MISS")
            if is_read and each.gradient is None:
                lines.append(f"    if {x}.__dict__.get('_grad') is not None: return MISS")
        groups: dict[int, list[Source]] = {}
        for each in bound:
            groups.setdefault(each.storage, []).append(each)
            now = each.gradient
            if (
                now is not None
                and self.reads_gradient(each)
                and (now.is_argument or now.is_read or now.gradient_of is not each)
            ):
                lines.append(f"    if {each.name}.__dict__.get('_grad') is not {now.name}: return MISS")
        if len(bound) > 1 and (self.run.compares_tensors or any(map(self.reads_gradient, bound))):
            lines.append(
                f"    if len({{{', '.join(f'id({each.name})' for each in bound)}}}) != {len(bound)}: return MISS"
            )
        for first, *others in groups.values():
            for other in others:
                lines.append(f"    if {other.name}._storage is not {first.name}._storage: return MISS")
                lines.append(
                    f"    if {other.name}._byte_offset - {first.name}._byte_offset != {other.start - first.start}: return MISS"
                )
        if not tape.written.isdisjoint(groups):
            distinct = ", ".join(f"id({group[0].name}._storage)" for group in groups.values())
            lines.append(f"    if len({{{distinct}}}) != {len(groups)}: return MISS")
        self.groups = groups
        return lines

    def can_check_natively(self) -> bool:
        """Whether the launcher can check the tensors: all steps are native, and none writes to memory from outside."""
        tape = self.tape
        storages = [each.storage for each in self.sources.values()]
        return (
            WITH_MACHINE_CODE
            and bool(tape.steps)
            and all(stage_of(step.keepalive) is not None for step in tape.steps)
            and tape.written.isdisjoint(tape.given)
            and not any(copy.version for copy in tape.given.values())
            and len(set(storages)) == len(storages)
        )

    def described(self, variable: str) -> Base:
        """What the launcher gets for a variable."""
        for each in self.sources.values():
            if each.name == variable:
                return Base(UNRECORDED if each.edge is None else RECORDED, type(each.tensor), each.spec)
        return Base(STORAGE_ITSELF)

    def reads_gradient(self, source: Source) -> bool:
        """Whether the function reads or sets the gradient of a tensor."""
        before = source.gradient.copy if source.gradient else None
        return (
            id(source.copy) in self.run.gradients_read
            or source.copy.__dict__.get("_grad") is not before
            or (source.gradient is not None and source.gradient.storage in self.tape.written)
        )

    def sizes_and_places(self) -> list[str]:
        """Lines that find the addresses of the tensors from outside, and count the writes to their memory."""
        used = {each.storage for step in self.tape.steps for each in step.arguments if type(each) is Ref}
        lines = []
        for number, (first, *_) in self.groups.items():
            writes = self.tape.given[number].version
            if writes:
                lines.append(f"    {first.name}._storage.version += {writes}")
        for number, (first, *_) in self.groups.items():
            if number in used:
                lines.append(f"    p{first.name} = {first.name}._storage.ptr + {first.name}._byte_offset")
        return lines

    def gradients(self) -> list[str]:
        """Lines that set the gradients that the function set."""
        lines = []
        for each in self.sources.values():
            now = each.copy.__dict__.get("_grad")
            before = each.gradient.copy if each.gradient else None
            if now is before:
                continue
            if each.edge is not None and type(each.tensor._autograd) is not Leaf:
                raise Unsupported("a gradient reaches a tensor that is a result itself")
            if now is None:
                lines.append(f"    {each.name}.__dict__.pop('_grad', None)")
            else:
                lines.append(f"    {each.name}._grad = {self.value(now)}")
        return lines

    # -- autograd ------------------------------------------------------------------------------------------------------

    def differentiated(self, result: Any) -> Backward | None:
        """The backward pass of the results that are recorded steps; None if there are none."""
        outs = {
            id(each): each
            for each in tensors_in([result])
            if id(each) not in self.of_copy and is_result(each)
        }
        if not outs:
            return None
        storages = [id(each._storage) for each in outs.values()]
        numbers = [self.tape.number(each._storage) for each in outs.values()]
        if len(set(storages)) < len(outs) or not self.tape.made.issuperset(numbers):
            raise Unsupported("results that require grad share memory with other tensors")
        self.inputs = [each for each in self.sources.values() if each.edge is not None]
        return Backward(list(outs.values()), [each.copy for each in self.inputs])

    def node(self) -> list[str]:
        """Lines that make the node of the results, and save what its backward pass needs."""
        backward, tape = self.backward, self.tape
        assert backward is not None
        known: dict[str, Any] = {"new": object.__new__, "node_class": CompiledFunctionBackward, "node_spec": backward.spec, "next_order": next_order,
                                 "Output": Output, "RELEASED": RELEASED}  # fmt: skip
        self.known |= known
        saved = []
        end = 0
        for storage in backward.saved.values() if not backward.is_released else ():
            number = tape.number_of.get(id(storage), -1)
            if number < 0 or number in tape.constants:
                continue
            used = 0, storage.nbytes_
            if number in tape.given:
                if number in tape.written:
                    raise Unsupported("a tensor that the backward pass needs is written to")
                source, *others = (each for each in self.sources.values() if each.storage == number)
                if others:
                    raise Unsupported("the backward pass needs tensors that share memory")
                used = source.start, source.spec.span * source.spec.dtype.itemsize
                saved.append(
                    f"({source.name}._storage, {source.name}._byte_offset - {source.start}, +{source.name}._storage.version)"
                )
            elif number in self.returned:
                name = self.returned[number]
                saved.append(f"({name}, 0, {name}.version)")
            else:
                self.kept[number] = end
                saved.append(f"(kept, {end}, 0)")
                end += max(1, storage.nbytes_) + 63 & -64
            backward.sources.append(storage)
            backward.extents.append(used)
        self.kept_bytes = end
        lines = [
            "    node = new(node_class)",
            "    node._spec = node_spec",
            "    node._notes = leaves = None",
        ]
        for each in self.inputs:
            if type(each.tensor._autograd) is Leaf:
                lines.append(f"    leaves = {each.name}, leaves")
        lines.append("    node._leaves = leaves")
        lines.append(f"    node._edges = ({''.join(f'{each.name}._autograd, ' for each in self.inputs)})")
        lines.append("    node._order = next_order()")
        lines.append(
            f"    node._saved = {'RELEASED' if backward.is_released else '(' + ''.join(each + ', ' for each in saved) + ')'}"
        )
        for k, out in enumerate(backward.outs):
            edge = "node" if len(backward.outs) == 1 else f"Output(node, {k})"
            lines.append(f"    {self.results[id(out)]}._autograd = {edge}")
        return lines

    # -- results -------------------------------------------------------------------------------------------------------

    def value(self, value: Any) -> str:
        """Source for a value that the function returns."""
        if isinstance(value, Tensor):
            return self.tensor(value)
        kind = type(value)
        if id(value) in self.run.read_only:
            raise Unsupported("an argument that is a list or a dictionary is returned")
        if id(value) in self.run.own and kind in (list, dict, OrderedDict):
            if id(value) in self.containers:
                raise Unsupported("a list or a dictionary is returned twice")
            self.containers.add(id(value))
        if id(value) in self.run.own or kind is tuple:
            if kind is list:
                return f"[{', '.join(map(self.value, value))}]"
            if kind is tuple:
                return f"({''.join(self.value(each) + ', ' for each in value)})"
            if kind in (dict, OrderedDict):
                items = ", ".join(
                    f"({self.constant(key)}, {self.value(each)})" for key, each in value.items()
                )
                return f"{self.constant(kind)}([{items}])"
            if isinstance(value, tuple):
                return f"tuple.__new__({self.constant(kind)}, ({''.join(self.value(each) + ', ' for each in value)}))"
            raise Unsupported(f"an object of class {kind.__name__} is returned")
        return self.constant(value)

    def tensor(self, tensor: Tensor) -> str:
        source = self.of_copy.get(id(tensor))
        if source is not None:
            return source.name
        found = self.results.get(id(tensor))
        if found is not None:
            return found
        if type(tensor) is not Tensor or set(tensor.__dict__) - {"_grad"}:
            raise Unsupported("a tensor with attributes is returned")
        if tensor.__dict__.get("_grad") is not None:
            raise Unsupported("a result with a gradient is returned")
        if tensor._autograd is not None and (
            not self.backward or all(each is not tensor for each in self.backward.outs)
        ):
            raise Unsupported("a result that requires grad is returned in an unusual place")
        name = self.results[id(tensor)] = f"r{len(self.results)}"
        self.alive.append(tensor)
        number = self.tape.number(tensor._storage)
        spec = self.constant(tensor.spec)
        if number in self.tape.given:
            source = next(each for each in self.sources.values() if each.storage == number)
            moved = f"{source.name}._byte_offset + {tensor._byte_offset - source.start}"
            self.made.append(f"    {name} = make({source.name}._storage, {moved}, {spec})")
        else:
            if number in self.tape.constants:
                self.tape.renew(number)
            storage = self.returned.setdefault(number, f"s{number}")
            if WITH_MACHINE_CODE and not tensor._byte_offset:
                self.known["new_tensor"] = native_make()
                self.made.append(f"    {name} = new_tensor({storage}, {spec})")
            else:
                self.made.append(f"    {name} = make({storage}, {tensor._byte_offset}, {spec})")
            version = tensor._storage.version
            if version:
                self.made.append(f"    {storage}.version = {version}")
        if tensor._base is not None and tensor._autograd is None:
            base = self.tensor(tensor._base)
            self.made.append(f"    {name}._base = {base} if {base}._base is None else {base}._base")
        return name


def record(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Callable:
    """See the top of this file."""
    return Recorder(function, args, kwargs).record()
