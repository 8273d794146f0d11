"""The structure of a tree, without its leaves."""

from __future__ import annotations

from collections import defaultdict, deque, namedtuple
from collections.abc import Iterable, Iterator
from typing import Any

from .nodes import MAPPINGS, SUPPORTED_NODES, Context, PyTree, kind_of


class TreeSpec:
    """A tree without its leaves. A leaf's has the type None.

    >>> from weft.utils._pytree import tree_structure
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
        """Return the keys of a mapping."""
        return self.context[1] if self.type is defaultdict else self.context

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """Return what `tree` has where this structure has leaves: leaves or whole trees.

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
        kind = kind_of(tree)
        both_mappings = kind in MAPPINGS and self.type in MAPPINGS
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
        """Return the tree of this structure with these leaves.

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
        if self.type in MAPPINGS:
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
LEAF_SPEC = TreeSpec(None, None, [])


class _LeafSpecMeta(type(TreeSpec)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TreeSpec) and instance.is_leaf()


class LeafSpec(TreeSpec, metaclass=_LeafSpecMeta):
    """The structure of a leaf."""

    __slots__ = ()

    def __new__(cls) -> Any:
        return LEAF_SPEC

    def __init__(self) -> None:
        pass


def checked_spec(treespec: Any) -> TreeSpec:
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}."
        )
    return treespec
