"""Trees of containers: nested tuples, lists, dicts and the like, whose leaves are everything else.

`tree_flatten` takes a tree apart into its leaves and a TreeSpec, which puts others in their place; `tree_map` does both.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ..core.return_types import ReturnType
from ..core.size import Size

PyTree = Any
Context = Any
DumpableContext = Any
FlattenFn = Callable[[PyTree], tuple[list, Context]]
UnflattenFn = Callable[[Iterable, Context], PyTree]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
IsLeaf = Callable[[PyTree], bool] | None

# -- the way to a leaf -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


KeyPath = tuple[Any, ...]


def keystr(kp: KeyPath) -> str:
    """The way to a leaf, as one would write it.

    >>> keystr((SequenceKey(1), MappingKey("a"), GetAttrKey("b")))
    "[1]['a'].b"
    """
    return "".join(map(str, kp))


def key_get(obj: PyTree, kp: KeyPath) -> Any:
    """What is at the end of the way."""
    return functools.reduce(lambda found, key: key.get(found), kp, obj)


# -- kinds of containers -----------------------------------------------------------------------------------------------


class NodeDef(NamedTuple):
    """How a container is taken apart and put together. The context is what its children do not say."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: Callable[[PyTree], tuple[list, Context]] | None = None


class _Names(NamedTuple):
    """How a kind of container and its context are written in JSON."""

    type: str
    dump: ToDumpableContextFn
    load: FromDumpableContextFn


# All kinds of containers by their type; all classes of named tuples are under the function `namedtuple`.
SUPPORTED_NODES: dict[Any, NodeDef] = {}
_names: dict[Any, _Names] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: Callable[[PyTree], tuple[list, Context]] | None = None,
) -> None:
    """Make a class a container. `flatten_fn` gives its children and a context, of which `unflatten_fn` makes an instance.

    Raises: ValueError if it is one already, or if only one direction of the context's JSON is given.

    >>> class Pair:
    ...     def __init__(self, first, second):
    ...         self.both = [first, second]
    >>> register_pytree_node(Pair, lambda pair: (pair.both, None), lambda both, _: Pair(*both))
    >>> tree_leaves([Pair(1, [2]), 3])
    [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    if serialized_type_name is not None:
        _names[cls] = _Names(
            serialized_type_name, to_dumpable_context or json.dumps, from_dumpable_context or json.loads
        )


def _sequence_with_keys(sequence: Any) -> tuple[list, Context]:
    children, context = SUPPORTED_NODES[type(sequence)].flatten_fn(sequence)
    return [(SequenceKey(index), child) for index, child in enumerate(children)], context


def _mapping_with_keys(mapping: Any) -> tuple[list, Context]:
    children, context = SUPPORTED_NODES[type(mapping)].flatten_fn(mapping)
    return [(MappingKey(key), child) for key, child in zip(mapping, children)], context


def _defaultdict_of(values: Iterable, context: Context) -> defaultdict:
    factory, keys = context
    return defaultdict(factory, zip(keys, values))


def _dump_defaultdict(context: Context) -> DumpableContext:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _load_defaultdict(dumped: DumpableContext) -> Context:
    module = importlib.import_module(dumped["default_factory_module"])
    return [getattr(module, dumped["default_factory_name"]), dumped["dict_context"]]


def _dump_namedtuple(context: Context) -> DumpableContext:
    raise NotImplementedError(f"Can't serialize TreeSpec of namedtuple class {context}")


register_pytree_node(
    tuple,
    lambda node: (list(node), None),
    lambda values, _: tuple(values),
    serialized_type_name="builtins.tuple",
    flatten_with_keys_fn=_sequence_with_keys,
)
register_pytree_node(
    list,
    lambda node: (node, None),
    lambda values, _: list(values),
    serialized_type_name="builtins.list",
    flatten_with_keys_fn=_sequence_with_keys,
)
register_pytree_node(
    Size,
    lambda node: (list(node), None),
    lambda values, _: tuple(values),  # they need not be sizes any more
    serialized_type_name="torch.Size",
    flatten_with_keys_fn=_sequence_with_keys,
)
register_pytree_node(
    deque,
    lambda node: (list(node), node.maxlen),
    lambda values, maxlen: deque(values, maxlen),
    serialized_type_name="collections.deque",
    flatten_with_keys_fn=_sequence_with_keys,
)
register_pytree_node(
    dict,
    lambda node: (list(node.values()), list(node)),
    lambda values, keys: dict(zip(keys, values)),
    serialized_type_name="builtins.dict",
    flatten_with_keys_fn=_mapping_with_keys,
)
register_pytree_node(
    OrderedDict,
    lambda node: (list(node.values()), list(node)),
    lambda values, keys: OrderedDict(zip(keys, values)),
    serialized_type_name="collections.OrderedDict",
    flatten_with_keys_fn=_mapping_with_keys,
)
register_pytree_node(
    defaultdict,
    lambda node: (list(node.values()), [node.default_factory, list(node)]),
    _defaultdict_of,
    serialized_type_name="collections.defaultdict",
    to_dumpable_context=_dump_defaultdict,
    from_dumpable_context=_load_defaultdict,
    flatten_with_keys_fn=_mapping_with_keys,
)
register_pytree_node(
    namedtuple,  # type: ignore[arg-type]
    lambda node: (list(node), type(node)),
    lambda values, cls: cls(*values),
    serialized_type_name="collections.namedtuple",
    to_dumpable_context=_dump_namedtuple,
    from_dumpable_context=json.loads,
    flatten_with_keys_fn=lambda node: (
        [(GetAttrKey(name), child) for name, child in zip(node._fields, node)],
        type(node),
    ),
)

_MAPPINGS = frozenset((dict, OrderedDict, defaultdict))


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class was made by `namedtuple` or as a NamedTuple."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields, tuple)
        and all(isinstance(field, str) for field in fields)
    )


def is_namedtuple_instance(obj: object) -> bool:
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object | type) -> bool:
    """Whether this is a named tuple, or a class of such."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: type) -> bool:
    """Whether a class is a tuple with named fields as the built-in ones have: `os.stat_result`, `torch.return_types.max`."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and all(isinstance(getattr(cls, name, None), int) for name in ("n_fields", "n_sequence_fields"))
    )


def is_structseq_instance(obj: object) -> bool:
    return is_structseq_class(type(obj))


def is_structseq(obj: object | type) -> bool:
    """Whether this is a structseq, or a class of such."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _kind_of(tree: PyTree) -> Any:
    """The key of a tree's root in `SUPPORTED_NODES`; its type if it is a leaf."""
    kind = type(tree)
    if kind not in SUPPORTED_NODES:
        if issubclass(kind, ReturnType):
            _register_return_type(kind)
        elif is_namedtuple_class(kind):
            return namedtuple
    return kind


