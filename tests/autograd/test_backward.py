"""`backward`, `grad` and what a tensor says of them, program by program in both libraries."""

import gc

import pytest
from alike import same

import weft

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def leaf(lib, *sizes):
    """1, 2, 3, ... in this shape."""
    count = lib.Size(sizes).numel()
    return lib.tensor([1.0 + k for k in range(count)]).reshape(sizes).requires_grad_()


@program
def gradient_of_a_vector(lib):
    x = leaf(lib, 3)
    y = x * x
    y.backward(gradient=lib.tensor([1.0, 2.0, 3.0]))
    return x.grad


@program
def a_vector_needs_a_gradient(lib):
    x = leaf(lib, 3)
    (x * x).backward()


@program
def cotangents_that_two_values_share(lib):
    """The values are results, so their cotangents arrive in more than one part."""
    x, y = leaf(lib, 3), leaf(lib, 3)
    a, b = x * 1, y * 1
    weights = lib.tensor([1.0, 2.0, 3.0])
    (a * 3 + (a + b) * weights).sum().backward()
    return x.grad, y.grad


@program
def gradients_given_twice(lib):
    x = leaf(lib, 3)
    y, gradient = x * 1, lib.tensor([1.0, 2.0, 3.0])
    lib.autograd.backward([y * 3, y + 0], [gradient, gradient])
    return x.grad, gradient


@program
def integers_have_no_history(lib):
    x = leaf(lib, 3)
    return [y.requires_grad for y in (x.long(), x.to(lib.int32), x.bool(), x.argmax(), x.sort()[1])]


@program
def retained_gradients_have_memory_of_their_own(lib):
    y, gradient = leaf(lib, 3) * 2, lib.ones(3)
    y.retain_grad()
    y.backward(gradient)
    gradient.zero_()
    return y.grad


@program
def gradient_of_another_shape(lib):
    x = leaf(lib, 3)
    (x * x).backward(lib.ones(2))


@program
def gradient_that_is_a_number(lib):
    x = leaf(lib, 3)
    (x * x).backward(3.0)


@program
def gradient_that_is_a_list(lib):
    x = leaf(lib, 3)
    (x * x).backward([1.0, 2.0, 3.0])


@program
def gradient_of_another_dtype(lib):
    x = leaf(lib, 3)
    (x * x).backward(lib.ones(3, dtype=lib.float64))
    return x.grad


@program
def gradient_of_integers(lib):
    x = leaf(lib, 3)
    (x * x).backward(lib.ones(3, dtype=lib.int64))
    return x.grad


@program
def complex_gradient_of_a_real_tensor(lib):
    x = leaf(lib, 3)
    (x * x).backward(lib.ones(3, dtype=lib.complex64))
    return x.grad


@program
def backward_twice(lib):
    x = leaf(lib, 3)
    y = (x * x).sum()
    y.backward()
    y.backward()


@program
def backward_twice_where_nothing_was_saved(lib):
    x = leaf(lib, 3)
    y = x.sum()
    y.backward()
    y.backward()
    return x.grad


@program
def backward_twice_with_retain_graph(lib):
    x = leaf(lib, 3)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@program
def backward_without_requires_grad(lib):
    lib.ones(3).sum().backward()


@program
def requires_grad_method_of_integers(lib):
    return lib.ones(3, dtype=lib.int64).requires_grad_()


@program
def requires_grad_of_new_integers(lib):
    return lib.ones(3, dtype=lib.int64, requires_grad=True)


@program
def requires_grad_of_given_integers(lib):
    return lib.tensor([1, 2], requires_grad=True)


@program
def requires_grad_attribute_of_bools(lib):
    x = lib.ones(3) > 0
    x.requires_grad = True


@program
def requires_grad_that_is_no_bool(lib):
    x = lib.ones(3)
    x.requires_grad = 1
    return x


@program
def a_result_keeps_requires_grad(lib):
    x = leaf(lib, 3) * 2
    x.requires_grad = False


@program
def a_leaf_may_lose_requires_grad(lib):
    x = leaf(lib, 3)
    x.requires_grad_(False)
    return x


@program
def backward_to_some_inputs(lib):
    x, y = (leaf(lib, 3), leaf(lib, 3))
    (x * y).sum().backward(inputs=[x])
    return (x.grad, y.grad)


@program
def backward_to_one_input(lib):
    x, y = (leaf(lib, 3), leaf(lib, 3))
    (x * y).sum().backward(inputs=y)
    return (x.grad, y.grad)


