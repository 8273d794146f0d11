"""`weft.count`: numbers computed by hand, PyTorch's counts of products, and every entry of its table of operations."""

import itertools
import operator
import threading
import warnings

import pytest
import torch
from oracle import converted
from quick_torch import op_db
from torch.utils.flop_counter import FlopCounterMode as Reference

import weft
from weft.engine.work import Work, touched
from weft.ops.elementwise.arithmetic import ADD
from weft.profiler import profile


def counted(function, *args):
    with weft.count(display=False) as found:
        function(*args)
    return found


A = weft.arange(12.0).reshape(3, 4)
Z = weft.ones(5, dtype=weft.complex64)

# What is computed, FLOP, bytes read, bytes written.
BY_HAND = {
    "addition": (lambda: A + A, 12, 2 * 48, 48),
    "with a number": (lambda: A * 2, 12, 48, 48),
    "a scaled addition": (lambda: weft.add(A, A, alpha=3), 24, 2 * 48, 48),
    "broadcast": (lambda: A + A[0], 12, 48 + 16, 48),
    "exp is one operation": (lambda: A.exp(), 12, 48, 48),
    "lgamma is one operation": (lambda: A.lgamma(), 12, 48, 48),
    "a maximum is one operation": (lambda: A.relu(), 12, 48, 48),
    "clamp is two maxima": (lambda: A.clamp(0, 1), 24, 48, 48),
    "a comparison is none": (lambda: A > 1, 0, 48, 12),
    "a choice is none": (lambda: weft.where(A > 1, A, 0), 0, 48 + 12 + 48, 12 + 48),
    "x * sigmoid(x)": (lambda: weft.nn.functional.silu(A), 24, 48, 48),
    "a conversion is none": (lambda: A.double(), 0, 48, 96),
    "a product of complex numbers is 4 products and 2 sums": (lambda: Z * Z, 30, 80, 40),
    "in place": (lambda: A.clone().mul_(1), 12, 2 * 48, 2 * 48),
    "views": (lambda: A.t()[1:].unsqueeze(0).expand(5, -1, -1), 0, 0, 0),
    "every other column": (lambda: A[:, ::2] + 0, 6, 24, 24),
    "windows of overlapping elements": (lambda: A.flatten().unfold(0, 4, 1).exp(), 36, 48, 144),
    "a sum": (lambda: A.sum(), 12, 48, 4),
    "a mean divides once": (lambda: A.mean(0), 12 + 4, 48, 16),
    "running sums": (lambda: A.cumsum(0), 12, 48, 48),
    "pieces": (lambda: weft.cat([A, A]), 0, 96, 96),
    "chosen rows count each time": (lambda: A[weft.tensor([1, 1])], 0, 2 * 16 + 16, 16 + 32),
    "random numbers": (lambda: weft.rand(7), 0, 0, 28),
    "a product": (lambda: A @ A.t(), 2 * 3 * 4 * 3, 2 * 48, 36),
    "a product with a vector": (lambda: A @ A[0], 2 * 3 * 4, 48 + 16, 12),
    "a layer": (lambda: weft.nn.functional.linear(A, A, A[0, :3]), 72 + 9, 2 * 48 + 36 + 12, 2 * 36),
    "sorting compares": (lambda: weft.sort(A.bool().flatten()), 0, None, None),
    "a function of SciPy's": (lambda: weft.special.zeta(A + 2, A + 1), 36, 5 * 48, 4 * 48),
    # For each column a reciprocal, products with it below, and a product and a difference for each element right of these.
    "the factors of LU": (
        lambda: weft.linalg.lu_factor(weft.eye(3)),
        (1 + 2 + 8) + (1 + 1 + 2) + 1,
        None,
        None,
    ),
    "a transform": (lambda: weft.fft.fft(Z[:4]), 5 * 4 * 2, 32, 32),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name):
    function, flop, read, written = BY_HAND[name]
    found = counted(function)
    assert found.flop == flop, found.table("kernel")
    if read is not None:
        assert (found.read, found.written) == (read, written), found.table("kernel")


