"""torch.library and torch.ops: what programs define, beside PyTorch."""

import copy
import itertools
import pickle
import warnings
from collections.abc import Sequence
from typing import List, Optional, Tuple, Union  # noqa: UP035

import pytest
import torch

import weft

_count = itertools.count()


def outcome(action):
    """What `action()` gives, as text that both libraries have: the repr of the result or the error's type and first line."""
    try:
        return repr(action()).replace("weft.", "torch.")
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def same(scenario):
    """Check that a scenario gives the same with both libraries: a function of (module, namespace) that returns outcomes."""
    namespace = f"scenario{next(_count)}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = scenario(torch, namespace), scenario(weft, namespace)
    assert ours == theirs


def sine(lib, namespace):
    """A custom operator with everything registered."""

    @lib.library.custom_op(f"{namespace}::sine", mutates_args=())
    def operator(x: lib.Tensor, k: int = 2) -> lib.Tensor:
        return lib.sin(x) * k

    @operator.register_fake
    def _(x, k=2):
        return lib.empty_like(x)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * lib.cos(x) * ctx.k, None

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1]

    operator.register_autograd(backward, setup_context=setup_context)
    return operator


def test_custom_op_computes_and_differentiates():
    def scenario(lib, namespace):
        operator = sine(lib, namespace)
        x = lib.ones(2, requires_grad=True)
        y = operator(x)
        y.sum().backward()
        overload = getattr(lib.ops, namespace).sine.default
        return [
            repr(y), repr(x.grad), repr(operator), repr(overload), str(overload), overload.name(), overload.__name__,
            str(overload._schema), [str(tag) for tag in overload.tags], repr(operator(lib.ones(2, device="meta"))),
            repr(overload(x, 3)), repr(getattr(lib.ops, namespace).sine(x, k=4)), overload.namespace,
            outcome(lambda: operator("x")), outcome(lambda: operator(x, 2, 3)), outcome(lambda: operator(x, q=3)),
            outcome(operator), operator._qualname, repr(operator._opoverload),
            lib.library.opcheck(operator, (x,)),
        ]  # fmt: skip

    same(scenario)


def test_custom_op_without_a_derivative_or_a_fake_kernel():
    def scenario(lib, namespace):
        @lib.library.custom_op(f"{namespace}::plain", mutates_args=())
        def plain(x: lib.Tensor) -> lib.Tensor:
            return x * 2

        y = plain(lib.ones(2, requires_grad=True))
        return [repr(y), outcome(y.sum().backward), outcome(lambda: plain(lib.ones(2, device="meta")))]

    same(scenario)


def test_derivatives_with_lists_and_named_arguments():
    def scenario(lib, namespace):
        @lib.library.custom_op(f"{namespace}::total", mutates_args=())
        def total(
            xs: list[lib.Tensor], y: lib.Tensor, *, scale: float = 1.0
        ) -> Tuple[lib.Tensor, List[lib.Tensor]]:  # noqa: UP006
            return sum(xs) * y * scale, [x * scale for x in xs]

        seen = []

        def setup_context(ctx, inputs, output, keyword_only_inputs):
            seen.append((len(inputs), keyword_only_inputs, type(output[1]).__name__))
            ctx.save_for_backward(*inputs[0], inputs[1])
            ctx.scale = keyword_only_inputs["scale"]

        def backward(ctx, grad, grads):
            *xs, y = ctx.saved_tensors
            seen.append((list(ctx.needs_input_grad[0]), ctx.needs_input_grad[1]))
            return [grad * y * ctx.scale + each * ctx.scale for each in grads], grad * sum(xs) * ctx.scale

        total.register_autograd(backward, setup_context=setup_context)
        xs = [lib.tensor([float(n)], requires_grad=n > 1) for n in (1, 2, 3)]
        y = lib.tensor([5.0], requires_grad=True)
        result, scaled = total(xs, y, scale=2.0)
        (result + scaled[1] + 3 * scaled[2]).sum().backward()
        return [repr(result), repr(scaled), [repr(x.grad) for x in xs], repr(y.grad), seen]

    same(scenario)