def _register_return_type(kind: type) -> None:
    register_pytree_node(
        kind,
        lambda node: (list(node), None),
        lambda values, _: kind(values),
        serialized_type_name=f"{kind.__module__}.{kind.__name__}",
        flatten_with_keys_fn=_sequence_with_keys,
    )


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether this is no container, or one that `is_leaf` takes for a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _kind_of(tree) not in SUPPORTED_NODES


# -- the structure of a tree -------------------------------------------------------------------------------------------


class TreeSpec:
    """A tree without its leaves. A leaf's has the type None.

    >>> tree_structure([1, {"a": 2}])
    TreeSpec(list, None, [*,
      TreeSpec(dict, ['a'], [*])])
    """

    __slots__ = ("type", "context", "children_specs", "num_nodes", "num_leaves", "num_children")
    num_nodes: int
    num_leaves: int

    def __init__(self, type: Any, context: Context, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self.children_specs = children_specs
        self.num_nodes = 1 + sum(child.num_nodes for child in children_specs)
        self.num_leaves = sum(child.num_leaves for child in children_specs) if type is not None else 1
        self.num_children = len(children_specs)

    def is_leaf(self) -> bool:
        return self.type is None

    def children(self) -> list[TreeSpec]:
        return self.children_specs.copy()

    def child(self, index: int) -> TreeSpec:
        return self.children_specs[index]

    def _keys(self) -> list:
        """The keys of a mapping."""
        return self.context[1] if self.type is defaultdict else self.context

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """What `tree` has where this structure has leaves: leaves or whole trees.

        Raises: ValueError where the structures differ above that.
        """
        found: list[PyTree] = []
        self._flatten_up_to(tree, found)
        return found

    def _flatten_up_to(self, tree: PyTree, found: list[PyTree]) -> None:
        if self.type is None:
            found.append(tree)
            return
        children = self._matching_children(tree)
        for child, subtree in zip(self.children_specs, children, strict=True):
            child._flatten_up_to(subtree, found)

    def _matching_children(self, tree: PyTree) -> list[PyTree]:
        kind = _kind_of(tree)
        both_mappings = kind in _MAPPINGS and self.type in _MAPPINGS
        if kind != self.type and not both_mappings:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if both_mappings:
            return self._in_own_order(tree)
        # How long a deque may become is not its structure.
        if self.type is not deque and context != self.context:
            expected = f"expected {self.context!r}, but got {context!r}."
            if self.type is namedtuple:
                raise ValueError(f"Node context mismatch for node type {self.type!r}; {expected}")
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.\n{expected}")
        return children

    def _in_own_order(self, mapping: Any) -> list[PyTree]:
        keys = self._keys()
        missing, extra = set(keys) - set(mapping), set(mapping) - set(keys)
        if missing or extra:
            parts = ["Node keys mismatch"]
            parts += [f"missing key(s): {missing}"] if missing else []
            parts += [f"extra key(s): {extra}"] if extra else []
            raise ValueError("; ".join(parts) + ".")
        return [mapping[key] for key in keys]

    def unflatten(self, leaves: Iterable) -> PyTree:
        """The tree of this structure with these leaves.

        Raises: ValueError if there are too few or too many.
        """
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._unflatten(iter(leaves))

    def _unflatten(self, leaves: Iterator) -> PyTree:
        if self.type is None:
            return next(leaves)
        children = [child._unflatten(leaves) for child in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type is other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self) -> int:
        context = self.context
        if self.type in _MAPPINGS:
            context = tuple(context[1] if self.type is defaultdict else context)
        return hash((self.type, context, tuple(self.children_specs)))

    def __repr__(self) -> str:
        return self._text(indent=0)

    def _text(self, indent: int) -> str:
        if self.type is None:
            return "*"
        indent += 2
        children = (",\n" + " " * indent).join(child._text(indent) for child in self.children_specs)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"


PyTreeSpec = TreeSpec
_LEAF_SPEC = TreeSpec(None, None, [])


class _LeafSpecMeta(type(TreeSpec)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TreeSpec) and instance.is_leaf()


class LeafSpec(TreeSpec, metaclass=_LeafSpecMeta):
    """The structure of a leaf."""

    __slots__ = ()

    def __new__(cls) -> Any:
        return _LEAF_SPEC

    def __init__(self) -> None:
        pass


def _checked_spec(treespec: Any) -> TreeSpec:
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}."
        )
    return treespec


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The tree without its leaves."""
    return tree_flatten(tree, is_leaf)[1]


# -- apart and together ------------------------------------------------------------------------------------------------


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list, TreeSpec]:
    """The leaves of a tree, and its structure.

    >>> tree_flatten({"b": [1, 2], "a": (3,)})[0]
    [1, 2, 3]
    """
    leaves: list = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: PyTree, leaves: list, is_leaf: IsLeaf) -> TreeSpec:
    kind = _kind_of(tree)
    if kind not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """The tree of a structure with these leaves.

    Raises: ValueError if there are too few or too many.

    >>> tree_unflatten("xyz", tree_structure({"b": [1, 2], "a": (3,)}))
    {'b': ['x', 'y'], 'a': ('z',)}
    """
    return _checked_spec(treespec).unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator:
    """The leaves, one by one."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_kind_of(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list:
    """The leaves.

    >>> tree_leaves([1, (2, None)])
    [1, 2, None]
    """
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list:
    """The leaves of the arguments of a call."""
    return tree_leaves([*args, *kwargs.values()])


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves, each with the way to it.

    Raises: ValueError for a container that was registered without `flatten_with_keys_fn`.

    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1, 2]})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_with_paths((), tree, is_leaf))


