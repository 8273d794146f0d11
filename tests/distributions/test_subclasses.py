"""What libraries do with distributions: they derive classes, and read and set the attributes that PyTorch's have."""

import copy
import inspect
import pickle
import warnings
from importlib import import_module
from pkgutil import iter_modules

import pytest
import torch
import torch.distributions

import weft
import weft.distributions
from tests.distributions.test_distributions import MAKERS, same


@pytest.mark.parametrize("module", [info.name for info in iter_modules(torch.distributions.__path__)])
def test_classes_are_in_the_modules_of_pytorch(module):
    theirs = import_module(f"torch.distributions.{module}")
    ours = import_module(f"weft.distributions.{module}")
    for name, found in vars(theirs).items():
        if inspect.isclass(found) and found.__module__ == theirs.__name__ and name not in ("_Dirichlet",):
            assert getattr(ours, name).__module__ == ours.__name__


@pytest.mark.parametrize("name", MAKERS)
def test_attributes_of_pytorch_are_there(name):
    theirs, ours = MAKERS[name](torch), MAKERS[name](weft)
    for attribute, expected in vars(theirs).items():
        found = getattr(ours, attribute)
        if isinstance(expected, (torch.Tensor, int, tuple)):
            same(found, expected)


def has(owner, name):
    try:
        getattr(owner, name)
    except AttributeError:
        return False
    except NotImplementedError:
        pass
    return True


@pytest.mark.parametrize("name", MAKERS)
def test_methods_of_pytorch_are_there(name):
    theirs, ours = MAKERS[name](torch), MAKERS[name](weft)
    names = {name for kind in type(theirs).__mro__[:-1] for name in vars(kind) if not name.startswith("__")}
    missing = {name for name in names if has(theirs, name) and not has(ours, name)}
    assert missing <= {"_is_protocol"}


# PyTorch's VonMises calls the subclass's `__init__`, which has other arguments here.
@pytest.mark.parametrize("name", sorted({*MAKERS} - {"von mises"}))
def test_subclasses_expand_into_an_object_of_their_own(name):
    def program(lib):
        distribution = MAKERS[name](lib)
        family = type(distribution)

        class Mine(family):
            def __init__(self, note):
                self.note = note

            def expand(self, batch_shape, _instance=None):
                new = self._get_checked_instance(Mine, _instance)
                new.note = self.note
                return super().expand(batch_shape, _instance=new)

        mine = copy.copy(distribution)
        mine.__class__ = Mine
        mine.note = "kept"
        expanded = mine.expand((4, *distribution.batch_shape))
        assert type(expanded) is Mine
        assert expanded.note == "kept"
        lib.manual_seed(0)
        return expanded.sample(), sorted(vars(expanded))

    (ours, names), (theirs, expected) = program(weft), program(torch)
    same(ours, theirs)
    assert set(expected) <= set(names)


@pytest.mark.parametrize("lib", [torch, weft])
def test_a_subclass_with_another_init_must_expand_itself(lib):
    class Mine(lib.distributions.Normal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)

    with pytest.raises(NotImplementedError, match="Subclass Mine of Normal"):
        Mine(0.0).expand((2,))


@pytest.mark.parametrize("lib", [torch, weft])
def test_a_distribution_may_state_nothing(lib):
    class Mine(lib.distributions.Distribution):
        pass

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        mine = Mine((2,))
    with pytest.warns(UserWarning, match="does not define `support`"):
        mine._validate_sample(lib.zeros(2))
    with pytest.raises(NotImplementedError):
        mine.expand((3,))
    with pytest.raises(NotImplementedError):
        mine.mean  # noqa: B018
    with pytest.warns(FutureWarning, match="sample_n"), pytest.raises(NotImplementedError):
        mine.sample_n(3)


@pytest.mark.parametrize("lib", [torch, weft])
def test_further_bases_are_initialized(lib):
    class Transform(lib.distributions.transforms.Transform, lib.nn.Module):
        domain = codomain = lib.distributions.constraints.real

        def __init__(self):
            super().__init__(cache_size=1)
            self.scale = lib.nn.Parameter(lib.tensor(2.0))

        def _call(self, x):
            return x * self.scale

        def _inverse(self, y):
            raise KeyError("not cached")

    transform = Transform()
    x = lib.ones(2)
    y = transform(x)
    assert transform.inv(y) is x
    assert transform._cached_x_y[0] is x
    assert transform._cached_x_y[1] is y
    assert transform.inv is transform.inv
    assert transform.inv.inv is transform
    assert transform != Transform()
    assert list(transform._parameters) == ["scale"]