def test_gradients_of_lists():
    """PyTorch refuses None in place of a list; a program that it accepts gets the same here."""

    @weft.library.custom_op("gradients::dot", mutates_args=())
    def dot(xs: list[weft.Tensor], y: weft.Tensor) -> weft.Tensor:
        return sum(xs) * y

    needed = []

    def gradient(found):
        dot.register_autograd(
            lambda ctx, grad: found,
            setup_context=lambda ctx, inputs, output: needed.append(ctx.needs_input_grad),
        )
        x, y = (weft.ones(1, requires_grad=True) for _ in range(2))
        dot([weft.ones(1), x], y).sum().backward()
        return x.grad, y.grad

    seven = weft.full((1,), 7.0)
    assert gradient(([None, seven], None)) == (seven, None)
    assert gradient((None, seven)) == (None, seven)
    assert needed == [([False, True], True)] * 2
    for wrong, message in (
        (([seven], None), "a list of 2 gradients"),
        ((seven, None), "a list of 2 gradients"),
        (([None, seven],), "returned 1 gradients"),
        (([None, seven], None, None), "returned 3 gradients"),
    ):
        with pytest.raises(RuntimeError, match=message):
            gradient(wrong)


def test_operators_that_write():
    def scenario(lib, namespace):
        @lib.library.custom_op(f"{namespace}::scale", mutates_args={"x"})
        def scale(x: lib.Tensor, by: float) -> None:
            x.mul_(by)

        x = lib.ones(2)
        before = x._version
        found = [repr(scale(x, 3.0)), repr(x), x._version - before, str(scale._opoverload._schema)]
        return [*found, outcome(lambda: scale.register_autograd(lambda ctx, grad: None))]

    same(scenario)


def test_results_that_share_memory_are_refused():
    def scenario(lib, namespace):
        @lib.library.custom_op(f"{namespace}::same", mutates_args=())
        def alias(x: lib.Tensor) -> lib.Tensor:
            return x

        @lib.library.custom_op(f"{namespace}::view", mutates_args=())
        def view(x: lib.Tensor) -> lib.Tensor:
            return x.view(-1)

        @lib.library.custom_op(f"{namespace}::twice", mutates_args=())
        def twice(x: lib.Tensor) -> Tuple[lib.Tensor, lib.Tensor]:  # noqa: UP006
            y = x + 1
            return y, y

        found = [outcome(lambda each=each: each(lib.ones(2))) for each in (alias, view, twice)]
        return [each.partition("(")[0] for each in found]

    same(scenario)


def test_kernels_by_device():
    def scenario(lib, namespace):
        def fn(x: lib.Tensor) -> lib.Tensor:
            return x.cos()

        def make(n: int, device: lib.device) -> lib.Tensor:
            return lib.ones(n, device=device)

        def without(n: int) -> lib.Tensor:
            return lib.ones(n)

        custom_op = lib.library.custom_op
        cpu = custom_op(f"{namespace}::cpu", fn, mutates_args=(), device_types="cpu")
        cuda = custom_op(f"{namespace}::cuda", fn, mutates_args=(), device_types="cuda")
        made = custom_op(f"{namespace}::made", make, mutates_args=(), device_types="cpu")
        everywhere = custom_op(f"{namespace}::everywhere", without, mutates_args=())
        found = [
            outcome(lambda: cpu(lib.ones(2))),
            outcome(lambda: cuda(lib.ones(2))).partition("backend")[0],
            outcome(lambda: made(3, lib.device("cpu"))),
            outcome(lambda: made(3, lib.device("meta"))),
            outcome(lambda: everywhere(3)),
            outcome(lambda: custom_op(f"{namespace}::none", without, mutates_args=(), device_types="cpu")),
        ]
        cpu.register_kernel("cpu")(lambda x: x * 0)
        found.append(repr(cpu(lib.ones(2))))
        with cpu.set_kernel_enabled("cpu", False):
            found.append(repr(cpu(lib.ones(2))))
        return [*found, repr(cpu(lib.ones(2)))]

    same(scenario)


