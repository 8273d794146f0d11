"""The engine: it runs backward from the roots of the graph to the leaves.

Nodes run in the reverse order of recording. Operations that use a result were recorded after the operation that computed it, so
a node has received all its cotangents when it runs. The pass lists the nodes before the first one runs, and does not recurse,
so graphs may have any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from sys import getrefcount
from typing import Any

from ..core.dispatch import watchers
from ..core.dtype import LEGACY_NAMES
from ..core.grad_mode import mode, open_levels
from ..core.layout import contiguous_format
from ..core.layout_spec import NotStrided, as_cotangent, is_strided
from ..core.locks import new_lock
from ..core.modes import DisableTorchFunction
from ..core.overrides import override_types
from ..core.spec import Spec
from ..core.tensor import Tensor, make
from ..families.calls import inplace_of
from ..ops.creation.creation import empty_strided
from ..ops.elementwise.arithmetic import ADD
from . import anomaly
from .carried import carrier_of, carriers
from .graph import Leaf, Node, Output, endpoint
from .hooks import running
from .saved import RELEASED


def run(
    roots: Sequence[tuple[Any, Tensor]],
    *,
    wanted: Sequence[Any] | None = None,
    keep_graph: bool = False,
    create_graph: bool = False,
    accumulate: bool = True,
) -> dict[Any, Tensor]:
    """Send the cotangents of `roots`, pairs (edge, cotangent), through the graph.

    With `wanted`, a list of edges, only the nodes on a path to one of them run, and the cotangents of these edges are returned
    by the `key` of the edge. With `accumulate`, the cotangents of leaves are added to their `.grad`.
    """
    kind = watched_pass_type if watchers else pass_type
    if override_types:  # rules are written for plain tensors, so neither classes nor modes are asked
        with DisableTorchFunction():
            return _run(kind(roots, wanted, keep_graph, create_graph, accumulate), roots)
    return _run(kind(roots, wanted, keep_graph, create_graph, accumulate), roots)


def _run(now: _Pass, roots: Sequence[tuple[Any, Tensor]]) -> dict[Any, Tensor]:
    outer = mode.enabled, mode.inference, mode.reverse, running.now
    mode.enabled, mode.reverse = now.create_graph or bool(open_levels), now.create_graph
    if outer[1]:
        mode.inference = False
    running.now = now
    try:
        return now.run(roots)
    except NotStrided as error:
        raise NotImplementedError(
            f"an operation of this graph has no derivative for {error.spec.rules.name} gradients: make them dense before they reach it, "  # type: ignore[attr-defined]
            "with sparse=False in embedding and sparse_grad=False in gather, or with x.to_dense()"
        ) from error
    finally:
        mode.enabled, mode.inference, mode.reverse, running.now = outer


def key(edge: Any) -> Any:
    """A key for dictionaries of edges, because equal edges may be different Output objects."""
    return (edge.node, edge.index) if type(edge) is Output else edge


# Held while a gradient is added to `.grad`, because backward passes of several threads may reach the same tensor.
accumulating = new_lock()


class _Sum:
    """A sum of cotangents that the engine has allocated, so it may add to the sum in place."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor):
        self.tensor = tensor


class _Native:
    """The inner loops in machine code, once `native_engine.py` has put them here."""

    explore: Callable | None = None
    run_nodes: Callable | None = None


native = _Native()


def collected(ct: Any) -> Any:
    """The cotangent of a node, or a tuple of them, from the collected values."""
    if type(ct) is _Sum:
        return ct.tensor
    if type(ct) is list:
        return tuple([each.tensor if type(each) is _Sum else each for each in ct])
    return ct