@program
def backward_to_a_result(lib):
    x, y = (leaf(lib, 3), leaf(lib, 3))
    z = x * y
    (z * z).sum().backward(inputs=[z])
    return (x.grad, z.grad)


@program
def backward_to_no_inputs(lib):
    x = leaf(lib, 3)
    x.sum().backward(inputs=[])


@program
def backward_to_an_unused_input(lib):
    x = leaf(lib, 3)
    y = leaf(lib, 3)
    x.sum().backward(inputs=[y])
    return y.grad


@program
def grad_of_an_unused_input(lib):
    x = leaf(lib, 3)
    y = leaf(lib, 3)
    return lib.autograd.grad(x.sum(), [x, y])


@program
def grad_with_allow_unused(lib):
    x = leaf(lib, 3)
    y = leaf(lib, 3)
    return lib.autograd.grad(x.sum(), [x, y], allow_unused=True)


@program
def grad_with_materialize_grads(lib):
    x = leaf(lib, 3)
    y = leaf(lib, 3)
    return lib.autograd.grad(x.sum(), [x, y], materialize_grads=True)


@program
def materialized_grads_have_derivatives(lib):
    x, y = lib.tensor(0.5, requires_grad=True), lib.tensor(1.0, requires_grad=True)
    first = lib.autograd.grad(x * y, x, create_graph=True)
    second = lib.autograd.grad(first, x, create_graph=True, materialize_grads=True)
    unconnected = lib.autograd.grad(first, x, retain_graph=True, materialize_grads=True)
    batched = lib.autograd.grad(
        x * y * lib.ones(2), [x, lib.ones(1, requires_grad=True)], lib.eye(2),
        is_grads_batched=True, materialize_grads=True, create_graph=True,
    )  # fmt: skip
    flags = [each.requires_grad for each in (*second, *unconnected, *batched)]
    return flags, lib.autograd.grad(second, x, materialize_grads=True)


@program
def retain_grad_follows_the_views_of_a_written_base(lib):
    base = lib.tensor([1.0], requires_grad=True).clone()
    views = [base[:], base[:]]
    for each in (base, *views):
        each.retain_grad()
    views[0].mul_(2)
    (views[0] + 3 * views[1]).sum().backward()
    return [each.grad for each in (base, *views)], [each.retains_grad for each in views]


@program
def materialize_grads_without_allow_unused(lib):
    x = leaf(lib, 3)
    y = leaf(lib, 3)
    return lib.autograd.grad(x.sum(), [x, y], materialize_grads=True, allow_unused=False)


@program
def grad_of_an_input_without_requires_grad(lib):
    x = leaf(lib, 3)
    return lib.autograd.grad(x.sum(), [x, lib.ones(3)], materialize_grads=True)


@program
def grad_of_no_inputs(lib):
    x = leaf(lib, 3)
    return lib.autograd.grad(x.sum(), [])


@program
def grad_of_no_outputs(lib):
    x = leaf(lib, 3)
    return lib.autograd.grad([], [x])


@program
def backward_of_nothing(lib):
    return lib.autograd.backward([])


@program
def grad_of_a_vector_without_grad_outputs(lib):
    x = leaf(lib, 3)
    return lib.autograd.grad(x * 2, [x], grad_outputs=None)


@program
def batched_gradients(lib):
    x = leaf(lib, 3)
    y = x * x
    return lib.autograd.grad(y, x, lib.eye(3), is_grads_batched=True)


@program
def batched_gradients_of_several_outputs(lib):
    x = leaf(lib, 3)
    y = leaf(lib, 3)
    z = x * y
    return lib.autograd.grad([z, z.sum()], [x, y], [lib.eye(3), lib.ones(3)], is_grads_batched=True)


@program
def batched_gradients_of_another_shape(lib):
    x = leaf(lib, 3)
    y = x * x
    return lib.autograd.grad(y, x, lib.ones(3), is_grads_batched=True)


@program
def batched_gradients_recorded(lib):
    x = leaf(lib, 3)
    y = x * x * x
    (g,) = lib.autograd.grad(y, x, lib.eye(3), is_grads_batched=True, create_graph=True)
    return lib.autograd.grad(g.sum(), x)


@program
def batched_gradients_of_an_unused_input(lib):
    x = leaf(lib, 3)
    y = x * x
    z = leaf(lib, 2)
    return (lib.autograd.grad(y, [x, z], lib.eye(3), is_grads_batched=True, allow_unused=True),)