def _with_paths(path: KeyPath, tree: PyTree, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    with_keys = SUPPORTED_NODES[_kind_of(tree)].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {type(tree)}. "
            "Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in with_keys(tree)[0]:
        yield from _with_paths((*path, key), child, is_leaf)


def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves, each with the way to it, and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


# -- functions of leaves -----------------------------------------------------------------------------------------------


def tree_map(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The tree of what a function makes of the leaves, together with what `rests` have in their places.

    Raises: ValueError if one of `rests` has another structure.

    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call a function on the leaves, for what it does to them. Returns the tree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for arguments in zip(leaves, *(spec.flatten_up_to(rest) for rest in rests)):
        func(*arguments)
    return tree


def tree_map_with_path(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map` with the way to the leaf as the first argument."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = (spec.flatten_up_to(rest) for rest in rests)
    return spec.unflatten(func(path, leaf, *rest) for (path, leaf), *rest in zip(found, *others))


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable], Callable]:
    """A decorator: the function sees only leaves of these types, or that fulfil a predicate; others stay as they are."""
    if isinstance(type_or_types_or_pred, (type, tuple, types.UnionType)):

        def fits(leaf: Any) -> bool:
            return isinstance(leaf, type_or_types_or_pred)
    elif callable(type_or_types_or_pred):
        fits = type_or_types_or_pred
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def wrapper(func: Callable) -> Callable:
        @functools.wraps(func)
        def wrapped(leaf: Any) -> Any:
            return func(leaf) if fits(leaf) else leaf

        return wrapped

    return wrapper


def tree_map_only(
    type_or_types_or_pred: Any, /, func: Callable, tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """`tree_map` for leaves of some types, or that fulfil a predicate.

    >>> tree_map_only(int, str, [1, 2.5, (3,)])
    ['1', 2.5, ('3',)]
    """
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, /, func: Callable, tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """`tree_map_` for leaves of some types, or that fulfil a predicate."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves fulfil a predicate."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether any leaf fulfils a predicate."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Whether all leaves of some types fulfil a predicate."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Whether any leaf of some types fulfils a predicate."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list | None:
    """The leaves of `tree`, each as often as the structure has leaves in its place; None if the two do not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = _kind_of(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    specs = treespec.children_specs
    if kind in _MAPPINGS and treespec.type in _MAPPINGS:  # of any kind, in any order
        by_key = dict(zip(treespec._keys(), specs))
        if by_key.keys() != tree.keys():
            return None
        specs = [by_key[key] for key in tree]
    elif kind is not treespec.type or context != treespec.context or len(children) != treespec.num_children:
        return None
    leaves: list = []
    for child, spec in zip(children, specs):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        leaves += part
    return leaves


# -- structures as text ------------------------------------------------------------------------------------------------

_PROTOCOL = 1


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """The structure as JSON.

    Raises: NotImplementedError for containers without a `serialized_type_name`, ValueError for another protocol than 1.
    """
    _checked_spec(treespec)
    _check_protocol(_PROTOCOL if protocol is None else protocol)
    return json.dumps([_PROTOCOL, _to_json(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure from what `treespec_dumps` made of it.

    >>> spec = tree_structure([1, {"a": 2}])
    >>> treespec_loads(treespec_dumps(spec)) == spec
    True
    """
    protocol, content = json.loads(serialized)
    _check_protocol(protocol)
    return _from_json(content)


def treespec_pprint(treespec: TreeSpec) -> str:
    """A tree of the structure with stars as leaves."""
    return repr(treespec.unflatten([_Star()] * treespec.num_leaves))


class _Star:
    def __repr__(self) -> str:
        return "*"


def _check_protocol(protocol: int) -> None:
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")


def _to_json(spec: TreeSpec) -> dict:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    names = _names.get(spec.type)
    if names is None:
        raise NotImplementedError(
            f"Serializing {spec.type} in pytree is not registered: call register_pytree_node with serialized_type_name."
        )
    children = [_to_json(child) for child in spec.children_specs]
    return {"type": names.type, "context": names.dump(spec.context), "children_spec": children}


def _from_json(content: dict) -> TreeSpec:
    if content["type"] is None:
        return _LEAF_SPEC
    for kind, names in _names.items():
        if names.type == content["type"]:
            children = [_from_json(child) for child in content["children_spec"]]
            return TreeSpec(kind, names.load(content["context"]), children)
    raise NotImplementedError(f"Deserializing {content['type']} in pytree is not registered.")