class _Pass:
    """One backward pass."""

    callbacks: Sequence[Callable] = ()  # called when the pass has ended
    number: int | None = None  # what programs know it by, if one has asked

    def __init__(self, roots, wanted, keep_graph: bool, create_graph: bool, accumulate: bool):
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.accumulate = accumulate
        self.captured: dict[Any, Tensor] = {}
        # The cotangents of nodes that have received one; a list for a node with several results.
        self.pending: dict[Node, Any] = {}
        # For each leaf, the sum of its cotangents, and whether no other code holds the sum.
        self.leaves: dict[Leaf, tuple[Any, bool]] = {}
        # For each leaf, the number of edges whose cotangent is missing; the nodes, and the order in which they run.
        self.uses, self.seen, self.nodes = _explore(tuple(map(_first, roots)))
        # The keys of the wanted edges, and the nodes on a path to one of them (None: all edges, and all nodes).
        self.wanted: set | None = None
        self.needed: set[Node] | None = None
        if wanted is not None:
            self.wanted = {key(edge) for edge in wanted}
            self.needed = _on_path(self.nodes, self.wanted)
            # As in PyTorch, backward(inputs=...) runs the nodes of which the inputs are results.
            if accumulate:
                self.needed.update(each for each in map(_node_of, self.wanted) if each in self.seen)

    def run(self, roots: Sequence[tuple[Any, Tensor]]) -> dict[Any, Tensor]:
        pending, keeping = self.pending, self.keep_graph
        for root, seed in roots:
            kind = type(root)
            if kind is Leaf:
                self._give_leaf(root, seed, False)
            elif kind is Output or root in pending:
                self._give(root, seed)
            else:
                pending[root] = seed
        # Whether nodes without hooks need nothing but their rules.
        usual = not (
            self.create_graph
            or self.wanted is not None
            and self.wanted != self.uses.keys()  # some edges lead to nothing that is wanted
            or open_levels
            or carriers
            or anomaly.tracing
            or anomaly.checking
        )
        nodes, run_nodes = self.nodes, native.run_nodes
        if run_nodes is None or not usual or type(self) is not _Pass:
            self._run_nodes(nodes, usual)
        else:
            start, adds = 0, self.accumulate and self.wanted is None
            while True:
                k = run_nodes(self, nodes, start, pending, self.uses, self.leaves, keeping, adds)
                if k == len(nodes):
                    break
                start = k + 1
                self._run_nodes(nodes[k:start], usual)
        if self.leaves:  # leaves with an edge that brought no cotangent
            for leaf in list(self.leaves):
                self._finish_collected(leaf)
        if self.callbacks:
            self._call_back()
        return self.captured

    def _call_back(self) -> None:
        """Call the callbacks, which may add further ones."""
        while self.callbacks:
            callbacks, self.callbacks = self.callbacks, ()
            for each in callbacks:
                each()

    def _run_nodes(self, nodes: Sequence[Node], usual: bool) -> None:
        """Run the nodes, the newest first. `usual`: nodes without hooks need nothing but their rules."""
        pending, keeping = self.pending, self.keep_graph
        for node in nodes:
            if node not in pending and not self._runs_on_nothing(node):
                continue
            spec = node._spec
            if usual and node._notes is None and spec.quick_pull is not None:
                ct: Any = pending.pop(node)
                if type(ct) is not Tensor:
                    ct = collected(ct)
                edges: Any = node._edges
                found = spec.quick_pull(node, ct, edges)
                ct = None
                if not keeping:
                    node._saved = RELEASED
            else:
                edges, found = self._run_node(node)
                if edges is None:
                    continue
            # Send the cotangents to where the edges lead. This is not a method, because each node would pay for the call.
            inputs = spec.inputs
            for position, edge in enumerate(edges):
                if edge is None:
                    continue
                ct = found[position]
                kind = type(edge)
                if ct is None:
                    if kind is Leaf:
                        self._give_leaf_nothing(edge)
                    continue
                wanted = inputs[position]
                given = ct.spec
                if given is not wanted and not _fits(given, wanted):
                    self._send(edge, ct, node, position)
                elif kind is Leaf:
                    ct = None
                    # Only `found` holds the tensor, and only the tensor holds its storage.
                    lone = getrefcount(found[position]) == 2 and getrefcount(found[position]._storage) == 2
                    self._give_leaf(edge, found[position], lone)
                elif kind is Output or edge in pending:
                    self._give(edge, ct)
                else:
                    pending[edge] = ct
            found = ct = ()  # free the cotangents before the next node runs

    def _run_node(self, node: Node) -> tuple[Any, Sequence[Any]]:
        """The edges of a node that lead to a wanted edge (None if there are none), and the cotangents of its inputs."""
        spare = node._spec.large and self._is_spare(node)
        ct = collected(self.pending.pop(node))
        notes = node._notes
        if notes is not None:
            ct = _run_tensor_hooks_of(node, ct)
        edges = node._edges if self.wanted is None else self._useful_edges(node, ct)
        if edges is None:
            return None, ()
        if notes is not None and notes.before:
            ct = _before(node, ct)
        found = self._cotangents(node, ct, edges, spare)
        if notes is not None and notes.after:
            found = _after(node, found, ct)
        if not self.keep_graph:
            node._release()
        return edges, found

    def _cotangents(self, node: Node, ct: Any, edges: tuple, spare: bool) -> Sequence[Any]:
        """The cotangents of the inputs of a node. `spare`: the memory of `ct` may be reused."""
        found = node._pull_over(ct, edges) if spare else None
        if found is not None:
            return found
        return (None,) * len(edges) if _ignores(node, ct) else self._pull(node, ct, edges)

    def _runs_on_nothing(self, node: Node) -> bool:
        """Whether a node that no cotangent has reached runs: as in PyTorch, its hooks and its Function get None or zeros."""
        if self.needed is not None and node not in self.needed:
            return False
        if node.takes_nothing or node._notes is not None:
            result = node._spec.result
            self.pending[node] = [None] * len(result) if type(result) is tuple else None
            return True
        for edge in node._edges:
            if type(edge) is Leaf:
                self._give_leaf_nothing(edge)
        return False

    def reaches(self, edge: Any) -> bool:
        """Whether this pass computes the cotangent of an edge."""
        if type(edge) is Leaf:
            return edge in self.uses and (self.wanted is None or edge in self.wanted)
        if self.wanted is not None and self.needed is not None:
            return _leads_to(edge, self.wanted, self.needed)
        return endpoint(edge)[0] in self.seen

    def _is_spare(self, node: Node) -> bool:
        """Whether no other code holds the large cotangent of a node, so that the engine may reuse its memory."""
        if self.create_graph or self.wanted is not None or open_levels:
            return False
        if node._notes is not None or anomaly.tracing or anomaly.checking:
            return False
        if type(self.pending[node]) is _Sum:
            return True
        if type(self.pending[node]) in carriers:
            return False
        # Only `pending` holds the tensor, and only the tensor holds its storage.
        return (
            getrefcount(self.pending[node]) == 2
            and getrefcount(self.pending[node]._storage) == 2
            and not self.pending[node]._storage.exposed
        )

    def _pull(self, node: Node, ct: Any, edges: tuple) -> Sequence[Any]:
        """As `Node._pull`, for cotangents with a carrier, and in anomaly mode."""
        if carriers and (carrier := carrier_of(ct)) is not None:
            return carrier.pull(node, ct, edges, self.create_graph)
        if not (anomaly.tracing or anomaly.checking):
            return node._pull(ct, edges, self.create_graph)
        try:
            found = node._pull(ct, edges, self.create_graph)
            if anomaly.checking:
                _check_nan(node, found)
            return found
        except Exception:
            anomaly.report(node)
            raise

    # -- collecting cotangents --------------------------------------------------------------------------------------

    def _send(self, edge: Any, ct: Tensor, node: Node, position: int) -> None:
        """Send a cotangent along an edge of a node, in the shape, dtype and device of the input."""
        lone, wanted = False, node._spec.inputs[position]
        if not _fits(ct.spec, wanted):
            ct = fitted(ct, wanted, node, position)
            if ct._base is not None and not self.create_graph:
                ct = make(ct._storage, ct._byte_offset, ct.spec)  # drop `_base`, so that the temporary dies
            lone = getrefcount(ct._storage) == 2  # one reference of the tensor, one of the call
        if type(edge) is Leaf:
            self._give_leaf(edge, ct, lone)
        else:
            self._give(edge, ct)

    def _give(self, edge: Any, ct: Tensor) -> None:
        """Add a cotangent to the cotangents that a node has received."""
        pending = self.pending
        if type(edge) is Output:
            node = edge.node
            cts = pending.get(node)
            if cts is None:
                cts = pending[node] = [None] * len(node._spec.result)
            before = cts[edge.index]
            cts[edge.index] = ct if before is None else self._sum(before, ct)
        else:
            before = pending.get(edge)
            pending[edge] = ct if before is None else self._sum(before, ct)

    def _give_leaf(self, leaf: Leaf, ct: Tensor, lone: bool) -> None:
        left = self.uses[leaf] - 1
        if left or leaf in self.leaves:
            self.uses[leaf] = left
            before = self.leaves.pop(leaf, None)
            if before is not None:
                ct, lone = self._sum(before[0], ct), True
            if left:
                self.leaves[leaf] = ct, lone
                return
            ct = collected(ct)
        self._finish(leaf, ct, lone)

    def _give_leaf_nothing(self, leaf: Leaf) -> None:
        """Count an edge that brought a leaf no cotangent. After the last edge, the gradient of the leaf is complete."""
        self.uses[leaf] -= 1
        if self.uses[leaf] == 0:
            if leaf in self.leaves:
                self._finish_collected(leaf)
            else:
                self._finish_without(leaf)

    def _finish_collected(self, leaf: Leaf) -> None:
        """Finish a leaf with the cotangents that it has received."""
        ct, lone = self.leaves.pop(leaf)
        self._finish(leaf, collected(ct), lone)

    def _sum(self, a: Any, b: Tensor) -> Any:
        if carriers:
            before = a.tensor if type(a) is _Sum else a
            if (carrier := carrier_of(before, b)) is not None:
                return carrier.add(before, b)
        if self.create_graph:
            return _added(a, b)
        if type(a) is _Sum:
            if type(b) is Tensor:
                try:
                    self._add_into(a.tensor, b)
                except NotStrided:
                    a.tensor = _added_in_place(a.tensor, b)
                return a
            a = a.tensor  # a sample of `vmap` may not fit into a sum of constants
        return _Sum(_added(a, b))

    _add_into = staticmethod(inplace_of(ADD))  # `add_`, without its argument alpha

    # -- results -------------------------------------------------------------------------------------------

    def _useful_edges(self, node: Node, ct: Any) -> tuple | None:
        """The edges of a node with None for those that lead to no wanted edge. Stores the wanted cotangents of the node."""
        assert self.wanted is not None and self.needed is not None
        if type(ct) is tuple:
            for index, each in enumerate(ct):
                if each is not None and (node, index) in self.wanted:
                    self.captured[node, index] = each
        elif node in self.wanted:
            self.captured[node] = ct
        if node not in self.needed:
            return None
        wanted, needed = self.wanted, self.needed
        return tuple(
            [edge if edge is not None and _leads_to(edge, wanted, needed) else None for edge in node._edges]
        )

    def _finish(self, leaf: Leaf, ct: Tensor, lone: bool) -> None:
        """Run the hooks of a leaf that has all of its gradient, capture the gradient, and add it to `.grad`.

        As in PyTorch, the first gradient becomes `.grad` without a copy if only the pass holds it (`lone`).
        """
        if leaf.hooks:
            ct = run_tensor_hooks(leaf.hooks, ct)
            lone = getrefcount(ct) == 2 and getrefcount(ct._storage) == 2
        if self.wanted is not None:
            if leaf not in self.wanted:
                return
            self.captured[leaf] = ct
        tensor = leaf.tensor()
        # The tensor may be gone, may no longer require grad, or may be a view that has no place in the graph.
        if tensor is None or tensor._autograd is None or not self.accumulate:
            return
        if tensor._base is not None and "_unconnected" in tensor.__dict__:
            return
        if leaf.of_node is not None:
            (ct,) = _run_prehooks(leaf.of_node.before, (ct,))
            lone = getrefcount(ct) == 2 and getrefcount(ct._storage) == 2
        dtype = tensor._grad_dtype
        if dtype is not ... and dtype is not None and dtype is not ct.spec.dtype:
            ct, lone = ct.to(dtype), True
        with accumulating:
            before = tensor._grad
            if carriers and (carrier := carrier_of(before, ct)) is not None:
                tensor._grad = carrier.keep(ct) if before is None else carrier.add(before, ct)  # type: ignore[attr-defined]
            elif before is None:
                tensor._grad = copied(ct, tensor.spec) if self.create_graph else own(ct, tensor.spec, lone)
            elif self.create_graph:
                tensor._grad = _added(before, ct)  # type: ignore[attr-defined]
            else:
                try:
                    self._add_into(before, ct)
                except NotStrided:
                    tensor._grad = _added_in_place(before, ct)  # type: ignore[attr-defined]
        if leaf.after:
            _run_hooks_after(leaf.after, tensor)
        if leaf.of_node is not None:
            for hook in list(leaf.of_node.after.values()):
                hook((), (ct,))

    def _finish_without(self, leaf: Leaf) -> None:
        """Run the hooks of a leaf that no edge brought a cotangent, as PyTorch does: they get None."""
        if leaf.hooks:
            run_tensor_hooks(leaf.hooks, None)
        tensor = leaf.tensor()
        if not self.accumulate or tensor is None or self.wanted is not None and leaf not in self.wanted:
            return
        cts: tuple = (None,)
        if leaf.of_node is not None:
            cts = _run_prehooks(leaf.of_node.before, cts)
        if leaf.after:
            _run_hooks_after(leaf.after, tensor)
        if leaf.of_node is not None:
            for hook in list(leaf.of_node.after.values()):
                hook((), cts)