def test_deferred_operations_are_one_kernel():
    x = weft.ones(300, 1000)
    found = counted(lambda: ((2 - x).exp() * 0.5).sum())
    (kernel,) = found.kernels
    assert kernel.operation == "weft::fused(sub, exp, mul, sum)"
    assert kernel.work == Work(4 * x.numel(), 4 * x.numel() + 8, 4, 0)
    with weft.eager():
        assert counted(lambda: ((2 - x).exp() * 0.5).sum()).moved == 7 * x.nbytes + 4


def programs(lib):
    f = lib.nn.functional
    x, w = lib.ones(2, 6, 8, 8), lib.ones(4, 3, 3, 3)
    yield lambda: lib.ones(3, 4) @ lib.ones(4, 5)
    yield lambda: lib.bmm(lib.ones(2, 3, 4), lib.ones(2, 4, 5))
    yield lambda: lib.addmm(lib.ones(2, 2), lib.ones(2, 3), lib.ones(3, 2))
    yield lambda: f.linear(lib.ones(2, 7, 3), lib.ones(5, 3), lib.ones(5))
    yield lambda: f.conv2d(x, w, groups=2, padding=1)
    yield lambda: f.conv_transpose2d(x, lib.ones(6, 2, 3, 3), stride=2)
    yield lambda: f.conv1d(lib.ones(1, 2, 9), lib.ones(3, 2, 3), dilation=2)
    yield lambda: lib.einsum("bij,bjk->bik", lib.ones(2, 3, 4), lib.ones(2, 4, 5))
    yield lambda: lib.nn.Linear(4, 5)(lib.ones(3, 4, requires_grad=True)).sum().backward()
    yield lambda: lib.nn.Conv2d(2, 3, 3)(lib.ones(1, 2, 6, 6, requires_grad=True)).sum().backward()


def test_products_are_pytorchs():
    for mine, theirs in zip(programs(weft), programs(torch), strict=True):
        with Reference(display=False) as expected:
            theirs()
        assert counted(mine).products == expected.get_total_flops()


@pytest.mark.parametrize("size", [8, 700])
def test_attention_is_two_products(size):
    q, k, v = weft.ones(1, 2, size, 4), weft.ones(1, 2, size, 4), weft.ones(1, 2, size, 6)
    found = counted(lambda: weft.nn.functional.scaled_dot_product_attention(q, k, v))
    assert found.products == 2 * 2 * size * size * (4 + 6)


def test_modules_forward_and_backward():
    model = weft.nn.Sequential(weft.nn.Linear(4, 8), weft.nn.ReLU(), weft.nn.Linear(8, 2))
    found = counted(lambda: model(weft.ones(3, 4)).sum().backward())
    products = {
        name: sum(each.products for each in works.values()) for name, works in found.by_module.items()
    }
    assert products == {
        "Global": 672,
        "Sequential": 672,
        "Sequential.0": 384,
        "Sequential.1": 0,
        "Sequential.2": 288,
    }
    assert found.by_module["Sequential.1"]["aten::relu"] == Work(24, 96, 96, 0)
    assert found.by_operation == found.by_module["Global"]
    assert sum(each.work.flop for each in found.kernels) == found.flop


def test_deferred_work_belongs_to_the_module_that_recorded_it():
    model = weft.nn.Sequential(weft.nn.GELU())
    x = weft.ones(400, 1000)
    found = counted(lambda: model(x).sum())
    assert sum(each.flop for each in found.by_module["Global"].values()) == 3 * x.numel()


def test_meta_tensors_suffice():
    with weft.device("meta"):
        layer, x = weft.nn.Linear(5000, 5000), weft.empty(100, 5000)
    assert counted(layer, x).products == 2 * 100 * 5000**2


def test_an_error_ends_the_count(capsys):
    A + A
    plans = dict(ADD.plans)
    with pytest.raises(RuntimeError, match="must match"), weft.count() as found:
        A + A
        A + weft.ones(5)
    A + A
    assert found.flop == 12
    assert ADD.plans == plans
    assert "prepare" not in vars(A.device.backend)
    assert not capsys.readouterr().out


