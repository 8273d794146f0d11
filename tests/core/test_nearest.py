"""Errors name what was probably meant."""

import pytest

import weft as torch
from weft.core.nearest import note_called, note_parameter


def names_nearest(error, nearest):
    """Whether weft's note names the parameter, or Python's own message, which does so from version 3.13 on."""
    if f"Did you mean {nearest!r}?" in str(error):
        return not hasattr(error, "__notes__")
    return error.__notes__ == [f"the nearest parameter is {nearest!r}"]


@pytest.mark.parametrize(
    "call, nearest",
    [
        (lambda x: x.sum(dims=0), "dim"),
        (lambda x: torch.softmax(x, dims=-1), "dim"),
        (lambda x: torch.full((2,), 1.0, dytpe=torch.float32), "dtype"),
        (lambda x: torch.nn.functional.cross_entropy(x, x, weigth=None), "weight"),
    ],
)
def test_unknown_keywords_name_the_nearest_parameter(call, nearest):
    with pytest.raises(TypeError, match="got an unexpected keyword argument") as raised:
        call(torch.ones(2, 3))
    assert names_nearest(raised.value, nearest)


def test_no_parameter_is_near():
    with pytest.raises(TypeError) as raised:
        torch.ones(2).sum(colour=0)
    assert not hasattr(raised.value, "__notes__")


def test_nothing_is_added_to_what_python_suggests():
    error = TypeError("f() got an unexpected keyword argument 'dims'. Did you mean 'dim'?")
    note_parameter(error, lambda dim: None)
    assert not hasattr(error, "__notes__")


def test_the_device_gpu_is_called_cuda():
    with pytest.raises(RuntimeError, match=r"device string: gpu \(NVIDIA's GPUs are called cuda\)"):
        torch.ones(2, device="gpu")


def test_errors_have_the_public_name():
    for call in (torch.nn.functional.softmax, torch.nn.functional.log_softmax):
        with pytest.raises(
            TypeError, match=rf"^{call.__name__}\(\) got an unexpected keyword argument 'dims'"
        ):
            call(torch.ones(2), dims=0)


def test_a_dtype_in_the_place_of_a_device():
    for name in ("float16", "int"):
        with pytest.raises(RuntimeError, match=rf"\(the dtype is torch.{name}, without quotes\)"):
            torch.ones(2).to(name)
    with pytest.raises(TypeError, match=r"not str \(write torch.int\)"):
        torch.zeros(2, dtype="int")


def test_dtypes_are_no_strings():
    with pytest.raises(TypeError, match=r"not str \(write torch.float32\)"):
        torch.zeros(2, dtype="float32")


@pytest.mark.parametrize(
    "call, nearest",
    [
        (lambda: torch.zeros(2, dytpe=torch.float32), "dtype"),
        (lambda: torch.empty(2, devic="cpu"), "device"),
        (lambda: torch.randn(2, require_grad=True), "requires_grad"),
        (lambda: torch.randint(3, (2,), require_grad=True), "requires_grad"),
        (lambda: torch.tensor([1.0], require_grad=True), "requires_grad"),
        (lambda: torch.ones(2).var(unbias=True), "unbiased"),
        (lambda: torch.ones(2).uniform_(generato=None), "generator"),
        (lambda: torch.ones(2).normal_(generato=None), "generator"),
        (lambda: torch.softmax(torch.ones(2), axes=0), "dim"),
        (lambda: torch.nn.functional.dropout(torch.ones(2), prob=0.1), "p"),
    ],
)
def test_functions_with_options_name_the_nearest_parameter(call, nearest):
    with pytest.raises(TypeError, match="got an unexpected keyword argument") as raised:
        call()
    assert names_nearest(raised.value, nearest)


def test_to_lists_its_forms_and_the_nearest_parameter():
    with pytest.raises(TypeError, match=r"got \(devce=str\), but expected one of:\n \* \(device") as raised:
        torch.ones(2).to(devce="cpu")
    assert raised.value.__notes__ == ["the nearest parameter is 'device'"]