@program
def batched_gradients_materialized(lib):
    x = leaf(lib, 3)
    y = x * x
    z = leaf(lib, 2)
    return (lib.autograd.grad(y, [x, z], lib.eye(3), is_grads_batched=True, materialize_grads=True),)


@program
def grad_of_one_input_twice(lib):
    x = leaf(lib, 3)
    return lib.autograd.grad(x.sum(), [x, x])


@program
def grad_of_a_result_with_respect_to_itself(lib):
    x = leaf(lib, 3).sum()
    return lib.autograd.grad(x, x)


@program
def grad_of_a_leaf_with_respect_to_itself(lib):
    x = lib.tensor(3.0, requires_grad=True)
    return lib.autograd.grad(x, x)


@program
def backward_of_a_leaf(lib):
    x = lib.tensor(3.0, requires_grad=True)
    x.backward()
    x.backward()
    return x.grad


@program
def grad_of_a_result_on_the_way(lib):
    x = leaf(lib, 3)
    y = x * x
    z = (y * y).sum()
    return lib.autograd.grad(z, [y, x])


@program
def gradient_edges_as_inputs(lib):
    x = leaf(lib, 3)
    y = x * x
    e = lib.autograd.graph.get_gradient_edge(y)
    z = (y * y).sum()
    ex = lib.autograd.graph.get_gradient_edge(x)
    return lib.autograd.grad(z, [e, ex])


@program
def a_gradient_edge_as_output(lib):
    x = leaf(lib, 3)
    y = x * x
    e = lib.autograd.graph.get_gradient_edge(y)
    return lib.autograd.grad(e, x, grad_outputs=lib.ones(3))


@program
def a_gradient_edge_of_one_of_several_results(lib):
    x = leaf(lib, 3)
    y = x.unbind()
    e = lib.autograd.graph.get_gradient_edge(y[1])
    lib.autograd.backward(e, lib.tensor(2.0))
    return (x.grad, e.output_nr)


@program
def a_gradient_edge_of_a_scalar(lib):
    x = leaf(lib, 3)
    y = (x * x).sum()
    e = lib.autograd.graph.get_gradient_edge(y)
    return lib.autograd.grad(e, x)


@program
def a_gradient_edge_needs_requires_grad(lib):
    return lib.autograd.graph.get_gradient_edge(lib.ones(2))


@program
def a_gradient_edge_as_input_of_backward(lib):
    x = leaf(lib, 3)
    e = lib.autograd.graph.get_gradient_edge(x)
    (x * x).sum().backward(inputs=[e])
    return x.grad


@program
def old_name_of_grad_tensors(lib):
    x = leaf(lib, 3)
    lib.autograd.backward([x * x], grad_variables=[lib.ones(3)])
    return x.grad


@program
def both_names_of_grad_tensors(lib):
    x = leaf(lib, 3)
    lib.autograd.backward([x * x], [lib.ones(3)], grad_variables=[lib.ones(3)])
    return x.grad


@program
def one_tensor_and_one_gradient(lib):
    x = leaf(lib, 3)
    lib.autograd.backward(x * x, lib.ones(3))
    return x.grad


@program
def a_complex_scalar_needs_a_gradient(lib):
    x = lib.tensor(1 + 2j, requires_grad=True)
    (x * x).backward()


@program
def complex_gradient(lib):
    x = lib.tensor(1 + 2j, requires_grad=True)
    (x * x).backward(lib.tensor(1.0 + 0j))
    return x.grad


@program
def real_gradient_of_a_complex_tensor(lib):
    x = lib.tensor(1 + 2j, requires_grad=True)
    (x * x).backward(lib.tensor(1.0))
    return x.grad


@program
def create_graph(lib):
    x = leaf(lib, 3)
    (x**3).sum().backward(create_graph=True)
    g = x.grad
    return (g, g.requires_grad)


@program
def one_element_counts_as_a_scalar(lib):
    x = leaf(lib, 1)
    (x * 2).backward()
    return x.grad


@program
def grad_set_to_a_number(lib):
    x = leaf(lib, 3)
    x.grad = 3


@program
def grad_set_to_another_shape(lib):
    x = leaf(lib, 3)
    x.grad = lib.ones(2)


@program
def grad_set_to_the_tensor_itself(lib):
    x = leaf(lib, 3)
    x.grad = x


@program
def grad_set_to_another_device(lib):
    x = leaf(lib, 3)
    x.grad = lib.ones(3, device="meta")


