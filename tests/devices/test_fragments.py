"""Small products of warps on a GPU: threads have the elements that NVIDIA documents, and products are those of an emulator of `mma.sync`.

The device is the one that TESTED_DEVICE names; other devices than GPUs skip these tests. The form with tensor cores runs on NVIDIA's GPUs only.
"""

import numpy as np
import pytest
from emulated_instructions import with_functions
from on_device import HERE

import weft
from weft.devices._gpu import attention, convolutions, narrow_products
from weft.devices._gpu.fragments import ROWS, TERMS, WARP, WARPS, Fragments, Matrix
from weft.devices._gpu.kernel import THREADS
from weft.devices._gpu.target import SPIRV
from weft.ops.nn.conv_products import Geometry

IS_GPU = hasattr(weft.device(HERE).backend, "runtime")
pytestmark = pytest.mark.skipif(not IS_GPU, reason="TESTED_DEVICE is no GPU")
FORMS = ["memory", "tensor cores"]


def in_form(form, write):
    """The function that writes kernels, for a form. Where there are no tensor cores, functions take the place of their instructions."""
    runtime = weft.device(HERE).backend.runtime
    if form == "memory" or runtime.small_products == form:
        return write
    if runtime.target is not SPIRV:
        pytest.skip("the device has neither tensor cores nor OpenCL's instructions")
    return lambda target, kernel: with_functions(write(target, kernel))


# NVIDIA, PTX ISA 9.0, section 9.7.14.5.8: the row and column of element i of each matrix in a thread (lane) of a warp.


def of_a(lane, i):
    group, thread = lane >> 2, lane % 4
    row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
    return row, thread * 2 + (i & 1) + (8 if i >= 4 else 0)


def of_b(lane, i):
    group, thread = lane >> 2, lane % 4
    return thread * 2 + (i & 1) + (8 if i >= 2 else 0), group


def of_c(lane, i):
    group, thread = lane >> 2, lane % 4
    return group if i < 2 else group + 8, thread * 2 + (i & 1)


def places(formula, count):
    """[lanes, elements, 2]."""
    return np.array([[formula(lane, i) for i in range(count)] for lane in range(WARP)])


def emulated(a, b, c):
    """What `mma.sync.m16n8k16` makes of the fragments of all lanes, [32, 8], [32, 4] and [32, 4]: the sums of all lanes."""
    matrices = []
    for fragments, formula, shape in ((a, of_a, (16, 16)), (b, of_b, (16, 8)), (c, of_c, (16, 8))):
        matrix = np.full(shape, np.nan)
        at = places(formula, fragments.shape[1])
        matrix[at[..., 0], at[..., 1]] = fragments
        matrices.append(matrix)
    at = places(of_c, 4)
    return (matrices[0] @ matrices[1] + matrices[2])[at[..., 0], at[..., 1]]


def registers_ir(target, kernel):
    """Each thread stores its registers: A from memory of the device, A and B from tiles in both orders, sums, and sums as a fragment of A."""
    body = Fragments(target, *kernel)
    out, *addresses = body.words("p", 5)
    shapes = (WARPS * ROWS, TERMS), (TERMS, WARPS * ROWS), (16, TERMS), (TERMS, 16)
    rows, turned, of_columns, of_terms = matrices = [
        Matrix(address, str(2 * columns), str(count), str(columns))
        for address, (count, columns) in zip(addresses, shapes, strict=True)
    ]
    tiles = [body.tile(*shape) for shape in shapes]
    for tile, matrix in zip(tiles, matrices, strict=True):
        body.fetch(tile, matrix, "0")
    body.barrier()
    first = body.integer("mul", body.warp, ROWS)
    lefts = [body.left_side(tiles[k], terms_in_rows=k == 0, first=first) for k in (0, 1)]
    rights = [body.right_side(tiles[k], terms_in_rows=k == 2) for k in (2, 3)]
    (a,) = body.left_of(body.tile(2 * ROWS, TERMS), rows, "0")
    found = [*a, *(register for side in lefts for register in body.left(side, 0, 0))]
    found += [register for side in rights for each in body.right(side, 16, 0) for register in each]
    sums = body.new_sums(16)
    body.multiply_all(sums, [a], rights[1])
    body.multiply_all(sums, [a], rights[0])
    values = body.sums_of(sums)
    found += [body.let(f"bitcast float {value} to i32") for value in values[0]]
    (again,) = body.as_left(values)
    total = body.across(body.let(f"sitofp i64 {body.position} to float"), body.sum)
    found += [*again, body.let(f"bitcast float {total} to i32")]
    for k, register in enumerate(found):
        body.write(body.place(out, [body.position], [4 * len(found)]), weft.int32, register, 4 * k)
    return body.ir()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [weft.float16, weft.bfloat16])