@pytest.mark.parametrize(
    "call, forms",
    [
        (lambda: torch.randint(10), r"got \(int\), but expected one of:\n \* \(high, size"),
        (lambda: torch.randint(0, 10, high=3), r"got \(int, int, high=int\), but expected one of:"),
        (lambda: torch.rand((2, 3), (4,)), r"got \(tuple, tuple\), but expected one of:\n \* \(\*size"),
        (lambda: torch.randint_like(torch.ones(2)), r"\n \* \(input, low, high, \*, .*memory_format\)$"),
        (lambda: torch.rand(), r"rand\(\) .* got \(\), but expected one of:"),
    ],
)
def test_random_numbers_list_their_forms(call, forms):
    with pytest.raises(TypeError, match=forms):
        call()


def test_too_many_indices_tell_the_shape_and_their_number():
    for index in ((0, 0, 0), (0, slice(None), [1])):
        with pytest.raises(IndexError) as raised:
            torch.ones(2, 3)[index]
        assert str(raised.value).split("\n") == [
            "too many indices for tensor of dimension 2",
            "the shape is [2, 3], and the indices are for 3 dimensions",
        ]


def test_dtypes_are_not_made():
    with pytest.raises(TypeError, match="cannot create 'torch.dtype' instances: write torch.int32"):
        torch.dtype("int32")


@pytest.mark.parametrize("made", [torch.Tensor, torch.FloatTensor])
def test_older_constructors_name_tensor_for_a_dtype(made):
    with pytest.raises(TypeError, match=r"got \(list, dtype=dtype\)") as raised:
        made([1, 2], dtype=torch.int32)
    assert raised.value.__notes__ == ["torch.tensor(data, dtype=) takes it"]


# ---- Errors of Python itself, which get their note when a report shows them ---------------------------------------------

X = torch.ones(2, 3)
BY_PYTHON = [
    (lambda: torch.nn.Linear(in_feature=3, out_features=4), "in_features"),
    (lambda: torch.nn.Conv2d(3, 4, kernel=3), "kernel_size"),
    (lambda: torch.nn.Dropout(prob=0.5), "p"),
    (lambda: torch.nn.LSTM(3, 4, batchfirst=True), "batch_first"),
    (lambda: torch.nn.Parameter(X, require_grad=False), "requires_grad"),
    (lambda: torch.optim.SGD([torch.nn.Parameter(X)], rl=0.1), "lr"),
    (lambda: torch.optim.Adam([torch.nn.Parameter(X)], learning_rate=0.1), "lr"),
    (lambda: torch.utils.data.DataLoader([1], batchsize=3), "batch_size"),
    (lambda: torch.distributions.Normal(mean=0.0, scale=1.0), "loc"),
    (lambda: torch.autocast("cpu", dtyp=torch.bfloat16), "dtype"),
    (lambda: torch.save({}, "x", pickle_protocl=2), "pickle_protocol"),
    (lambda: torch.add(X, X, alhpa=2), "alpha"),
    (lambda: X.mul(othr=2), "other"),
    (lambda: X.view(sizes=(6,)), "size"),
    (lambda: X.sum().backward(retain_grap=True), "retain_graph"),
    (lambda: torch.nn.Linear(3, 4)(inputt=X), "input"),
]


@pytest.mark.parametrize(("call", "nearest"), BY_PYTHON)
def test_reports_name_the_nearest_parameter(call, nearest):
    with pytest.raises(TypeError, match="got an unexpected keyword argument") as raised:
        call()
    for _ in range(2):
        note_called(raised.value)
    if f"Did you mean {nearest!r}?" not in str(raised.value):
        assert raised.value.__notes__.count(f"the nearest parameter is {nearest!r}") == 1


def test_functions_of_the_program_are_not_wefts():
    class Linear:
        def __init__(self, input):
            pass

    for call in (lambda: Linear(in_feature=1), lambda: {}.get(in_feature=1)):
        with pytest.raises(TypeError) as raised:
            (lambda Linear: call())(Linear)
        note_called(raised.value)
        assert not hasattr(raised.value, "__notes__")


def test_other_errors_have_no_note():
    for error in (TypeError("f() got an unexpected keyword argument 'x'"), TypeError("no"), ValueError("no")):
        note_called(error)
        assert not hasattr(error, "__notes__")
