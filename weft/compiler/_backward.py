"""Backward through a compiled function: the step that autograd records for it, and the records of its backward passes.

The run on copies leaves a graph of autograd, which ends in the copies of the arguments and parameters. `Backward` keeps it. A call of the record
makes one node whose edges are those of the tensors from outside, and whose saved values are the memory that the nodes of that graph
saved. When a backward pass reaches the node, the cotangents are sent through the graph of the copies once, on a tape, and
the launches of this pass become a function of their own, one for each combination of the cotangents' specs. A pass that
cannot be recorded runs on the graph of the copies, into which the saved values are copied first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import grad
from ..autograd.graph import Node, NodeSpec, Output, endpoint, next_order, node_type
from ..autograd.saved import RELEASED, SECOND_TIME, Saved, SavedOutputs
from ..core.derivative import Derivative
from ..core.device import CPU
from ..core.dispatch import watchers
from ..core.locks import new_lock
from ..core.op import Op
from ..core.spec import Spec
from ..core.storage import Storage
from ..core.tensor import Tensor, make
from ..engine.storages import allocator
from ._memory import Bases, layout
from ._tape import Ref, Tape, Unsupported

MOST_VARIANTS = 16  # records of backward passes of one record


def _again(ct: Any, out: Any, *inputs: Any) -> Any:
    raise RuntimeError(
        "torch.compile does not support double backward: the backward pass of a compiled function is not recorded"
    )


_STEP = Op("compiled_function", Derivative(joint=_again))
_new = object.__new__


class CompiledFunctionBackward(Node):
    """The node of the results of a call."""

    __slots__ = ()

    def _pull(self, ct: Any, edges: tuple, recording: bool) -> Sequence[Any]:
        found = self._spec.op.pull(self, ct, edges)
        return [self._closed(each) if recording and each is not None else each for each in found]

    def _closed(self, ct: Tensor) -> Tensor:
        """A cotangent in a graph that is being recorded: a backward pass through it raises an error."""
        node: Any = _new(_DoubleBackward)
        node._spec = NodeSpec.of(_STEP, self._spec.inputs, (), ct.spec)
        node._edges, node._leaves, node._notes = self._edges, self._leaves, None
        node._order, node._saved = next_order(), (None,) * (1 + len(self._edges))
        result = make(ct._storage, ct._byte_offset, ct.spec)
        result._autograd = node
        return result


_DoubleBackward: type = node_type("CompiledFunctionDoubleBackward")


class Backward:
    """The backward pass of the results `outs` of one record to the copies `inputs`, which require grad. The op of its nodes."""

    name = "compiled_function"
    derivative = _STEP.derivative

    def __init__(self, outs: Sequence[Tensor], inputs: Sequence[Tensor]):
        self.outs, self.inputs = list(outs), list(inputs)
        self.is_released = False
        self.saved: dict[int, Storage] = {}  # by id: the memory of the copies that the graph has saved
        self._walk()
        self.lock = new_lock()
        self.variants: dict[tuple, Callable] = {}
        self.sources: list[Storage] = []  # the memory whose counterparts a node saves, in this order
        # The first byte, and the number of bytes, that tensors use of each.
        self.extents: list[tuple[int, int]] = []
        result = outs[0].spec if len(outs) == 1 else tuple([each.spec for each in outs])
        self.spec = NodeSpec.of(self, tuple([each.spec for each in inputs]), (), result)
        self.spec.pull = self.spec.quick_pull = self.pull

    def _walk(self) -> None:
        """Find what the nodes of the graph have saved.

        Raises: Unsupported for nodes that are not weft's own, and for values that were written over.
        """
        seen: set[int] = set()
        stack = [endpoint(each._autograd)[0] for each in self.outs]
        released = 0
        while stack:
            node = stack.pop()
            if id(node) in seen or not isinstance(node, Node):
                continue
            seen.add(id(node))
            if type(node).__bases__ != (Node,) or node._notes is not None:
                raise Unsupported(
                    "a function of torch.autograd.Function, or a hook, is part of the graph of the results"
                )
            stack += [endpoint(edge)[0] for edge in node._edges if edge is not None]
            if node._saved is RELEASED:
                released += 1
                continue
            for entry in node._saved:
                self._save(entry)
        self.is_released = released > 0
        if self.is_released and released != len(seen):
            raise Unsupported("a part of the graph of the results has been released")

    def _save(self, entry: Any) -> None:
        if type(entry) is SavedOutputs:
            for each in entry:
                self._save(each)
        elif type(entry) is Saved:
            if entry.storage.version != entry.version:
                raise Unsupported("a value that the backward pass needs is written over")
            self.saved[id(entry.storage)] = entry.storage
        elif entry is not None and type(entry) not in (bool, int, float, complex):
            raise Unsupported("the backward pass needs a value of an unusual kind")

    # -- a pass --------------------------------------------------------------------------------------------------------

    def pull(self, node: Any, ct: Any, edges: tuple) -> Sequence[Any]:
        """The cotangents of the inputs."""
        saved = node._saved
        if saved is RELEASED:
            raise RuntimeError(SECOND_TIME)
        for storage, _, version in saved:
            if storage.version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: it is at "
                    f"version {storage.version}; expected version {version} instead. It was saved for {node.name()}: clone() it "
                    "before it is modified."
                )
        cts = (ct,) if type(ct) is not tuple else ct
        if watchers:  # vmap over the backward pass, or a dispatch mode
            return self.on_copies(cts, saved)
        key = tuple([None if each is None else each.spec for each in cts])
        variant = self.variants.get(key)
        if variant is None:
            variant = self._learn(key)
        return variant(cts, saved)

    def _learn(self, key: tuple) -> Callable:
        with self.lock:
            if len(self.variants) >= MOST_VARIANTS:
                return self.on_copies
            try:
                variant = self._record(key)
            except Unsupported:
                variant = self.on_copies
            self.variants[key] = variant
            return variant

    def _through(self, cts: Sequence[Any]) -> Sequence[Any]:
        """Send cotangents through the graph of the copies."""
        outs = [out for out, ct in zip(self.outs, cts, strict=True) if ct is not None]
        given = [ct for ct in cts if ct is not None]
        return grad(outs, self.inputs, given, retain_graph=True, allow_unused=True)

    def on_copies(self, cts: Sequence[Any], saved: Sequence[tuple[Storage, int, int]]) -> Sequence[Any]:
        """A pass on the graph of the copies, with the saved values of a call."""
        with self.lock:
            for copy, (start, nbytes), (storage, by, _) in zip(
                self.sources, self.extents, saved, strict=True
            ):
                ctypes.memmove(copy.ptr + start, storage.ptr + by + start, nbytes)
            own = set(map(id, self.sources))
            found = self._through(cts)
            return [each.clone() if each is not None and id(each._storage) in own else each for each in found]

    # -- recording a pass ----------------------------------------------------------------------------------------------

    def _record(self, key: tuple) -> Callable:
        """The function `(cotangents, saved)` for cotangents of these specs. Raises: Unsupported."""
        tape = Tape()
        lines = ["def pull(cts, saved):"]
        names: dict[int, str] = {}  # of storages on the tape: variables
        with tape:
            copies: list[Any] = [None if spec is None else _filled(spec) for spec in key]
            given = {f"saved{k}": storage for k, storage in enumerate(self.sources)}
            given |= {f"ct{k}": each._storage for k, each in enumerate(copies) if each is not None}
            for name, storage in given.items():
                number = tape.add(storage)
                tape.given[number] = storage
                names[number] = name
            found = self._through(copies)
            tape.check()
            tape.check_draws()
            if tape.draws:
                raise Unsupported("the backward pass draws random numbers")
            if not tape.written.isdisjoint(tape.given):
                raise Unsupported("the backward pass writes to saved memory")
            return self._written(tape, names, copies, found, lines)

    def _written(
        self, tape: Tape, names: dict[int, str], copies: list[Any], found: Sequence[Any], lines: list[str]
    ) -> Callable:
        known: dict[str, Any] = {"make": make, "alive": [copies, found]}
        returned: dict[int, str] = {}
        results: list[str] = []
        for k, each in enumerate(found):
            if each is None:
                results.append("None")
                continue
            same = [j for j, copy in enumerate(copies) if copy is each]
            if same:
                results.append(f"cts[{same[0]}]")
                continue
            number = tape.number(each._storage)
            if number in tape.constants:
                tape.renew(number)
            known[f"spec{k}"] = each.spec
            if number in tape.given:
                if not names[number].startswith("ct"):
                    raise Unsupported("a saved value is the result of the backward pass")
                ct = f"cts[{names[number][2:]}]"
                storage, start = f"{ct}._storage", f"{ct}._byte_offset + {each._byte_offset}"
            else:
                storage = returned.setdefault(number, f"s{number}")
                start = str(each._byte_offset)
            results.append(f"make({storage}, {start}, spec{k})")
        used = {each.storage for step in tape.steps for each in step.arguments if type(each) is Ref}
        for number, name in names.items():
            if number not in used:
                continue
            place = int(name[5:] if name.startswith("saved") else name[2:])
            if name.startswith("saved"):
                lines.append(f"    p{name} = saved[{place}][0].ptr + saved[{place}][1]")
            else:
                lines.append(f"    p{name} = cts[{place}]._storage.ptr + cts[{place}]._byte_offset")
        sizes = {
            number: tape.sizes[number]
            for number in tape.made
            if number not in returned and number not in tape.constants
        }
        places, end = layout(tape.steps, sizes)
        if end:
            known["allocate"] = allocator(end)
            lines += ["    block = allocate()", "    b = block.ptr"]
        for number, name in returned.items():
            known[f"allocate_{name}"] = allocator(tape.sizes[number])
            lines += [f"    {name} = allocate_{name}()", f"    p{name} = {name}.ptr"]

        def find(ref: Ref) -> tuple[str | None, int]:
            number = ref.storage
            if number in places:
                return "b", places[number] + ref.offset
            if number in returned:
                return f"p{returned[number]}", ref.offset
            if number in names:
                return f"p{names[number]}", ref.offset
            known["alive"].append(tape.constants[number])
            return None, tape.address(number) + ref.offset

        launches = Bases(find).launches(tape.steps, known)
        if tape.follows_indices:
            known |= {"faults": CPU.backend.faults, "on_copies": self.on_copies}
            launches.insert(0, "    before = faults[0]")
            launches.append("    if faults[0] != before: return on_copies(cts, saved)  # raises the error")
        lines += launches
        lines.append(f"    return ({''.join(each + ', ' for each in results)})")
        exec(compile("\n".join(lines), "<weft compiled backward>", "exec"), known)
        pull = known["pull"]
        pull.source = "\n".join(lines)
        return pull


def _filled(spec: Spec) -> Tensor:
    """A tensor of zeros with this spec, that begins where its memory begins."""
    if spec.conj or spec.neg or any(step < 0 for step in spec.stride):
        raise Unsupported("a cotangent has an unusual layout")
    storage = Storage(spec.span * spec.dtype.itemsize)
    ctypes.memset(storage.ptr, 0, storage.nbytes_)
    return make(storage, 0, spec)


def is_result(tensor: Tensor) -> bool:
    """Whether a tensor is the result of a recorded step."""
    return isinstance(tensor._autograd, (Node, Output))
