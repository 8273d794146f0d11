"""Functions over rows: softmax, normalizations, cross entropy."""

from bench.cases import FLOAT, Case, Section

SETUP = """
F = torch.nn.functional
x = rand({rows}, {columns}); w = rand({columns}); b = rand({columns}); y = integers({columns}, {rows})
"""
IMAGES = """
F = torch.nn.functional
x = rand(32, 64, 28, 28); w = rand(64); b = rand(64); mean = rand(64); var = rand(64)
"""
BACKWARD = "x.requires_grad_(); w.requires_grad_()"
IMAGE_FLOATS = 32 * 64 * 28 * 28

# fmt: off
FUNCTIONS = [  # name         arrays written   statement
    ("softmax",               1,               "F.softmax(x, 1)"),
    ("log_softmax",           1,               "F.log_softmax(x, 1)"),
    ("layer_norm",            1,               "F.layer_norm(x, (x.shape[1],), w, b)"),
    ("rms_norm",              1,               "F.rms_norm(x, (x.shape[1],), w)"),
    ("cross_entropy",         0,               "F.cross_entropy(x, y)"),
]
ONCE = [
    ("softmax dim 0",         1,               "F.softmax(x, 0)"),
    ("normalize",             1,               "F.normalize(x)"),
    ("logsumexp",             0,               "torch.logsumexp(x, 1)"),
]
BACKWARDS = [
    ("softmax",               "F.softmax(x, 1)[0, 0].backward(); x.grad"),
    ("layer_norm",            "F.layer_norm(x, (x.shape[1],), w).sum().backward(); x.grad"),
    ("cross_entropy",         "F.cross_entropy(x, y).backward(); x.grad"),
]
OF_IMAGES = [
    ("batch_norm, training",  "F.batch_norm(x, mean, var, w, b, training=True)"),
    ("batch_norm",            "F.batch_norm(x, mean, var, w, b)"),
    ("group_norm",            "F.group_norm(x, 8, w, b)"),
]
# fmt: on


def case(name: str, written: int, stmt: str, rows: int, columns: int) -> Case:
    size = rows * columns * FLOAT
    setup = SETUP.format(rows=rows, columns=columns)
    return Case(f"{name} {rows}x{columns}", setup, stmt, traffic=(size, written * size))


SECTION = Section(
    "rows",
    "softmax, norms, cross entropy",
    (
        *(case(*row, *shape) for shape in ((1024, 1024), (8192, 512)) for row in FUNCTIONS),
        *(case(*row, 1024, 1024) for row in ONCE),
        *(
            Case(
                f"{name} 1024x1024, backward",
                SETUP.format(rows=1024, columns=1024) + BACKWARD,
                f"x.grad = None; {stmt}",
            )
            for name, stmt in BACKWARDS
        ),
        *(
            Case(f"{name} 32x64x28x28", IMAGES, stmt, traffic=(IMAGE_FLOATS * FLOAT, IMAGE_FLOATS * FLOAT))
            for name, stmt in OF_IMAGES
        ),
    ),
    mean=1.5,
    floor=1.0,
    implementations=("torch", "weft", "limit"),
)
