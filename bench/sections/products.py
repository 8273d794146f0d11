"""Products of matrices, in float32 and in bfloat16."""

from bench.cases import Case, Section

SETUP = """
a = rand({0}, {1}){cast}; b = rand({1}, {2}){cast}
"""
SIZES = (
    (64, 64, 64),
    (256, 256, 256),
    (512, 512, 512),
    (1024, 1024, 1024),
    (128, 768, 3072),
    (8, 1024, 4096),
)
STACK = "a = rand(64, 128, 64){cast}; b = rand(64, 64, 128){cast}"
LINEAR = "F = torch.nn.functional; x = rand(128, 768){cast}; w = rand(3072, 768){cast}; v = rand(3072){cast}"
VECTOR = "a = rand(2000, 2000){cast}; v = rand(2000){cast}"


def cases(cast: str, numpy: str | None, extra: tuple[tuple[int, int, int], ...] = ()) -> tuple[Case, ...]:
    return (
        *(
            Case(f"{'x'.join(map(str, size))}", SETUP.format(*size, cast=cast), "a @ b", numpy)
            for size in SIZES + extra
        ),
        Case("stack of 64 128x64x128", STACK.format(cast=cast), "a @ b", numpy),
        Case("matrix 2000x2000 by vector", VECTOR.format(cast=cast), "a @ v", numpy and "a @ v"),
        Case("linear with bias, gelu", LINEAR.format(cast=cast), "F.gelu(F.linear(x, w, v))"),
    )


SECTIONS = (
    Section(
        "products float32",
        "products of float32",
        cases("", "a @ b", ((2000, 2000, 2000),)),
        mean=1.0,
        floor=0.9,
        implementations=("torch", "weft", "numpy", "jax"),
    ),
    Section(
        "products bfloat16",
        "products of bfloat16",
        cases(".to(torch.bfloat16)", None),
        mean=1.0,
        floor=0.9,
        implementations=("torch", "weft"),
    ),
)
