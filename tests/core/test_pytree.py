import collections
import os
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass

import pytest
import torch
import torch.utils._pytree
from hypothesis import given
from hypothesis import strategies as st

import weft
import weft.utils._pytree

NT = collections.namedtuple("NT", "a b")
NU = collections.namedtuple("NU", "a b")
TREE = {
    "b": [1, (2, 3)],
    "a": NT(4, None),
    "o": OrderedDict(x=1),
    "dd": defaultdict(list, {1: 2}),
    "q": deque([1, 2], maxlen=3),
    "empty": [(), {}],
}


class Both:
    """A container of users."""

    def __init__(self, left, right, tag):
        self.left, self.right, self.tag = left, right, tag

    def __repr__(self):
        return f"Both({self.left}, {self.right}, {self.tag})"


for _module in (torch, weft):
    _module.utils._pytree.register_pytree_node(
        Both,
        lambda both: ([both.left, both.right], both.tag),
        lambda children, tag: Both(*children, tag),
        serialized_type_name="tests.Both",
    )


def outcome(expression, module):
    names = {
        "p": module.utils._pytree,
        "t": module,
        "tree": TREE,
        **{"NT": NT, "NU": NU, "Both": Both, "os": os},
        **{kind.__name__: kind for kind in (OrderedDict, defaultdict, deque)},
    }
    try:
        return repr(eval(expression, names))
    except Exception as error:
        return type(error), str(error).splitlines()[0]