def test_fragments(form, dtype):
    generator = weft.Generator().manual_seed(0)
    a = weft.randint(-8, 8, (WARPS * ROWS, TERMS), generator=generator).to(dtype)
    b = weft.randint(-8, 8, (TERMS, 16), generator=generator).to(dtype)
    operands = [each.contiguous().to(HERE) for each in (a, a.T, b.T, b)]
    out = weft.zeros(THREADS, 29, dtype=weft.int32, device=HERE)
    runtime = weft.device(HERE).backend.runtime
    write = in_form(form, registers_ir)
    launch = runtime.launch(runtime.load(write, (dtype, form != "memory")), 1, "ppppp", [])
    launch.entry(*(each.data_ptr() for each in (out, *operands)), launch.meta, launch.count)
    found = out.cpu().view(WARPS, WARP, 29)

    def elements(start, count):
        return found[..., start : start + count].contiguous().view(dtype).double().numpy()

    whole_a, whole_b = (each.double().numpy() for each in (a.view(WARPS, ROWS, TERMS), b))
    at = places(of_a, 8)
    expected_a = whole_a[:, at[..., 0], at[..., 1]]
    for start in (0, 4, 8):
        np.testing.assert_array_equal(elements(start, 4), expected_a)
    at = places(of_b, 4)
    expected_b = np.broadcast_to(whole_b[at[..., 0], at[..., 1]], (WARPS, WARP, 4))
    second_b = np.broadcast_to(whole_b[at[..., 0], at[..., 1] + 8], (WARPS, WARP, 4))
    for start in (12, 16):
        np.testing.assert_array_equal(elements(start, 2), expected_b)
        np.testing.assert_array_equal(elements(start + 2, 2), second_b)
    sums = found[..., 20:24].contiguous().view(weft.float32).double().numpy()
    for warp in range(WARPS):  # twice the product, in both halves of the columns
        once = emulated(expected_a[warp], expected_b[warp], np.zeros((WARP, 4)))
        np.testing.assert_array_equal(sums[warp], emulated(expected_a[warp], expected_b[warp], once))
    doubled = weft.from_numpy(2 * whole_a @ whole_b).to(dtype).double().numpy()
    at = places(of_a, 8)
    np.testing.assert_array_equal(elements(24, 4), doubled[:, at[..., 0], at[..., 1]])
    totals = found[..., 28].contiguous().view(weft.float32).view(-1, 4)
    fours = weft.arange(THREADS, dtype=weft.float32).view(-1, 4).sum(1, keepdim=True)
    assert totals.equal(fours.expand_as(totals))


def attended(gpu, dtype, causal, mask, features):
    """Results and gradients of attention, by the name of the operand."""
    generator = weft.Generator().manual_seed(0)
    sizes = {"query": (4, 200), "key": (2, 150), "value": (2, 150), "ct": (4, 200)}
    named = {
        name: weft.randn(2, *each, features, generator=generator).to(HERE, dtype)
        for name, each in sizes.items()
    }
    named |= {name: weft.empty(2, 4, 200, device=HERE) for name in ("logsumexp", "shared")}
    named |= {name: weft.empty_like(named["query"]) for name in ("out", "query_ct")}
    named |= {name: weft.empty_like(named["key"]) for name in ("key_ct", "value_ct")}
    for step, names in attention.OPERANDS.items():
        specs = [named[name].spec for name in names]
        launch = attention.prepare_attention(
            gpu, step, specs, None if mask is None else mask.spec, causal, 0.125
        )
        given = [named[name] for name in names] + [mask] * (mask is not None)
        launch.entry(*(each.data_ptr() for each in given), launch.meta, launch.count)
    return {name: each.cpu().double() for name, each in named.items()}


@pytest.mark.parametrize(
    ("dtype", "causal", "features"),
    [(weft.bfloat16, True, 64), (weft.float16, False, 64), (weft.bfloat16, True, 136)],
)
def test_the_forms_of_attention_agree(monkeypatch, dtype, causal, features):
    gpu = weft.device(HERE).backend
    seen = (
        None
        if causal
        else (weft.arange(200).view(-1, 1) * weft.arange(150) % 3 > 0).to(HERE).expand(2, 4, 200, 150)
    )
    found, write = {}, attention.attention_ir
    for form in FORMS:
        monkeypatch.setattr(attention, "attention_ir", in_form(form, write))
        with monkeypatch.context() as change:
            change.setattr(gpu.runtime, "small_products", form)
            found[form] = attended(gpu, dtype, causal, seen, features)
    for name, expected in found["memory"].items():
        one, other = (each.nan_to_num(posinf=-100) for each in (found["tensor cores"][name], expected))
        tolerance = 2e-2 if dtype is weft.bfloat16 else 3e-3
        assert (one - other).abs().max() <= tolerance * other.abs().max(), name