@program
def grad_of_a_tensor_that_requires_none(lib):
    x = lib.ones(3)
    x.grad = lib.ones(3)
    return x.grad


@program
def grad_is_added_to_what_was_set(lib):
    x = leaf(lib, 3)
    x.grad = lib.ones(3)
    x.sum().backward()
    g = x.grad
    x.grad = None
    return (g, x.grad)


@program
def grad_deleted(lib):
    x = leaf(lib, 3)
    x.grad = lib.ones(3)
    del x.grad
    return x.grad


@program
def grad_of_a_result(lib):
    x = leaf(lib, 3) * 2
    return x.grad


@program
def grad_has_the_strides_of_the_parameter(lib):
    x = lib.ones(3, 4).t().requires_grad_()
    (x * lib.ones(4, 3)).sum().backward()
    return x.grad.stride()


@program
def grad_of_a_parameter_with_gaps_is_contiguous(lib):
    x = lib.ones(3, 4)[:, ::2].requires_grad_()
    (x * lib.ones(3, 2).t().contiguous().t()).sum().backward()
    return (x.grad.stride(), x.stride())


@program
def grad_of_an_expanded_parameter(lib):
    x = lib.ones(3, 1).expand(3, 4).requires_grad_()
    (x * x).sum().backward()
    return (x.grad.stride(), x.grad)


@program
def a_gradient_that_others_hold_is_copied(lib):
    x = leaf(lib, 3)
    g = lib.ones(3)
    x.clone().backward(g)
    return (x.grad is g, x.grad.data_ptr() == g.data_ptr())


@program
def grad_is_added_to_in_place(lib):
    x = leaf(lib, 3)
    x.sum().backward()
    g = x.grad
    x.sum().backward()
    return (g is x.grad, g)


@program
def grad_is_added_out_of_place_when_recorded(lib):
    x = leaf(lib, 3)
    x.sum().backward()
    g = x.grad
    (x * x).sum().backward(create_graph=True)
    return (g is x.grad, g, x.grad)


@program
def two_leaves_never_share_a_grad(lib):
    x, y = (leaf(lib, 3), leaf(lib, 3))
    (x + y).backward(lib.ones(3))
    return x.grad.data_ptr() == y.grad.data_ptr()


@program
def retain_grad_twice(lib):
    x = leaf(lib, 3)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    (y * y).sum().backward()
    return (y.grad, y.retains_grad, x.retains_grad)


@program
def retain_grad_without_requires_grad(lib):
    lib.ones(3).retain_grad()


@program
def retain_grad_of_a_leaf(lib):
    x = leaf(lib, 3)
    x.retain_grad()
    return x.retains_grad


@program
def retained_grads_add_up(lib):
    x = leaf(lib, 3)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward(retain_graph=True)
    (y * 3).sum().backward()
    return (y.grad, y.grad.requires_grad)


@program
def retain_grad_follows_a_write_in_place(lib):
    x = leaf(lib, 3)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    return (y.grad, x.grad)


@program
def retained_grad_after_a_hook(lib):
    x = leaf(lib, 3)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (y * y).sum().backward()
    return (y.grad, x.grad)


@program
def retained_grad_before_a_hook(lib):
    x = leaf(lib, 3)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    (y * y).sum().backward()
    return (y.grad, x.grad)


@program
def a_saved_result_was_overwritten(lib):
    x = leaf(lib, 3)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


@program
def a_saved_constant_was_overwritten(lib):
    x = leaf(lib, 3)
    a = lib.ones(3)
    z = x * a
    a.add_(1)
    z.sum().backward()


@program
def what_is_not_saved_may_be_overwritten(lib):
    x = leaf(lib, 3)
    a = lib.ones(3)
    z = x + a
    a.add_(1)
    z.sum().backward()
    return (x.grad, a._version)


@program
def overwritten_through_detach(lib):
    x = leaf(lib, 3)
    y = x * 2
    z = y * y
    y.detach().add_(1)
    z.sum().backward()


@program
def a_saved_leaf_was_overwritten(lib):
    x = leaf(lib, 3)
    z = x * x
    with lib.no_grad():
        x.add_(1)
    z.sum().backward()


@program
def write_into_part_of_a_leaf_that_is_a_view(lib):
    x = leaf(lib, 3)
    x[0] = 1


@program
def write_through_a_view_of_a_leaf_that_is_a_view(lib):
    x = leaf(lib, 3)
    x[:2].mul_(2)