@pytest.mark.parametrize(
    "expression",
    [
        "p.tree_flatten(tree)",
        "p.tree_unflatten(*p.tree_flatten(tree))",
        "p.tree_leaves(tree)",
        "list(p.tree_iter(tree))",
        "p.arg_tree_leaves(1, [2], a=3)",
        "[(s := p.tree_structure(tree)).num_leaves, s.num_nodes, s.num_children, s.type, s.context, s.is_leaf()]",
        "[(p.keystr(k), k, v) for k, v in p.tree_leaves_with_path(tree)]",
        "[p.key_get(tree, k) for k, v in p.tree_leaves_with_path(tree)]",
        "p.tree_flatten_with_path([1, {'a': 2}])",
        "p.tree_map_with_path(lambda k, x, y: (p.keystr(k), x, y), {'a': [1, 2]}, {'a': [3, (4,)]})",
        "p.tree_leaves_with_path(Both(1, 2, 3))",
        "p.tree_structure(3), p.tree_structure(()), p.tree_structure(None)",
        "p.LeafSpec(), isinstance(p.tree_structure(3), p.LeafSpec), isinstance(p.tree_structure([]), p.LeafSpec)",
        "p.TreeSpec(list, None, [p.LeafSpec()]) == p.tree_structure([1])",
        "p.tree_structure([1, [2]]) == p.tree_structure([3, [4]])",
        "p.tree_structure({'a': 1, 'b': 2}) == p.tree_structure({'b': 1, 'a': 2})",
        "p.tree_structure([1]) == 3",
        "len({p.tree_structure(tree), p.tree_structure(p.tree_map(str, tree))})",
        "p.tree_structure([1, 2]).child(0), p.tree_structure([1, 2]).children()",
        "p.tree_flatten([1, (2, 3)], is_leaf=lambda x: isinstance(x, tuple))",
        "p.tree_map(lambda x: x, [1, None], is_leaf=lambda x: x is None)",
        "p.tree_map(lambda a, b: a + b, [1, 2], [1])",
        "p.tree_map(lambda a, b: a + b, [1, 2], (1, 2))",
        "p.tree_map(lambda a, b: a + b, {'a': 1}, {'b': 2})",
        "p.tree_map(lambda a, b: a + b, {'a': 1, 'b': 2}, {'b': 2, 'a': 1})",
        "p.tree_map(lambda a, b: (a, b), [1, 2], [[1], {}])",
        "p.tree_map(lambda a, b: (a, b), 1, [1, 2])",
        "p.tree_map(lambda x: -x, Both(1, [2], 'tag'))",
        "p.tree_map(str, Both(1, 2, 'x'), Both(1, 2, 'y'))",
        "p.tree_map(1, [2])",
        "p.tree_unflatten([1, 2, 3], p.tree_structure([1, 2]))",
        "p.tree_unflatten([1], p.tree_structure([1, 2]))",
        "p.tree_unflatten(iter([1, 2]), p.tree_structure([1, 1]))",
        "p.tree_unflatten([1, 2, 3], 5)",
        "p.tree_map_only(int, str, [1, 2.0, (3,)])",
        "p.tree_map_only((int, float), str, [1, 2.0, (3, 'a')])",
        "p.tree_map_only(int | float, str, [1, 2.0, (3, 'a')])",
        "p.tree_map_only(lambda x: x == 1, str, [1, 2.0, (3, 'a')])",
        "p.tree_map_only(5, str, [2])",
        "p.tree_map_only_(list, list.clear, [1, [2]], is_leaf=lambda x: x == [2])",
        "(seen := [], p.tree_map_(lambda a, b: seen.append((a, b)), [1, 2], [3, 4]))",
        "[p.tree_all(bool, [1, 0]), p.tree_any(bool, [1, 0])]",
        "[p.tree_all_only(int, bool, [1, 0.0]), p.tree_any_only(int, bool, [0, 1.0])]",
        "[p.tree_is_leaf(x) for x in ([1], 1, None, NT(1, 2), slice(1), 'ab', t.zeros(2), t.Size([1]), {1})]",
        "p.tree_is_leaf([1], is_leaf=lambda x: True)",
        "p.tree_structure(deque([1], 3)).flatten_up_to(deque([1], 2))",
        "p.tree_structure(NT(1, 2)).flatten_up_to(NU(1, 2))",
        "p.tree_structure(NT(1, 2)).flatten_up_to((1, 2))[0]",
        "p.tree_structure({'a': 1}).flatten_up_to(OrderedDict(a=2))",
        "p.tree_structure(OrderedDict(a=2, b=1)).flatten_up_to(OrderedDict(b=2, a=3))",
        "p.tree_structure(defaultdict(list, a=2)).flatten_up_to({'a': 1})",
        "p.tree_structure({'a': 1}).flatten_up_to({'a': 1, 'b': 2})",
        "p.tree_structure({'a': 1}).flatten_up_to([1])",
        "p.tree_structure([[1, 2], 3]).flatten_up_to([7, 8])",
        "p.tree_structure([[1, 2], 3]).flatten_up_to([[7, {}], 8])",
        "p.tree_structure([[1, 2], 3]).unflatten([7, 8, 9])",
        "p.treespec_pprint(p.tree_structure([1, (2,)]))",
        "p.treespec_dumps(p.tree_structure([1, (2, {'a': 2}, OrderedDict(a=3))]))",
        "p.treespec_dumps(p.tree_structure([defaultdict(list, a=1), deque([1], 4), t.Size([1])]))",
        "p.treespec_loads(p.treespec_dumps(p.tree_structure([defaultdict(list, a=1), deque([1], 4)])))",
        "p.treespec_loads(p.treespec_dumps(p.tree_structure(Both(1, 2, 'x'))))",
        "p.treespec_dumps(5)",
        "p.treespec_dumps(p.tree_structure([1]), 3)",
        "p.treespec_loads('[7, {}]')",
        "p.register_pytree_node(list, None, None)",
        "p.register_pytree_node(set, None, None, to_dumpable_context=str)",
        "p._broadcast_to_and_flatten(1, p.tree_structure([1, [2, 3]]))",
        "p._broadcast_to_and_flatten([1, 2], p.tree_structure([1, [2, 3]]))",
        "p._broadcast_to_and_flatten([1, 2, 3], p.tree_structure([1, [2, 3]]))",
        "p._broadcast_to_and_flatten((1, 2), p.tree_structure([1, [2, 3]]))",
        "p._broadcast_to_and_flatten([1, [2]], p.tree_structure([1, 2]))",
        "[p.is_namedtuple(x) for x in (NT(1, 2), NT, (1, 2), tuple, 3)]",
        "[p.is_namedtuple_instance(NT), p.is_namedtuple_class(NT), p.is_namedtuple_class(3)]",
        "[p.is_structseq(x) for x in (os.stat('/'), os.stat_result, t.ones(2, 2).max(0), (1, 2), NT)]",
        "[p.is_structseq_instance(os.stat('/')), p.is_structseq_class(os.stat_result)]",
        "p.tree_flatten(t.ones(2, 2).max(0))",
        "p.tree_map(lambda x: x + 1, t.ones(2, 2).max(0))",
        "p.tree_leaves_with_path(t.ones(2, 2).max(0))",
        "p.tree_map(lambda x: x + 1, t.Size([1, 2]))",
        "p.tree_leaves(os.stat('/'))[0] == os.stat('/')",
    ],
)
def test_trees_do_what_pytorch_does(expression):
    assert outcome(expression, weft) == outcome(expression, torch)