# The class of backward passes, and that while calls are watched: `library/registry/dispatching.py` replaces it by one that tells
# `__torch_dispatch__` of its sums.
pass_type: type[_Pass] = _Pass
watched_pass_type: type[_Pass] = _Pass
_follow: Callable[[type[_Pass]], type[_Pass]] | None = None


def set_pass_type(kind: type[_Pass]) -> None:
    """Let later backward passes be of a subclass of `_Pass` while calls are watched."""
    global watched_pass_type
    watched_pass_type = kind if _follow is None else _follow(kind)


def follow_streams(ordered: Callable[[type[_Pass]], type[_Pass]]) -> None:
    """Let later backward passes follow streams. ordered: makes their class of one that does not, see `stream_order.py`."""
    global pass_type, watched_pass_type, _follow
    if _follow is None:
        pass_type, watched_pass_type, _follow = ordered(pass_type), ordered(watched_pass_type), ordered


_by_order, _first = attrgetter("_order"), itemgetter(0)


def sort_nodes(nodes: list[Node]) -> None:
    nodes.sort(key=_by_order, reverse=True)


def _explore(edges: tuple) -> tuple[dict[Leaf, int], dict[Node, None], list[Node]]:
    """For the graph behind these edges: the number of edges to each leaf; all nodes; the nodes in the order in which they run,
    the newest first.
    """
    if native.explore is not None and (found := native.explore(edges)) is not None:
        return found
    uses: dict[Leaf, int] = {}
    seen: dict[Node, None] = {}
    stack: list[Any] = [edges]
    while stack:
        for edge in stack.pop():
            if edge is None:
                continue
            kind = type(edge)
            if kind is Leaf:
                uses[edge] = uses.get(edge, 0) + 1
            else:
                if kind is Output:
                    edge = edge.node
                if edge not in seen:
                    seen[edge] = None
                    stack.append(edge._edges)
    return uses, seen, sorted(seen, key=_by_order, reverse=True)