@pytest.mark.parametrize("lib", [torch, weft])
def test_lazy_properties(lib):
    from_utils = lib.distributions.utils

    class Circle:
        def __init__(self):
            self.radius = lib.tensor(2.0, requires_grad=True)

        @from_utils.lazy_property
        def area(self):
            """3 r r"""
            return 3 * self.radius**2

    circle = Circle()
    assert "area" not in vars(circle)
    with lib.no_grad():
        assert circle.area is circle.area
    assert circle.area.requires_grad
    assert isinstance(Circle.area, property)
    assert isinstance(Circle.area, from_utils.lazy_property)
    assert Circle.area.__doc__ == "3 r r"
    assert isinstance(lib.distributions.Bernoulli.probs, property)


@pytest.mark.parametrize("lib", [torch, weft])
def test_a_factor_may_be_a_property_of_the_subclass(lib):
    class Lazy(lib.distributions.MultivariateNormal):
        def __init__(self, loc, factor):
            self.loc, self._factor_ = loc, factor
            super(lib.distributions.MultivariateNormal, self).__init__(
                loc.shape[:-1], loc.shape[-1:], validate_args=False
            )

        @property
        def _unbroadcasted_scale_tril(self):
            return self._factor_

    lazy = Lazy(lib.zeros(2), lib.tensor([[2.0, 0.0], [1.0, 1.0]]))
    assert lazy.variance.tolist() == [4.0, 2.0]
    assert lazy.covariance_matrix.tolist() == [[4.0, 2.0], [2.0, 2.0]]
    assert lib.distributions.kl_divergence(lazy, lazy).item() == 0
    assert "_unbroadcasted_scale_tril" not in vars(lazy)


CONSTRAINTS = {
    name: value
    for name, value in vars(torch.distributions.constraints).items()
    if isinstance(value, torch.distributions.constraints.Constraint)
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints(name):
    theirs, ours = CONSTRAINTS[name], getattr(weft.distributions.constraints, name)
    assert type(ours).__name__ == type(theirs).__name__
    assert repr(ours) == repr(theirs)
    for attribute in ("is_discrete", "event_dim"):
        try:
            expected = getattr(theirs, attribute)
        except NotImplementedError:
            with pytest.raises(NotImplementedError):
                getattr(ours, attribute)
        else:
            assert getattr(ours, attribute) == expected
    matrices = [
        [[1.0, 0.0], [0.0, 1.0]],
        [[0.0, 1.0], [1.0, 0.0]],
        [[1.0, 2.0], [0.0, 1.0]],
        [[2.0, 1.0], [1.0, 0.5]],
    ]
    if name == "dependent":
        return
    for value in (matrices, [[0.5, 0.5], [1.0, 0.0]], [[1.0, 2.0, 3.0]], [[-1.0, 0.0, 2.5]]):
        assert ours.check(weft.tensor(value)).tolist() == theirs.check(torch.tensor(value)).tolist()


def test_constraints_of_parts_and_of_instances():
    def program(lib):
        c = lib.distributions.constraints
        stacks = [c.stack([c.real, c.real_vector], dim).event_dim for dim in (0, -1, -2, -3)]
        known = c.dependent(event_dim=2)
        supports = [
            getattr(lib.distributions, name).support.event_dim
            for name in ("Uniform", "Pareto", "Categorical", "Binomial", "Multinomial")
        ]
        bases = {
            name: [base.__name__ for base in getattr(c, name).__mro__]
            for name in ("_Interval", "_CorrCholesky")
        }
        return stacks, known.event_dim, supports, bases["_CorrCholesky"]

    assert program(weft) == program(torch)


def test_distributions_share_the_base_classes_of_pytorch():
    for name, make in MAKERS.items():
        theirs = [kind.__name__ for kind in type(make(torch)).__mro__]
        ours = [kind.__name__ for kind in type(make(weft)).__mro__]
        assert set(theirs) <= set(ours), name


def test_copies_and_pickles_of_transforms():
    transform = weft.distributions.transforms.ExpTransform(cache_size=1)
    inverse = transform.inv
    transform(weft.zeros(2))
    for copied in (copy.deepcopy(transform), pickle.loads(pickle.dumps(transform))):
        assert copied == transform
        assert copied.inv.inv is copied
    assert pickle.loads(pickle.dumps(inverse)) == inverse


def test_default_validation():
    with warnings.catch_warnings():
        for lib in (torch, weft):
            with pytest.raises(ValueError):
                lib.distributions.Distribution.set_default_validate_args(3)