def test_samples_of_vmap_are_counted_as_a_batch():
    x = weft.ones(5, 3, 4)
    found = counted(lambda: weft.func.vmap(lambda a: (a @ a.t()).sum())(x))
    assert found.products == 5 * 2 * 3 * 4 * 3
    assert found.flop == found.products + 5 * 9
    (cubes,) = weft.ones(1, 4)
    hessian = counted(lambda: weft.func.hessian(lambda a: (a**3).sum())(cubes))
    assert hessian.flop > 0


@pytest.mark.parametrize(
    "program",
    [
        lambda: (
            weft.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(weft.ones(2, 3, 8)).sum().backward()
        ),
        lambda: weft.eye(5).to_sparse() @ weft.ones(5, 3),
        lambda: weft.nested.nested_tensor([weft.ones(2, 3), weft.ones(4, 3)]) * 2,
        lambda: weft.quantize_per_tensor(weft.ones(3), 0.1, 0, weft.quint8).dequantize(),
        lambda: weft.compile(lambda a: a * 2 + 1)(A),
        lambda: weft.export.export(weft.nn.Linear(4, 2), (A,)),
    ],
)
def test_programs_of_all_kinds_run(program):
    assert counted(program).moved > 0
    program()


def test_other_threads_do_not_count():
    with weft.count(display=False) as found:
        other = threading.Thread(target=lambda: [A * 3 for _ in range(50)])
        other.start()
        for _ in range(50):
            A + A
        other.join()
    assert found.flop == 50 * 12


def test_only_one_at_a_time():
    with weft.count(display=False) as found:
        with pytest.raises(RuntimeError, match="open already"), weft.count():
            pass
        with pytest.raises(RuntimeError, match="open already"), profile():
            pass
        A + A
    assert found.flop == 12
    with profile(), pytest.raises(RuntimeError, match="open already"), weft.count():
        pass


def test_tables(capsys):
    with weft.count():
        A @ A.t()
        weft.linalg.matrix_exp(weft.eye(3))
    shown = capsys.readouterr().out
    assert "aten::mm" in shown
    assert "FLOP are not known, and counted as 0, for: aten::linalg_matrix_exp" in shown
    found = counted(lambda: A @ A.t())
    assert found.table("operation").splitlines()[2].split() == ["aten::mm", "1", "72", "72", "96", "36"]
    assert "aten::mm (product)" in found.table("kernel")
    with pytest.raises(ValueError, match="'module', 'operation' or 'kernel', got 'line'"):
        found.table("line")


def test_bytes_of_a_loop():
    assert touched((3, 4), (16, 4), 4) == 48
    assert touched((3, 4), (0, 4), 4) == 16
    assert touched((3, 4), (-16, 8), 4) == 48
    assert touched((5, 4), (4, 4), 4) == 32
    assert touched((3, 0), (16, 4), 4) == 0


# ---- All operations -----------------------------------------------------------------------------------------------

# They read only a part of what they are given.
PARTIAL = set(
    "diag diagonal_copy masked_select as_strided_copy nn.functional.avg_pool3d nn.functional.max_pool3d narrow_copy gather __getitem__ "
    "take unfold_copy trace linalg.matrix_power nn.functional.pad slice_scatter select_scatter diagonal_scatter index_select "
    "take_along_dim nn.functional.embedding nn.functional.grid_sample masked_scatter".split()
)
WITHOUT_READING = ("_like", "new_", "empty", "full")
# They allocate and write nothing.
EMPTY = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}


def tensors(value):
    if isinstance(value, weft.Tensor):
        return [value] if value.layout is weft.strided and value.numel() else []
    if isinstance(value, dict):
        value = list(value.values())
    return [each for item in value for each in tensors(item)] if isinstance(value, (list, tuple)) else []


def public(name):
    try:
        return operator.attrgetter(name)(weft)
    except AttributeError:
        return getattr(weft.Tensor, name, None)