def test_named_tuples_have_no_json():
    for module in (torch, weft):
        tree = module.utils._pytree.tree_structure(NT(1, 2))
        with pytest.raises(NotImplementedError, match="namedtuple class"):
            module.utils._pytree.treespec_dumps(tree)


trees = st.recursive(
    st.one_of(st.integers(), st.none(), st.text(max_size=2)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(OrderedDict),
        st.tuples(inner, inner).map(lambda pair: NT(*pair)),
        st.lists(inner, max_size=3).map(deque),
    ),
    max_leaves=12,
)


@given(trees, trees)
def test_any_tree(tree, other):
    def all_of(pytree):
        leaves, spec = pytree.tree_flatten(tree)
        other_spec = pytree.tree_structure(other)
        try:
            up_to = spec.flatten_up_to(other)
        except ValueError as error:
            up_to = str(error) if "keys" not in str(error) else "keys"  # sets of keys print in any order
        spread = pytree._broadcast_to_and_flatten(tree, other_spec)
        equal = spec == other_spec
        return leaves, str(spec), spec.unflatten(leaves), spec.num_nodes, up_to, spread, equal

    got = all_of(weft.utils._pytree)
    assert got == all_of(torch.utils._pytree)
    assert got[2] == tree


def test_public_names():
    for name in torch.utils._pytree.__all__:
        assert hasattr(weft.utils._pytree, name), name


@pytest.mark.parametrize("pytree", [weft.utils._pytree, torch.utils._pytree])
def test_containers_functions_serve_classes_that_extend_them(pytree):
    """As the outputs of models register: a mapping of their own, flattened as a dictionary is."""

    class Output(OrderedDict):
        pass

    pytree.register_pytree_node(
        Output,
        pytree._dict_flatten,
        lambda values, context: Output(pytree._dict_unflatten(values, context)),
        flatten_with_keys_fn=pytree._dict_flatten_with_keys,
    )
    output = Output(a=1, b=[2, 3])
    assert pytree.tree_leaves(output) == [1, 2, 3]
    mapped = pytree.tree_map(lambda x: x + 1, output)
    assert type(mapped) is Output and mapped == {"a": 2, "b": [3, 4]}
    paths = [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(output)]
    assert paths == ["['a']", "['b'][0]", "['b'][1]"]
    pytree._deregister_pytree_node(Output)
    assert pytree.tree_leaves(output) == [output]


@pytest.mark.parametrize("pytree", [weft.utils._pytree, torch.utils._pytree])
def test_dataclasses_and_constants(pytree):

    @dataclass
    class Pair:
        a: int
        b: object
        c: int = 3

    @dataclass(frozen=True)
    class Constant:
        value: int

    pytree.register_dataclass(Pair, field_names=["a", "b"], drop_field_names=["c"])
    pytree.register_constant(Constant)
    assert pytree.is_constant_class(Constant) and not pytree.is_constant_class(Pair)
    leaves, structure = pytree.tree_flatten([Pair(1, [2, 3], 4), Constant(5), Pair(6, None)])
    assert leaves == [1, 2, 3, 6]
    assert pytree.tree_unflatten(leaves, structure) == [Pair(1, [2, 3]), Constant(5), Pair(6, None)]
    paths = [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(Pair(1, [2]))]
    assert paths == [".a", ".b[0]"]
    with pytest.raises(ValueError, match="field_names"):
        pytree.register_dataclass(int)
    with pytest.raises(TypeError, match="__eq__"):
        pytree.register_constant(type("Plain", (), {}))
    with pytest.raises(ValueError, match="b"):
        pytree.register_dataclass(
            dataclass(type("Other", (), {"__annotations__": {"a": int, "b": int}})), field_names=["a"]
        )
