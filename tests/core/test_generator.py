"""The generator's state is PyTorch's, byte for byte."""

import numpy as np
import pytest
import torch

from weft.core.generator import STATE, Generator, Seeding

SEEDS = [0, 1, 67280421310721, 2**32 - 1, 2**32, 2**63, 2**64 - 1, -1, -(2**63)]


def oracle_state() -> np.ndarray:
    return torch.get_rng_state().numpy()


@pytest.mark.parametrize("in_python", [0, 9])
@pytest.mark.parametrize("seed", SEEDS)
def test_seeding_gives_the_state_of_torch(seed, in_python, monkeypatch):
    monkeypatch.setattr(Seeding, "in_python", in_python)
    torch.manual_seed(seed)
    generator = Generator()
    generator.keep_normal(0.5)
    generator.manual_seed(seed)
    assert generator.initial_seed() == torch.initial_seed()
    np.testing.assert_array_equal(generator.state_bytes(), oracle_state())


def test_fresh_generator_has_the_documented_seed():
    assert Generator().initial_seed() == torch.Generator().initial_seed() == 67280421310721


def test_seed_is_new_each_time_and_is_reported():
    generator = Generator()
    first, second = generator.seed(), generator.seed()
    assert first != second
    assert generator.initial_seed() == second


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seed_out_of_range(seed):
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        Generator().manual_seed(seed)


@pytest.mark.parametrize("used", [0, 1, 5, 52, 623, 624, 625])
def test_state_of_torch_is_loaded_as_it_is(used):
    torch.manual_seed(3)
    torch.rand(used)
    torch.randn(3)  # leaves a normal for the next call
    generator = Generator()
    generator.load_state_bytes(oracle_state())
    np.testing.assert_array_equal(generator.state_bytes(), oracle_state())
    assert generator.initial_seed() == 3


def test_clone_state_goes_its_own_way():
    generator = Generator().manual_seed(5)
    clone = generator.clone_state()
    np.testing.assert_array_equal(clone.state_bytes(), generator.state_bytes())
    clone.manual_seed(6)
    assert generator.initial_seed() == 5


def test_the_kept_normal_is_given_once():
    generator = Generator()
    generator.keep_normal(1.5)
    assert generator.take_normal() == 1.5
    assert generator.take_normal() is None


BAD_FIELDS = [
    {"seeded": 0},
    {"left": 0},
    {"left": -1},
    {"next": 625},
    {"next": 2**63},
    {"left": 300, "next": 400},
]


@pytest.mark.parametrize("fields", BAD_FIELDS, ids=str)
def test_states_that_point_outside_of_the_words_are_refused(fields):
    generator = Generator().manual_seed(1)
    before = generator.state_bytes()
    state = before.copy()
    for name, value in fields.items():
        state.view(STATE)[name] = value
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        generator.load_state_bytes(state)
    np.testing.assert_array_equal(generator.state_bytes(), before)


@pytest.mark.parametrize(
    ("nbytes", "message"),
    [(5055, "CPUGeneratorImplState of size 5056.* to be 5055"), (5056, "Invalid mt19937")],
)
def test_bad_states_are_refused(nbytes, message):
    generator = Generator().manual_seed(1)
    before = generator.state_bytes()
    with pytest.raises(RuntimeError, match=message):
        generator.load_state_bytes(np.zeros(nbytes, np.uint8))
    np.testing.assert_array_equal(generator.state_bytes(), before)