def _on_path(nodes: Sequence[Node], wanted: set) -> set[Node]:
    """Those of the nodes, which come newest first, that lie on a path to a wanted edge."""
    needed: set[Node] = set()
    for node in reversed(nodes):
        for edge in node._edges:
            if edge is not None and _leads_to(edge, wanted, needed):
                needed.add(node)
                break
    return needed


def _leads_to(edge: Any, wanted: set, needed: set[Node]) -> bool:
    """Whether an edge is wanted, or leads to a node on a path to a wanted edge."""
    if type(edge) is Output:
        return edge.node in needed or (edge.node, edge.index) in wanted
    return edge in wanted or edge in needed


def fitted(ct: Tensor, wanted: Spec, node: Node, position: int) -> Tensor:
    """Reduce a cotangent to the shape of the input by summing over broadcast dims, and convert it to its dtype."""
    if type(ct) in carriers:
        return carriers[type(ct)].fit(ct, wanted)
    if ct.spec.shape != wanted.shape:
        try:
            ct = ct.sum_to_size(wanted.shape)
        except RuntimeError:
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {position} - got {list(ct.spec.shape)} but "
                f"expected shape compatible with {list(wanted.shape)}"
            ) from None
    if ct.spec.dtype is not wanted.dtype:
        if ct.spec.dtype.is_complex and not wanted.dtype.is_complex:
            ct = ct.real
        ct = ct.to(wanted.dtype)
    given, device = ct.spec.device, wanted.device
    # Wrappers of tensors take plain cotangents, and the other way round.
    if given is device or given.is_claimed or device.is_claimed:
        return ct
    return ct.to(device)