# fmt: off
def annotated(lib):
    """Functions with all kinds of annotations, and which of their arguments they write to."""
    tensor, dtype, cpu = lib.Tensor, lib.dtype, lib.device("cpu")

    def many(
        x: tensor, y: Optional[tensor], z: List[tensor], w: Sequence[int], v: Union[int, float, bool] = 1, s: str = "a",  # noqa: UP006, UP007, UP045
        *, fl: float = 1e-5, b: bool = False, o: Optional[int] = None, c: Optional[List[int]] = None,  # noqa: UP006, UP045
    ) -> Tuple[tensor, List[tensor]]:  # noqa: UP006
        ...

    def coded(x: "tensor", d: dtype = lib.float32, v: lib.device = cpu, dd: Optional[dtype] = None) -> "tensor":  # noqa: UP045
        ...

    def new(x: list[tensor], y: int | None, z: list[float], t: tensor | None = None) -> tuple[tensor, int, float]: ...
    def bare(x, y): ...
    def silent(x: tensor): ...
    def star(x: tensor, *a: int) -> int: ...
    def mapping(x: dict) -> int: ...
    def pair(x: tuple[int, int]) -> int: ...
    def tupled(x: Sequence[int] = (1, 2)) -> int: ...
    def result(x: tensor) -> dict: ...
    def nothing(x: tensor) -> None: ...

    return [
        *((many, each) for each in ((), {"x", "z"}, "unknown", "foo", {"foo"}, {"fl"})),
        *((each, ()) for each in (coded, new, bare, silent, star, mapping, pair, tupled, result, nothing)),
    ]
# fmt: on


@pytest.mark.parametrize("place", range(len(annotated(weft))))
def test_infer_schema(place):
    def scenario(lib, namespace):
        function, mutates_args = annotated(lib)[place]
        found = outcome(lambda: lib.library.infer_schema(function, mutates_args=mutates_args, op_name="a::b"))
        return (
            found.partition("valid types")[0]
            .partition("mutates_args should")[0]
            .partition(" Got func")[0]
            .partition(" If you are")[0]
        )

    same(scenario)


def test_library_defines_and_implements():
    def scenario(lib, namespace):
        library = lib.library.Library(namespace, "DEF")
        found = [repr(library), library.define("foo(Tensor x, int k=2) -> Tensor")]
        found.append(outcome(lambda: library.define("foo(Tensor x) -> Tensor")).partition("Each")[0][:20])
        library.define("pair.a(Tensor x) -> Tensor")
        library.define("pair.b(Tensor x, int k) -> Tensor")
        ops, x = getattr(lib.ops, namespace), lib.ones(2, requires_grad=True)
        found.append(outcome(lambda: ops.foo(x)).partition("This could")[0])
        found.append(outcome(lambda: ops.foo(lib.ones(2, device="meta"))).partition("registered")[0])
        library.impl("foo", lambda x, k=2: x * k, "CPU")
        found += [
            repr(ops.foo(x)),
            repr(ops.foo(x, k=3)),
            outcome(lambda: library.impl("foo", print, "CPUX")),
        ]
        lib.library.register_fake(f"{namespace}::foo", lambda x, k=2: lib.empty_like(x))
        found.append(repr(ops.foo(lib.ones(2, device="meta"))))
        library.impl("pair.a", lambda x: x + 1, "CompositeExplicitAutograd")
        library.impl("pair.b", lambda x, k: x + k, "CompositeImplicitAutograd")
        found += [
            repr(ops.pair(x)),
            repr(ops.pair(x, 5)),
            ops.pair.overloads(),
            repr(ops.pair),
            str(ops.pair),
        ]
        found += [
            outcome(lambda: ops.pair(x, 1, 3)),
            outcome(lambda: ops.nope),
            outcome(lambda: ops.pair.nope),
        ]
        found += [outcome(lambda: lib.library.Library(namespace, "DEF")).partition("If you")[0][:60]]
        found += [
            outcome(lambda: lib.library.Library(namespace, "XX")),
            outcome(lambda: lib.library.Library("prim", "DEF")),
        ]
        found += [outcome(lambda: lib.library.Library(namespace, "IMPL").define("z() -> ()"))[:60]]
        found += [ops.foo.default.has_kernel_for_dispatch_key(lib._C.DispatchKey.CPU)]
        found += [ops.foo.default.has_kernel_for_dispatch_key("CUDA")]
        library._destroy()
        return [*found, outcome(lambda: ops.foo)]

    same(scenario)


