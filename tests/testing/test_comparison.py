import math

import numpy as np
import pytest
import torch
import torch.testing

import weft
import weft.testing

NAN = math.nan
PAIR = {t: (t.ones(2), t.zeros(2)) for t in (weft, torch)}
CASES = {
    "close": lambda t: (t.ones(2), t.ones(2) + 1e-7),
    "not close": lambda t: (t.tensor([1.0, 2.0]), t.tensor([1.0, 3.0])),
    "a matrix": lambda t: (t.tensor([[1.0, 2.0]]), t.tensor([[1.0, 3.0]]), {"rtol": 0, "atol": 0.5}),
    "integers": lambda t: (t.tensor([1, 2]), t.tensor([1, 3])),
    "bools": lambda t: (t.tensor([True]), t.tensor([False])),
    "complex": lambda t: (t.tensor([1.0 + 1j]), t.tensor([1.0 + 2j])),
    "half": lambda t: (t.zeros(2, dtype=t.float16), t.ones(2, dtype=t.float16)),
    "0-dim": lambda t: (t.tensor(1.0), t.tensor(2.0)),
    "infinities": lambda t: (t.tensor([math.inf, 1.0]), t.tensor([math.inf, 2.0])),
    "infinity expected": lambda t: (t.tensor([1.0]), t.tensor([math.inf])),
    "nan": lambda t: (t.tensor([NAN]), t.tensor([NAN])),
    "equal nan": lambda t: (t.tensor([NAN]), t.tensor([NAN]), {"equal_nan": True}),
    "shapes": lambda t: (t.ones(2), t.ones(3)),
    "dtypes": lambda t: (t.ones(2), t.ones(2, dtype=t.float64)),
    "unchecked dtypes": lambda t: (t.ones(2), t.ones(2, dtype=t.float64), {"check_dtype": False}),
    "the larger tolerance of two dtypes": lambda t: (
        t.zeros(1),
        t.tensor([5e-6], dtype=t.float64),
        {"check_dtype": False},
    ),
    "strides": lambda t: (t.ones(2, 2).t()[:, :1], t.ones(2, 1), {"check_stride": True}),
    "devices": lambda t: (t.ones(2, device="meta"), t.ones(2)),
    "numbers": lambda t: (1.0, 2.0),
    "close numbers": lambda t: (1.0, 1.0 + 1e-8),
    "integer numbers": lambda t: (1, 2),
    "infinite numbers": lambda t: (math.inf, math.inf),
    "an infinite number expected": lambda t: (1.0, math.inf),
    "infinite numbers of two signs": lambda t: (-math.inf, math.inf),
    "nan numbers": lambda t: (NAN, NAN, {"equal_nan": True}),
    "arrays": lambda t: (np.ones(2), np.zeros(2)),
    "nothing": lambda t: (None, None),
    "lists": lambda t: ([t.ones(1), t.ones(1)], [t.ones(1), t.zeros(1)]),
    "nested": lambda t: ({"a": [1, 2]}, {"a": [1, 3]}),
    "lengths": lambda t: ([1], [1, 2]),
    "tensors as keys": lambda t: (
        {key: 1 for key in PAIR[t]},
        {key: value for value, key in enumerate(PAIR[t], 1)},
    ),
    "keys": lambda t: ({"a": 1}, {"b": 1}),
    "a message": lambda t: (1, 2, {"msg": "unlike"}),
    "a longer message": lambda t: (1, 2, {"msg": lambda usual: "see: " + usual}),
    "one tolerance": lambda t: (1.0, 1.0, {"rtol": 1.0}),
    "a tensor and a number": lambda t: (t.ones(1), 1.0),
    "strings": lambda t: ("a", "a"),
}

NUMBERS = [[0, 2.0, 0, 0], [0, 0, 3, 4]]
OTHERS = {
    "another value": [[0, 2.5, 0, 0], [0, 0, 3, 4]],
    "another place": [[2.0, 0, 0, 0], [0, 0, 3, 4]],
    "one value more": [[1, 2.0, 0, 0], [0, 0, 3, 4]],
}
LAYOUTS = {
    "COO": lambda t, x: x.to_sparse(),
    "CSR": lambda t, x: x.to_sparse_csr(),
    "CSC": lambda t, x: x.to_sparse_csc(),
    "BSR": lambda t, x: x.to_sparse_bsr((1, 2)),
    "BSC": lambda t, x: x.to_sparse_bsc((1, 2)),
    "quantized": lambda t, x: t.quantize_per_tensor(x, 0.1, 3, t.quint8),
}


def _of_layout(layout, other):
    make = LAYOUTS[layout]
    return lambda t: (make(t, t.tensor(NUMBERS)), make(t, t.tensor(other)))


for _layout in LAYOUTS:
    CASES[f"{_layout}, equal"] = _of_layout(_layout, NUMBERS)
    for _name, _other in OTHERS.items():
        CASES[f"{_layout}, {_name}"] = _of_layout(_layout, _other)
