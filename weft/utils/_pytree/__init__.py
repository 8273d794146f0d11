"""Trees of containers: nested tuples, lists, dicts and the like, whose leaves are everything else.

`tree_flatten` takes a tree apart into its leaves and a TreeSpec, which puts others in their place; `tree_map` does both.
"""

from .flattening import _broadcast_to_and_flatten as _broadcast_to_and_flatten
from .flattening import arg_tree_leaves as arg_tree_leaves
from .flattening import tree_flatten as tree_flatten
from .flattening import tree_flatten_with_path as tree_flatten_with_path
from .flattening import tree_iter as tree_iter
from .flattening import tree_leaves as tree_leaves
from .flattening import tree_leaves_with_path as tree_leaves_with_path
from .flattening import tree_structure as tree_structure
from .flattening import tree_unflatten as tree_unflatten
from .json_text import treespec_dumps as treespec_dumps
from .json_text import treespec_loads as treespec_loads
from .json_text import treespec_pprint as treespec_pprint
from .key_paths import GetAttrKey as GetAttrKey
from .key_paths import KeyPath as KeyPath
from .key_paths import MappingKey as MappingKey
from .key_paths import SequenceKey as SequenceKey
from .key_paths import key_get as key_get
from .key_paths import keystr as keystr
from .mapping import map_only as map_only
from .mapping import tree_all as tree_all
from .mapping import tree_all_only as tree_all_only
from .mapping import tree_any as tree_any
from .mapping import tree_any_only as tree_any_only
from .mapping import tree_map as tree_map
from .mapping import tree_map_ as tree_map_
from .mapping import tree_map_only as tree_map_only
from .mapping import tree_map_only_ as tree_map_only_
from .mapping import tree_map_with_path as tree_map_with_path
from .nodes import SUPPORTED_NODES as SUPPORTED_NODES
from .nodes import Context as Context
from .nodes import DumpableContext as DumpableContext
from .nodes import FlattenFn as FlattenFn
from .nodes import FromDumpableContextFn as FromDumpableContextFn
from .nodes import IsLeaf as IsLeaf
from .nodes import NodeDef as NodeDef
from .nodes import PyTree as PyTree
from .nodes import ToDumpableContextFn as ToDumpableContextFn
from .nodes import UnflattenFn as UnflattenFn
from .nodes import is_namedtuple as is_namedtuple
from .nodes import is_namedtuple_class as is_namedtuple_class
from .nodes import is_namedtuple_instance as is_namedtuple_instance
from .nodes import is_structseq as is_structseq
from .nodes import is_structseq_class as is_structseq_class
from .nodes import is_structseq_instance as is_structseq_instance
from .nodes import register_pytree_node as register_pytree_node
from .nodes import tree_is_leaf as tree_is_leaf
from .treespec import LeafSpec as LeafSpec
from .treespec import PyTreeSpec as PyTreeSpec
from .treespec import TreeSpec as TreeSpec