def test_an_operator_defined_again_replaces_the_first():
    def scenario(lib, namespace):
        def define(by):
            @lib.library.custom_op(f"{namespace}::scaled", mutates_args=())
            def scaled(x: lib.Tensor) -> lib.Tensor:
                return x * by

            return scaled

        define(2.0)
        again = define(3.0)
        return [repr(again(lib.ones(1))), repr(getattr(lib.ops, namespace).scaled(lib.ones(1)))]

    same(scenario)


@pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])
def test_operators_go_with_the_last_reference_to_their_library(lib):
    for _ in range(2):
        library = lib.library.Library("tour_short", "DEF")
        library.define("same(Tensor x) -> Tensor")

        @lib.library.impl(library, "same", "CPU")
        def same(x):
            return x.clone()

        assert lib.ops.tour_short.same(lib.ones(1)).tolist() == [1]
        del library
        with pytest.raises(AttributeError):
            lib.ops.tour_short.same(lib.ones(1))


def test_kernels_of_other_libraries_stay_when_one_is_destroyed():
    def scenario(lib, namespace):
        first = lib.library.Library(namespace, "DEF")
        first.define("op(Tensor x) -> Tensor")
        first.impl("op", lambda x: x + 1, "CPU")
        second = lib.library.Library(namespace, "IMPL")
        second.impl("op", lambda x: x + 2, "CPU")
        op, x = getattr(lib.ops, namespace).op, lib.zeros(1)
        before = repr(op(x))
        second._destroy()
        return [before, repr(op(x))]

    same(scenario)


def test_kernels_may_come_before_their_operator_and_only_once():
    def scenario(lib, namespace):
        early = lib.library.Library(namespace, "IMPL")
        early.impl("later", lambda x: x + 5, "CPU")
        library = lib.library.Library(namespace, "DEF")
        library.define("later(Tensor x) -> Tensor")
        found = [repr(getattr(lib.ops, namespace).later(lib.zeros(1)))]
        library.impl("later", lambda x: x + 6, "CPU")
        found.append(outcome(lambda: library.impl("later", print, "CPU", allow_override=False))[:60])
        return [*found, outcome(lambda: library.define("other::op(Tensor x) -> Tensor"))[:60]]

    same(scenario)


def test_kernels_get_what_differs_from_the_defaults():
    def scenario(lib, namespace):
        library = lib.library.Library(namespace, "DEF")
        library.define("op(Tensor x, Scalar a=1, bool b=False) -> Tensor")
        seen = []

        def kernel(x, *args):
            seen.append(args)
            return x.clone()

        library.impl("op", kernel, "CPU")
        op, x = getattr(lib.ops, namespace).op, lib.zeros(1)
        for args in ((), (1,), (2,), (1, True), (1, False)):
            op(x, *args)
        return seen

    same(scenario)