def convolved(gpu, kernels, how):
    """A convolution and its adjoints in the input and in the weight."""
    generator = weft.Generator().manual_seed(0)
    images, channels, made = 2, 70, 80
    sizes = (images, channels, *how.sizes), (made, channels, *how.kernel), (images, made, *how.positions)
    x, w, ct = (weft.randn(size, generator=generator).to(HERE, weft.float16) for size in sizes)
    y, x_ct = weft.empty_like(ct), weft.empty_like(x)
    parts = kernels.parts(images, channels, made, how)
    w_ct = weft.empty(parts, made, channels, *how.kernel, device=HERE)

    def placed(tensor):
        return tensor.data_ptr(), tensor.spec.byte_stride

    static = x.dtype, images, channels, made, how
    kernels.sums(placed(y), placed(x), w.data_ptr(), None, (*static, False))
    kernels.sums(placed(x_ct), placed(ct), w.data_ptr(), None, (*static, True))
    kernels.products(w_ct.data_ptr(), placed(x), placed(ct), static)
    return [each.cpu().float() for each in (y, x_ct, w_ct.sum(0))]


def test_the_forms_of_convolutions_agree(monkeypatch):
    gpu = weft.device(HERE).backend
    how = Geometry((9, 8), (3, 2), (2, 1), (1, 2), ((1, 1), (0, 1)), 1, (5, 7))
    found, writers = [], {name: getattr(convolutions, name) for name in ("sums_ir", "products_ir")}
    for form in FORMS:
        for name, write in writers.items():
            monkeypatch.setattr(convolutions, name, in_form(form, write))
        with monkeypatch.context() as change:
            change.setattr(gpu.runtime, "small_products", form)
            found.append(convolved(gpu, convolutions.Convolutions(gpu), how))
    for one, other in zip(*found, strict=True):
        weft.testing.assert_close(one, other, rtol=2e-3, atol=2e-3 * other.abs().max().item())


BYTES = [
    (weft.int8, weft.int8),
    (weft.float8_e4m3fn, weft.float8_e5m2),
    (weft.float8_e5m2, weft.float8_e4m3fn),
]


# NVIDIA, PTX ISA 9.0, section 9.7.14.5.10: m16n8k32 of elements of 8 bits.


def byte_of_a(lane, i):
    group, thread = lane >> 2, lane % 4
    row = group if 0 <= i < 4 or 8 <= i < 12 else group + 8
    return row, thread * 4 + (i & 3) + (16 if i >= 8 else 0)


def byte_of_b(lane, i):
    group, thread = lane >> 2, lane % 4
    return thread * 4 + (i & 3) + (16 if i >= 4 else 0), group


def bytes_ir(target, kernel):
    """Each thread stores its registers of bytes: A, B for sixteen columns, and sums."""
    left, right, tensor_cores = kernel
    body = Fragments(target, left, tensor_cores, right)
    out, *addresses = body.words("p", 3)
    counts = WARPS * ROWS, 16
    tiles = [body.tile(count, TERMS) for count in counts]
    for tile, address, count in zip(tiles, addresses, counts, strict=True):
        body.fetch(tile, Matrix(address, str(2 * TERMS), str(count), str(TERMS)), "0")
    body.barrier()
    a = body.left(body.left_side(tiles[0], True, body.integer("mul", body.warp, ROWS)), 0, 0)
    b = body.right(body.right_side(tiles[1], True), 16, 0)
    sums = body.new_sums(16)
    body.multiply(sums, a, b)
    values = [value for four in body.sums_of(sums) for value in four]
    if body.sum_kind == "float":
        values = [body.let(f"bitcast float {value} to i32") for value in values]
    for k, register in enumerate([*a, *b[0], *b[1], *values]):
        body.write(body.place(out, [body.position], [4 * 16]), weft.int32, register, 4 * k)
    return body.ir()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("left", "right"), BYTES)
