"""Structures of trees as text."""

from __future__ import annotations

import json

from .nodes import JSON_NAMES
from .treespec import LEAF_SPEC, TreeSpec, checked_spec

_PROTOCOL = 1


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Return the structure as JSON.

    Raises: NotImplementedError for containers without a `serialized_type_name`, ValueError for another protocol than 1.
    """
    checked_spec(treespec)
    _check_protocol(_PROTOCOL if protocol is None else protocol)
    return json.dumps([_PROTOCOL, _to_json(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """Return the structure from what `treespec_dumps` made of it.

    >>> from weft.utils._pytree import tree_structure
    >>> spec = tree_structure([1, {"a": 2}])
    >>> treespec_loads(treespec_dumps(spec)) == spec
    True
    """
    protocol, content = json.loads(serialized)
    _check_protocol(protocol)
    return _from_json(content)


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return a tree of the structure with stars as leaves."""
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
    names = JSON_NAMES.get(spec.type)
    if names is None:
        raise NotImplementedError(
            f"Serializing {spec.type} in pytree is not registered: call register_pytree_node with serialized_type_name."
        )
    children = [_to_json(child) for child in spec.children_specs]
    return {"type": names.type, "context": names.dump(spec.context), "children_spec": children}


def _from_json(content: dict) -> TreeSpec:
    if content["type"] is None:
        return LEAF_SPEC
    for kind, names in JSON_NAMES.items():
        if names.type == content["type"]:
            children = [_from_json(child) for child in content["children_spec"]]
            return TreeSpec(kind, names.load(content["context"]), children)
    raise NotImplementedError(f"Deserializing {content['type']} in pytree is not registered.")