def test_library_kernels_for_autograd():
    def scenario(lib, namespace):
        library = lib.library.Library(namespace, "FRAGMENT")
        library.define("ag(Tensor x) -> Tensor")
        ops = getattr(lib.ops, namespace)
        seen = []

        class Step(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                seen.append(lib.is_grad_enabled())
                with lib._C._AutoDispatchBelowAutograd():
                    return ops.ag(x)

            @staticmethod
            def backward(ctx, grad):
                return grad * 100

        library.impl("ag", lambda x: x * 2, "CPU")
        library.impl("ag", Step.apply, "Autograd")
        x = lib.ones(2, requires_grad=True)
        y = ops.ag(x)
        y.sum().backward()
        with lib.inference_mode():
            ops.ag(lib.ones(2))
        return [repr(y), repr(x.grad), repr(ops.ag(lib.ones(2))), seen]

    same(scenario)


def test_functions_of_torch_library():
    def scenario(lib, namespace):
        name = f"{namespace}::q"
        library = lib.library
        found = [library.define(name, "(Tensor x) -> Tensor")]
        op = getattr(lib.ops, namespace).q
        found.append(library.impl(name, "cpu")(lambda x: x.detach() + 5))
        x = lib.ones(2, requires_grad=True)
        found += [repr(op(x.detach())), outcome(lambda: library.impl(name, "floob", print))[:60]]
        library.impl(name, ("cuda", "meta"), lambda x: x + 6)
        found.append(repr(op(x.detach().to("meta"))))
        library.register_autograd(name, lambda ctx, grad: grad * 7)
        op(x).sum().backward()
        found.append(repr(x.grad))
        library.register_autocast(name, "cpu", lib.bfloat16)
        with lib.autocast("cpu"):
            found.append(repr(op(lib.ones(2))))
        found += [
            repr(op(lib.ones(2))),
            outcome(lambda: library.register_autograd(f"{namespace}::nope", print)),
        ]
        found += [outcome(lambda: library.register_fake("nope", print)), outcome(library.fallthrough_kernel)]
        found += [outcome(lambda: library.define(name, "Tensor x -> Tensor")), library.get_ctx()]
        return found

    same(scenario)


def test_arguments_and_results_of_all_kinds():
    def scenario(lib, namespace):
        library = lib.library.Library(namespace, "FRAGMENT")
        ops = getattr(lib.ops, namespace)
        library.define("kw(Tensor x, *, int k, str? s=None) -> (Tensor, Tensor)")
        library.impl("kw", lambda x, *, k, s=None: (x * k, x), "CPU")
        library.define("lists(Tensor[] xs, int[2] k, float f=2) -> Tensor[]")
        library.impl("lists", lambda xs, k, f=2.0: tuple(x * k[1] * f for x in xs), "CPU")
        library.define("number(int x) -> int")
        library.impl("number", lambda x: x + 1, "CompositeExplicitAutograd")
        library.define("cpu_number(int x) -> int")
        library.impl("cpu_number", lambda x: x + 1, "CPU")
        library.define("keys(Tensor x) -> Tensor")
        library.impl("keys", lambda keys, x: x * 3, "CPU", with_keyset=True)
        one = lib.ones(1)
        actions = [
            lambda: ops.kw(one), lambda: ops.kw(one, k=2), lambda: ops.kw(one, 2), lambda: ops.kw(one, k=True),
            lambda: ops.lists([one, one], 3), lambda: ops.lists((one,), [1, 2], 4), lambda: ops.lists(one, 3),
            lambda: ops.lists([one, 1], 3), lambda: ops.lists([one, None], 3), lambda: ops.lists([one], [1.0, 2.0]), lambda: ops.number(3),
            lambda: ops.number(3.0), lambda: ops.number(lib.tensor(3)), lambda: ops.keys(one), lambda: ops.kw(one, k=1, x=one),
        ]  # fmt: skip
        return [*map(outcome, actions), outcome(lambda: ops.cpu_number(3)).partition("(e.g.")[0]]

    same(scenario)


def test_handlers_are_asked():
    def scenario(lib, namespace):
        operator = sine(lib, namespace)
        packet = getattr(lib.ops, namespace).sine
        seen = []

        class Mine(lib.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append(repr(func))
                return super().__torch_function__(func, types, args, kwargs)

        x = lib.ones(1).as_subclass(Mine)
        return [type(packet(x)).__name__, type(operator(x)).__name__, seen]

    same(scenario)


def test_registered_rules_for_classes_of_tensors():
    library = weft.library.Library("rules", "FRAGMENT")
    library.define("one(Tensor x) -> Tensor")
    library.impl("one", lambda x: x, "CPU")

    class Mine(weft.Tensor):
        pass

    @weft.library.register_torch_dispatch("rules::one", Mine)
    def rule(cls, func, types, args, kwargs):
        return cls, func, types

    with weft._C.DisableTorchFunctionSubclass():
        found = weft.ops.rules.one(weft.ones(1).as_subclass(Mine))
    assert found == (Mine, weft.ops.rules.one.default, (Mine,))


def test_opcheck_finds_what_is_wrong():
    def scenario(lib, namespace):
        library = lib.library.Library(namespace, "FRAGMENT")
        library.define("hidden(Tensor x) -> Tensor")
        library.impl("hidden", lambda x: x.add_(1).clone(), "CPU")
        library.define("shape(Tensor x) -> Tensor")
        library.impl("shape", lambda x: x[:1].clone(), "CPU")
        lib.library.register_fake(f"{namespace}::shape", lambda x: lib.empty_like(x))
        library.define("strides(Tensor x) -> Tensor")
        library.impl("strides", lambda x: x.t().clone(), "CPU")
        lib.library.register_fake(f"{namespace}::strides", lambda x: lib.empty(x.shape))
        library.define("wrong(Tensor x) -> Tensor")
        library.impl("wrong", lambda x: x * 2, "CPU")
        ops = getattr(lib.ops, namespace)
        found = []
        vector, square = lib.ones(3), lib.ones(2, 2)
        trained = lib.ones(3, requires_grad=True)
        for op, x in (
            (ops.hidden, vector),
            (ops.shape, vector),
            (ops.strides, square),
            (ops.wrong, trained),
        ):
            answers = lib.library.opcheck(
                op.default,
                (x,),
                test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
                raise_exception=False,
            )
            found.append({name: answer == "SUCCESS" for name, answer in answers.items()})
        return found

    same(scenario)


def test_triton_kernels_are_defined_but_cannot_be_launched():
    @weft.library.triton_op("tritons::add", mutates_args={})
    def add(x: weft.Tensor) -> weft.Tensor:
        weft.library.wrap_triton(print)[(1,)](x)
        return x.clone()

    with pytest.raises(NotImplementedError, match="print"):
        add(weft.ones(1))


def test_kernels_for_weft_itself_are_refused():
    library = weft.library.Library("_", "IMPL")
    with pytest.raises(NotImplementedError, match="do not look for kernels"):
        library.fallback(lambda *args: None, "CPU")
    library.fallback(weft.library.fallthrough_kernel, "CPU")


def test_loading_libraries():
    def scenario(lib, namespace):
        return [
            outcome(lambda: lib.ops.load_library("/nowhere/lib.so")).partition(":")[0],
            "/nowhere/lib.so" in lib.ops.loaded_libraries,
        ]

    same(scenario)


def test_packets_and_overloads_are_single_objects():
    sine(weft, "objects")
    overload = weft.ops.objects.sine.default
    assert copy.deepcopy(overload) is overload
    assert pickle.loads(pickle.dumps(overload)) is overload
    assert pickle.loads(pickle.dumps(weft.ops.objects.sine)) is weft.ops.objects.sine
    assert weft.ops.objects.sine.default is overload


def test_schemas_read_and_print_as_pytorch_does():
    for theirs in torch._C._jit_get_all_schemas()[::7]:
        if theirs.name == "prims::var" or "PyObject" in str(theirs):  # made in Python, and not to be read
            continue
        ours = weft._C.parse_schema(str(theirs))
        assert str(ours) == str(theirs)
        for mine, other in zip(
            ours.arguments + ours.returns, [*theirs.arguments, *theirs.returns], strict=True
        ):
            assert (mine.name, str(mine.type), str(mine.real_type), mine.type.kind(), mine.N, mine.kwarg_only) == (
                other.name, str(other.type), str(other.real_type), other.type.kind(), other.N, other.kwarg_only
            )  # fmt: skip
            assert mine.has_default_value() == other.has_default_value()
            assert mine.default_value == other.default_value


def test_schemas_that_take_the_calls_of_older_ones():
    texts = [
        "a(Tensor x) -> ()",
        "a(Tensor x, int k) -> ()",
        "a(Tensor x, int k=1) -> ()",
        "a(Tensor x, int k=2) -> ()",
        "a(Tensor x, int? k=1) -> ()",
        "a(Tensor x, *, int k=1) -> ()",
        "a(Tensor y) -> ()",
        "a(Tensor x) -> Tensor",
        "a.b(Tensor x) -> ()",
        "a(Tensor x) -> Tensor?",
        "a(Tensor x, ...) -> Tensor",
        "a(Tensor x, *, Tensor b, int c) -> Tensor",
        "a(Tensor x, Tensor b, *, int c) -> Tensor",
        "a(Tensor x, *, int c, Tensor b) -> Tensor",
        "a(Tensor x, int[2] k=1) -> ()",
        "a(Tensor x, SymInt k=1, int j=2) -> ()",
        "a(Tensor x, *, int k, Tensor(a!) out) -> Tensor(a!)",
        "a(Tensor x, *, int k, int j=1, Tensor(a!) out) -> Tensor(a!)",
        "a(Tensor x, *, int k, int j=1, Tensor(a!) out, Tensor(b!) b) -> Tensor(a!)",
        "a(Tensor x, *, int k, int j=1, Tensor(b!) b, Tensor(a!) out) -> Tensor(a!)",
        "a(Tensor(a) x) -> Tensor(a)",
    ]

    def comparisons(lib):
        schemas = [lib._C.parse_schema(text) for text in texts]
        for new, old in itertools.product(schemas, schemas):
            fits, reason = new.check_forward_compatible_with(old)
            # PyTorch quotes the names of results wrongly.
            yield new.is_backward_compatible_with(old), fits, reason.replace("''", "'")[:14]

    assert list(comparisons(weft)) == list(comparisons(torch))


@pytest.mark.parametrize(
    "text",
    [
        "a::b(Tensor x)",
        "a::b(Tensor x -> Tensor",
        "a::b(Floob x) -> Tensor",
        "(Tensor x) -> Tensor",
        "a(Tensor x=1) -> ()",
        "a(int x=1, ...) -> ()",
    ],
)
def test_schemas_that_cannot_be_read(text):
    assert (
        outcome(lambda: weft._C.parse_schema(text))[:40] == outcome(lambda: torch._C.parse_schema(text))[:40]
    )


def test_get_ctx_under_its_older_name():
    import weft._custom_ops

    assert weft._custom_ops.get_ctx is weft.library.get_ctx


def test_a_call_with_types_of_an_earlier_one_is_bound_alike():
    schema = weft._C.parse_schema("my::op(Tensor x, float y, int k=2, *, bool flag=False) -> Tensor")
    x = weft.ones(2)
    for y, expected in ((2.5, 2.5), (1.5, 1.5), (3, 3.0)):
        for _ in range(2):
            values = schema.bind((x, y), {})
            assert values[0] is x and values[1:] == [expected, 2, False] and type(values[1]) is float
    assert schema.bind((x, 1.0), {"flag": True}) == [x, 1.0, 2, True]
    for wrong in ((x,), (x, "1.0"), (x, 1.0, 2, True), (1.0, 1.0)):
        for _ in range(2):
            with pytest.raises(RuntimeError):
                schema.bind(wrong, {})