CASES |= {
    "layouts": lambda t: (t.eye(2).to_sparse(), t.eye(2).to_sparse_csr()),
    "unchecked layouts": lambda t: (t.eye(2).to_sparse(), t.eye(2).to_sparse_csr(), {"check_layout": False}),
    "quantized dtypes": lambda t: (
        t.quantize_per_tensor(t.ones(2), 0.1, 3, t.quint8),
        t.quantize_per_tensor(t.ones(2), 0.1, 3, t.qint8),
    ),
    "quantized and not": lambda t: (t.quantize_per_tensor(t.ones(2), 0.1, 3, t.quint8), t.ones(2)),
    "another zero point": lambda t: (
        t.quantize_per_tensor(t.ones(2), 0.1, 3, t.quint8),
        t.quantize_per_tensor(t.ones(2), 0.1, 4, t.quint8),
    ),
    "schemes of quantization": lambda t: (
        t.quantize_per_tensor(t.ones(1), 0.1, 3, t.quint8),
        t.quantize_per_channel(t.ones(1), t.tensor([0.1]), t.tensor([3]), 0, t.quint8),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_verdicts_and_messages_are_those_of_pytorch(name):
    verdicts = []
    for t in (torch, weft):
        actual, expected, *options = CASES[name](t)
        try:
            t.testing.assert_close(actual, expected, **(options[0] if options else {}))
            verdicts.append("close")
        except (AssertionError, TypeError, ValueError) as error:
            verdicts.append(
                (type(error), str(error).replace("weft.", "torch.").replace("torch.core.tensor", "torch"))
            )
    assert verdicts[0] == verdicts[1]


def test_nested_tensors_are_compared_by_component():
    def nested(*components):
        return weft.nested.nested_tensor([weft.ones(*sizes) for sizes in components])

    weft.testing.assert_close(nested((2, 3), (1, 3)), nested((2, 3), (1, 3)))
    with pytest.raises(
        AssertionError, match=r"'shape' do not match: .*\n\nThe failure occurred for item \[1\]"
    ):
        weft.testing.assert_close(nested((2, 3), (1, 3)), nested((2, 3), (2, 3)))
    jagged = weft.nested.nested_tensor([weft.ones(2, 3), weft.ones(1, 3)], layout=weft.jagged)
    with pytest.raises(AssertionError, match=r"Mismatched elements: 9 / 9"):
        weft.testing.assert_close(jagged, jagged * 2)


class _Near:
    """A value of its own kind, for a pair of its own kind."""

    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize("library", [torch, weft])
def test_pairs_can_be_added(library):
    """Frameworks of tests derive pairs for their own types, and compare containers of them."""
    comparison = library.testing._comparison

    class NearPair(comparison.NumberPair):
        def _process_inputs(self, actual, expected, *, id):
            self._check_inputs_isinstance(actual, expected, cls=_Near)
            return super()._process_inputs(actual.value, expected.value, id=id)

    def mismatches(actual, expected, **options):
        found = comparison.not_close_error_metas(
            actual,
            expected,
            pair_types=(NearPair, comparison.TensorLikePair, comparison.ObjectPair),
            **options,
        )
        return [str(each.to_error()).splitlines()[0] for each in found]

    assert mismatches([_Near(1.0), "a"], [_Near(1.0), "a"]) == []
    assert mismatches([_Near(1.0), "a"], [_Near(2.0), "b"]) == ["Scalars are not close!", "a != b"]
    assert mismatches(_Near(1.0), _Near(1.1), rtol=0.0, atol=0.2) == []
    x = library.ones(2)
    assert mismatches({"a": x}, {"a": x + 1}) == ["Tensor-likes are not close!"]
    with pytest.raises(ValueError, match="must be either specified or omitted"):
        mismatches(_Near(1.0), _Near(1.0), rtol=1.0)
    with pytest.raises(RuntimeError, match=r"(?s)Comparing.*BrokenPair"):
        comparison.not_close_error_metas(x, x.reshape(2, 1), pair_types=(_Broken.of(comparison),))


class _Broken:
    @staticmethod
    def of(comparison):
        class BrokenPair(comparison.ObjectPair):
            def compare(self):
                raise KeyError("a mistake in the pair")

        return BrokenPair


@pytest.mark.parametrize("rtol", [0.0, 1e-3])
def test_float8_is_compared_bit_by_bit(rtol):
    found = []
    for library in (torch, weft):
        a = library.tensor([1.0, 2.0]).to(library.float8_e4m3fn)
        b = library.tensor([1.0, 3.0]).to(library.float8_e4m3fn)
        with pytest.raises(AssertionError) as caught:
            library.testing.assert_close(a, b, rtol=rtol, atol=0.0)
        found.append(str(caught.value))
    assert found[0] == found[1]