@program
def detach_in_place(lib):
    x = leaf(lib, 3) * 2
    y = x.detach_()
    return (y is x, x.requires_grad, x.is_leaf)


@program
def data_shares_memory(lib):
    x = leaf(lib, 3)
    x * 2
    d = x.data
    return (
        d.requires_grad,
        d.data_ptr() == x.data_ptr(),
        d._version,
        d._is_view(),
        x.detach()._is_view(),
        x.detach()._base is None,
    )


@program
def data_replaced(lib):
    x = leaf(lib, 3)
    x.data = lib.zeros(2, 2)
    return (x, x.is_leaf)


@program
def data_replaced_by_another_dtype(lib):
    x = leaf(lib, 3)
    x.data = lib.zeros(2, 2, dtype=lib.float64)
    return x


@program
def data_replaced_by_a_number(lib):
    x = leaf(lib, 3)
    x.data = 3


@program
def data_replaced_by_integers(lib):
    x = leaf(lib, 3)
    x.data = lib.zeros(2, dtype=lib.int64)
    return x


@program
def saved_factors(lib):
    x = leaf(lib, 3)
    y = lib.ones(3, requires_grad=True)
    z = x * y
    f = z.grad_fn
    return (f._saved_self, f._saved_other)


@program
def saved_result(lib):
    x = leaf(lib, 3)
    z = x.exp()
    f = z.grad_fn
    return (f._saved_result, f._saved_result.grad_fn.name())


@program
def a_saved_leaf_is_the_leaf(lib):
    x = leaf(lib, 3)
    z = x.sin()
    f = z.grad_fn
    return (f._saved_self, f._saved_self is x)


@program
def saved_sizes(lib):
    x = leaf(lib, 3)
    z = (x * x).sum()
    f = z.grad_fn
    return f._saved_self_sym_sizes


@program
def saved_values_are_freed(lib):
    x = leaf(lib, 3)
    z = x * x
    z.sum().backward()
    return z.grad_fn._saved_self


@program
def saved_alpha(lib):
    x = leaf(lib, 3)
    z = x + x
    return z.grad_fn._saved_alpha


@program
def saved_dim(lib):
    x = leaf(lib, 2, 3)
    z = x.softmax(1)
    return (z.grad_fn._saved_dim, z.grad_fn._saved_result)


@program
def saved_matrix(lib):
    x = leaf(lib, 2, 3)
    z = x @ lib.ones(3, 2)
    return (z.grad_fn._saved_mat2, z.grad_fn._saved_self)


@program
def what_no_input_needs_is_not_saved(lib):
    x = leaf(lib, 3)
    z = x / lib.ones(3)
    return (z.grad_fn._saved_other, z.grad_fn._saved_self)


@program
def metadata_of_a_node(lib):
    x = leaf(lib, 3)
    y = x * 2
    y.grad_fn.metadata["a"] = 1
    return (y.grad_fn.metadata, y.grad_fn is y.grad_fn)


@program
def sequence_numbers(lib):
    x = leaf(lib, 3)
    y = x * 2
    z = y * 2
    return z.grad_fn._sequence_nr() - y.grad_fn._sequence_nr()


@pytest.mark.refuses(
    [
        "a_vector_needs_a_gradient",
        "gradient_of_another_shape",
        "gradient_that_is_a_number",
        "gradient_that_is_a_list",
        "complex_gradient_of_a_real_tensor",
        "backward_twice",
        "backward_without_requires_grad",
        "requires_grad_method_of_integers",
        "requires_grad_of_new_integers",
        "requires_grad_of_given_integers",
        "requires_grad_attribute_of_bools",
        "requires_grad_that_is_no_bool",
        "a_result_keeps_requires_grad",
        "backward_to_no_inputs",
        "grad_of_an_unused_input",
        "materialize_grads_without_allow_unused",
        "grad_of_an_input_without_requires_grad",
        "grad_of_no_inputs",
        "grad_of_no_outputs",
        "grad_of_a_vector_without_grad_outputs",
        "batched_gradients_of_another_shape",
        "a_gradient_edge_needs_requires_grad",
        "both_names_of_grad_tensors",
        "a_complex_scalar_needs_a_gradient",
        "real_gradient_of_a_complex_tensor",
        "grad_set_to_a_number",
        "grad_set_to_another_shape",
        "grad_set_to_the_tensor_itself",
        "grad_set_to_another_device",
        "retain_grad_without_requires_grad",
        "a_saved_result_was_overwritten",
        "a_saved_constant_was_overwritten",
        "overwritten_through_detach",
        "a_saved_leaf_was_overwritten",
        "write_into_part_of_a_leaf_that_is_a_view",
        "write_through_a_view_of_a_leaf_that_is_a_view",
        "data_replaced_by_a_number",
        "data_replaced_by_integers",
        "saved_values_are_freed",
    ]
)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_pytorch(program):
    same(program)