# ---- Gradients of leaves ------------------------------------------------------------------------------------------


def _node_of(key: Any) -> Any:
    """The node that the key of an edge belongs to."""
    return key[0] if type(key) is tuple else key


def _ignores(node: Node, ct: Any) -> bool:
    """Whether a node returns no cotangents because it has received none."""
    nothing = all(each is None for each in ct) if type(ct) is tuple else ct is None
    return nothing and not node.takes_nothing


def _fits(given: Spec, wanted: Spec) -> bool:
    """Whether a cotangent with one spec is one for an input with the other."""
    return given.shape == wanted.shape and given.dtype is wanted.dtype and given.device is wanted.device


def _added(a: Any, b: Any) -> Any:
    """The sum of two cotangents. As in PyTorch, a sparse one is the second operand; of two sparse ones the older is."""
    return a + b if is_strided(a.spec) else b + a


def _added_in_place(a: Any, b: Any) -> Any:
    """The sum of two cotangents, at least one of which is not strided, in the memory of `a` unless only that is sparse."""
    return b + a if is_strided(b.spec) and not is_strided(a.spec) else a.add_(b)


def own(ct: Tensor, wanted: Spec, lone: bool) -> Tensor:
    """The gradient in memory that no other tensor uses, with the strides of the leaf if the leaf is dense."""
    spec = ct.spec
    if lone and (spec.stride == wanted.stride if wanted.is_dense else spec.is_contiguous):
        if type(spec) is Spec:
            return ct
        return spec.rules.gradient(ct) if _holds_alone(ct) else ct.clone()  # type: ignore[attr-defined]
    if spec.is_contiguous and spec.stride == wanted.stride and not spec.conj and not spec.neg:
        return ct.clone()  # a third of the time of the general case
    return copied(ct, wanted)