def test_fragments_of_bytes(form, left, right):
    runtime = weft.device(HERE).backend.runtime
    if form == "tensor cores" and left is not weft.int8 and (7, 0) <= runtime.capability < (8, 9):
        pytest.skip("float8 needs compute capability 8.9")
    generator = weft.Generator().manual_seed(0)
    a = weft.randint(-8, 8, (WARPS * ROWS, 2 * TERMS), generator=generator).to(left)
    b = weft.randint(-8, 8, (16, 2 * TERMS), generator=generator).to(right)  # its columns
    out = weft.zeros(THREADS, 16, dtype=weft.int32, device=HERE)
    write = in_form(form, bytes_ir)
    launch = runtime.launch(runtime.load(write, (left, right, form != "memory")), 1, "ppp", [])
    launch.entry(*(each.data_ptr() for each in (out, a.to(HERE), b.to(HERE))), launch.meta, launch.count)
    found = out.cpu().view(WARPS, WARP, 16)

    def elements(start, count, dtype):
        return found[..., start : start + count].contiguous().view(dtype).double().numpy()

    whole_a, whole_b = a.view(WARPS, ROWS, 2 * TERMS).double().numpy(), b.double().numpy().T
    at = places(byte_of_a, 16)
    np.testing.assert_array_equal(elements(0, 4, left), whole_a[:, at[..., 0], at[..., 1]])
    for k in (0, 1):
        at = places(byte_of_b, 8)
        expected = np.broadcast_to(whole_b[at[..., 0], at[..., 1] + 8 * k], (WARPS, WARP, 8))
        np.testing.assert_array_equal(elements(4 + 2 * k, 2, right), expected)
        at = places(of_c, 4)
        sums = elements(8 + 4 * k, 4, weft.int32 if left is weft.int8 else weft.float32)
        np.testing.assert_array_equal(sums, (whole_a @ whole_b)[:, at[..., 0], at[..., 1] + 8 * k])


@pytest.mark.parametrize("turned", [(False, False), (True, True)])
@pytest.mark.parametrize("rows", [70, 300, 3000])  # squares of both sizes
def test_the_forms_of_products_agree(monkeypatch, turned, rows):
    gpu = weft.device(HERE).backend
    if rows > 300 and gpu.runtime.target is SPIRV:
        pytest.skip("300 rows are many for a processor")
    generator = weft.Generator().manual_seed(0)
    a, b = (
        (weft.randn(shape[::-1], generator=generator).T if turn else weft.randn(shape, generator=generator))
        for shape, turn in zip(((rows, 50), (50, rows)), turned, strict=True)
    )
    a, b = a.to(HERE, weft.bfloat16), b.to(HERE, weft.bfloat16)
    found, write = [], narrow_products.narrow_product_ir
    for form in FORMS:
        monkeypatch.setattr(narrow_products, "narrow_product_ir", in_form(form, write))
        with monkeypatch.context() as change:
            change.setattr(gpu.runtime, "small_products", form)
            result = weft.empty(rows, rows, device=HERE)
            launch = narrow_products.prepare_narrow_product(gpu, a.spec, b.spec, result.spec)
        launch.entry(result.data_ptr(), a.data_ptr(), b.data_ptr(), launch.meta, launch.count)
        found.append(result.cpu())
    assert (found[0] - found[1]).abs().max() < 1e-3


@pytest.mark.parametrize(("left", "right"), BYTES)
@pytest.mark.parametrize("terms", [40, 100])
def test_the_forms_of_products_of_bytes_agree(monkeypatch, left, right, terms):
    gpu = weft.device(HERE).backend
    generator = weft.Generator().manual_seed(0)
    a = weft.randint(-9, 9, (70, terms), generator=generator).to(left).to(HERE)
    b = weft.randint(-9, 9, (90, terms), generator=generator).to(right).to(HERE).t()
    scales = [weft.rand(70, 1, generator=generator).to(HERE), weft.rand(1, 90, generator=generator).to(HERE)]
    bias = weft.randn(90, generator=generator).to(HERE, weft.bfloat16)
    found, write = [], narrow_products.narrow_product_ir
    for form in FORMS:
        monkeypatch.setattr(narrow_products, "narrow_product_ir", in_form(form, write))
        with monkeypatch.context() as change:
            change.setattr(gpu.runtime, "small_products", form)
            result = weft.empty(70, 90, device=HERE)
            launch = narrow_products.prepare_narrow_product(
                gpu, a.spec, b.spec, result.spec, tuple(each.spec for each in scales), bias.spec
            )
        given = (result, a, b, *scales, bias)
        launch.entry(*(each.data_ptr() for each in given), launch.meta, launch.count)
        found.append(result.cpu())
    expected = a.cpu().double() @ b.cpu().double() * scales[0].cpu() * scales[1].cpu() + bias.cpu()
    for each in found:  # sums are exact, because the numbers are small integers
        assert (each - expected).abs().max() <= 1e-6 * expected.abs().max()