def is_counted(op):
    """Whether weft computes the operation, and its counts are enough for its operands and results."""
    dtypes = op.supported_dtypes("cpu")
    function = public(op.name)
    if not callable(function) or not dtypes:
        return False
    dtype = torch.float32 if torch.float32 in dtypes else min(dtypes, key=str)
    for sample in itertools.islice(op.sample_inputs("cpu", dtype), 8, 30, 9):
        try:
            args = converted((sample.input, *sample.args))
            kwargs = {key: converted(value) for key, value in sample.kwargs.items()}
            with weft.count(display=False) as found:
                result = function(*args, **kwargs)
        except (
            TypeError,
            NotImplementedError,
            RuntimeError,
        ):  # the sample is for another form of the function
            return False
        given = {each._storage: each for each in tensors((args, kwargs))}
        fresh = {each._storage: each for each in tensors(result) if each._storage not in given}
        assert found.flop >= found.products >= 0
        if not fresh or op.name in EMPTY:
            continue
        assert found.written >= sum(each.nbytes for each in fresh.values()), found.table("kernel")
        if op.name not in PARTIAL and not any(part in op.name for part in WITHOUT_READING):
            whole = [each for each in given.values() if 0 not in each.stride()]
            assert found.read >= sum(each.nbytes for each in whole), found.table("kernel")
    return True


@pytest.mark.parametrize("part", range(6))
def test_all_operations_are_counted(part):
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = op_db()[part::6]
        missing = [op.name for op in chosen if not is_counted(op)]
    assert len(missing) < 0.12 * len(chosen), missing


S, TALL = weft.eye(6).expand(2, 6, 6), weft.ones(12, 4)


@pytest.mark.parametrize(
    "program, flop",
    [
        (lambda: weft.linalg.eigh(S), 2 * 9 * 6**3),
        (lambda: weft.linalg.eigvalsh(S), 2 * 4 * 6**3 // 3),
        (lambda: weft.linalg.eigh(S.to(weft.complex64)), 4 * 2 * 9 * 6**3),
        (lambda: weft.linalg.eig(S), 2 * 25 * 6**3),
        (lambda: weft.linalg.eigvals(S), 2 * 10 * 6**3),
        # QR first, because the matrix is tall; a square matrix at once.
        (lambda: weft.linalg.svdvals(TALL), 2 * 12 * 16 + 2 * 64),
        (lambda: weft.linalg.svdvals(TALL.mT), 2 * 12 * 16 + 2 * 64),
        (lambda: weft.linalg.svdvals(S), round(2 * 6**3 * (4 - 4 / 3))),
        (lambda: weft.linalg.svd(TALL, full_matrices=False), 6 * 12 * 16 + 20 * 64),
        (lambda: weft.linalg.svd(TALL), 4 * 144 * 4 + 22 * 64),
        (lambda: weft.linalg.svd(S), 2 * 22 * 6**3),
    ],
)
def test_decompositions_that_iterate_are_estimated(program, flop):
    found = counted(program)
    assert found.flop == flop
    assert not found.uncounted


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares_count_more_with_more_right_hand_sides(driver):
    one, five = [
        counted(lambda r=r: weft.linalg.lstsq(TALL + weft.eye(12)[:, :4], weft.ones(12, r), driver=driver))
        for r in (1, 5)
    ]
    assert one.flop > 2 * 12 * 16 - 2 * 64 // 3
    # Twice 12 x 12 or 12 x 4 for the left side, and a triangle or a matrix of 4 x 4.
    assert 4 * (2 * 12 * 4 + 16) < five.flop - one.flop < 4 * (2 * 12 * 12 + 2 * 16)
    assert not one.uncounted


def test_what_consists_of_singular_values_is_counted():
    assert counted(lambda: weft.linalg.pinv(TALL)).flop > 6 * 12 * 16 + 20 * 64
    assert not counted(lambda: weft.linalg.matrix_rank(TALL)).uncounted