def copied(ct: Tensor, wanted: Spec) -> Tensor:
    """A copy of the gradient, with the strides of the leaf if the leaf is dense. It is recorded while grad mode is on."""
    spec = ct.spec
    if wanted.is_dense and not wanted.conj and not wanted.neg and is_strided(spec):
        return empty_strided(wanted.shape, wanted.stride, dtype=spec.dtype, device=spec.device).copy_(ct)
    return ct.clone(memory_format=contiguous_format)


def _holds_alone(ct: Any) -> bool:
    """Whether the parts of a tensor that is not strided are contiguous, and no other tensor uses their memory."""
    return is_strided(ct.spec) or all(
        part.spec.is_contiguous and getrefcount(part._storage) == 2 and not part._storage.exposed
        for part in ct._storage.parts
    )


# ---- Hooks ----------------------------------------------------------------------------------------------------------


def run_tensor_hooks(hooks: dict, ct: Any) -> Any:
    """The cotangent that the hooks of a tensor make of its cotangent, which is None if nothing has reached the tensor."""
    for hook in list(hooks.values()):
        answer = hook(ct)
        if answer is not None:
            if not isinstance(answer, Tensor):
                raise TypeError(f"expected Variable, but hook returned '{type(answer).__name__}'")
            if ct is None:
                raise RuntimeError("can't replace a None gradient with a non-None value")
            _check_kept(hook, ct, answer)
            ct = as_cotangent(answer)
    return ct