def test_names_of_nodes():
    x = leaf(weft, 3)
    y = x * 2
    assert repr(y.grad_fn).startswith("<MulBackward0 object at 0x")
    assert y.grad_fn.name() == "MulBackward0" and y.grad_fn is y.grad_fn
    (accumulate, _), (nothing, _) = y.grad_fn.next_functions
    assert nothing is None and accumulate.variable is x
    assert accumulate.name() == "torch::autograd::AccumulateGrad"
    assert repr(accumulate).startswith("<AccumulateGrad object at 0x")
    assert isinstance(y.grad_fn, weft.autograd.graph.Node)


def test_dir_of_a_node_lists_what_it_saved():
    y = leaf(weft, 3) * leaf(weft, 3)
    assert [name for name in dir(y.grad_fn) if name.startswith("_saved_")] == [
        "_saved_other",
        "_saved_other_sym_sizes",
        "_saved_self",
        "_saved_self_sym_sizes",
    ]


def test_messages_say_more():
    x = leaf(weft, 3)
    with pytest.raises(RuntimeError, match=r"this one has shape \[3\]"):
        (x * x).backward()
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="It was saved for MulBackward0"):
        z.sum().backward()


def test_writes_through_data_are_noticed():
    y = leaf(weft, 3) * 1
    z = y * y
    y.data.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


# ---- Long chains, and memory ------------------------------------------------------------------------------------------


def test_a_chain_of_100000_steps_runs_and_is_freed():
    x = weft.ones((), requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y * 1.0
    y.backward()
    assert x.grad.item() == 1
    del y


def test_a_long_chain_is_freed_without_backward():
    y = weft.ones((), requires_grad=True)
    for _ in range(100_000):
        y = y + 1
    del y


def train(step):
    """The number of objects that the garbage collector finds after some steps."""
    gc.collect()
    gc.disable()
    try:
        weights = [weft.ones(3, 3, requires_grad=True) for _ in range(2)]
        for _ in range(3):
            step(*weights)
            for each in weights:
                each.grad = None
        return gc.collect()
    finally:
        gc.enable()


def garbage(step):
    """The number of objects that every run of steps leaves to the garbage collector.

    A run in which kernels or calls are compiled leaves some, once, as the classes of ctypes are cycles.
    """
    return min(train(step) for _ in range(3))


def plain(a, b):
    (weft.ones(2, 3) @ a @ b).relu().softmax(1).log().sum().backward()


def in_place(a, b):
    y = a @ b
    y.mul_(2).add_(b)
    y[0] = 0
    y.sum().backward()


def through_views(a, b):
    y = (a @ b).clone()
    y.t()[1:].mul_(3)
    y.view(-1)[::2] += a.reshape(-1)[:5]
    y.sum().backward()


def twice_differentiated(a, b):
    (first,) = weft.autograd.grad((a.sin() * b).sum(), a, create_graph=True)
    first.square().sum().backward()


def recorded_into_grad(a, b):
    (a * b).sum().backward(create_graph=True)


def hooked(a, b):
    y = a * b
    y.retain_grad()
    y.register_hook(lambda grad: grad * 2)
    y.exp().sum().backward()


def with_saved_tensors_hooks(a, b):
    with weft.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
        (a * b).exp().sum().backward()


@pytest.mark.parametrize(
    "step",
    [
        plain,
        in_place,
        through_views,
        twice_differentiated,
        recorded_into_grad,
        hooked,
        with_saved_tensors_hooks,
    ],
    ids=lambda step: step.__name__,
)
def test_no_reference_cycles(step):
    assert garbage(step) == 0


def test_no_reference_cycles_through_functions():
    # A class is a cycle of its own, so one that outlives the steps is taken.
    class Square(weft.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * x
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    def step(a, b):
        Square.apply(a).sum().backward()

    assert garbage(step) == 0


def test_no_reference_cycles_in_forward_mode():
    def step(a, b):
        weft.func.jvp(weft.func.grad(lambda x: (x.sin() * b.detach()).sum()), (a.detach(),), (b.detach(),))

    assert garbage(step) == 0