def _run_hooks_after(hooks: dict, tensor: Tensor) -> None:
    """Run the hooks of `register_post_accumulate_grad_hook`."""
    for hook in list(hooks.values()):
        if hook(tensor) is not None:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def _check_kept(hook: Any, before: Tensor, after: Tensor) -> None:
    """Raises: RuntimeError if a hook has changed the dtype or the shape of a gradient."""
    old, new = before.spec, after.spec
    name = getattr(hook, "__name__", repr(hook))
    if old.dtype is not new.dtype:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was torch.{LEGACY_NAMES[old.dtype]}Tensor got "
            f"torch.{LEGACY_NAMES[new.dtype]}Tensor)"
        )
    if old.shape != new.shape:
        raise RuntimeError(
            f"hook '{name}' has changed the size of value\nfrom {list(old.shape)} to {list(new.shape)}"
        )


def _run_tensor_hooks_of(node: Node, ct: Any) -> Any:
    """Run the hooks on the cotangents of the results, and store retained gradients."""
    hooks = node._notes
    assert hooks is not None
    single = type(node._spec.result) is not tuple
    cts = [ct] if single else list(ct)
    for index, own in hooks.tensor.items():
        cts[index] = run_tensor_hooks(own, cts[index])
    for index, reference in hooks.retained.items():
        tensor = reference()
        if tensor is not None and cts[index] is not None:
            with accumulating:
                before = tensor._grad
                if (carrier := carrier_of(before, cts[index])) is not None:
                    kept = carrier.keep(cts[index]) if before is None else carrier.add(before, cts[index])
                else:
                    kept = cts[index].clone() if before is None else _added(before, cts[index])
                tensor._grad = kept  # type: ignore[attr-defined]
    return cts[0] if single else tuple(cts)


def _before(node: Node, ct: Any) -> Any:
    assert node._notes is not None
    if type(ct) is tuple:
        return _run_prehooks(node._notes.before, ct)
    return _run_prehooks(node._notes.before, (ct,))[0]


def _run_prehooks(hooks: dict, cts: tuple) -> tuple:
    for hook in list(hooks.values()):
        cts = _replaced(hook, hook(cts), cts)
    return cts


def _after(node: Node, found: Sequence[Any], ct: Any) -> Sequence[Any]:
    assert node._notes is not None
    given = ct if type(ct) is tuple else (ct,)
    for hook in list(node._notes.after.values()):
        found = _replaced(hook, hook(tuple(found), given), tuple(found))
    return found


def _replaced(hook: Any, answer: Any, cts: tuple) -> tuple:
    """The result of a hook of a node, or the cotangents if the result is None."""
    if answer is None:
        return cts
    name = getattr(hook, "__name__", repr(hook))
    if not isinstance(answer, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(answer).__name__}'")
    if len(answer) != len(cts):
        raise RuntimeError(
            f"hook '{name}' has returned an incorrect number of values (got {len(answer)}, but expected {len(cts)})"
        )
    for before, after in zip(cts, answer, strict=True):
        if before is not None and after is not None:
            _check_kept(hook, before, after)
    return answer


def _check_nan(node: Node, found: Sequence[Any]) -> None:
    for index, ct in enumerate(found):
        if ct is not None and bool((ct != ct).any()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {index}th output.")
