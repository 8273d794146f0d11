"""Convolutions and poolings, forward, and forward with backward."""

from bench.cases import Case, Section

SETUP = "F = torch.nn.functional; x = rand(*{x}) - 0.5; w = rand(*{w}) - 0.5; b = rand({w}[0])"

# fmt: off
FORWARD = [  # name                    input               weight            statement
    ("3x3, 64 channels, 56x56",        (8, 64, 56, 56),    (64, 64, 3, 3),   "F.conv2d(x, w, b, padding=1)"),
    ("5x5, 64 channels, 64x64",        (4, 64, 64, 64),    (64, 64, 5, 5),   "F.conv2d(x, w, b, padding=2)"),
    ("1x1, 256 to 64, 28x28",          (8, 256, 28, 28),   (64, 256, 1, 1),  "F.conv2d(x, w, b)"),
    ("7x7 stride 2, 3 to 64, 224x224", (2, 3, 224, 224),   (64, 3, 7, 7),    "F.conv2d(x, w, b, 2, 3)"),
    ("depthwise 3x3, 128, 56x56",      (4, 128, 56, 56),   (128, 1, 3, 3),   "F.conv2d(x, w, b, padding=1, groups=128)"),
    ("1-d, 64 channels, 1024",         (16, 64, 1024),     (64, 64, 5),      "F.conv1d(x, w, b)"),
    ("transposed 4x4 stride 2, 16x16", (8, 64, 16, 16),    (64, 64, 4, 4),   "F.conv_transpose2d(x, w, b, 2, 1)"),
    ("max_pool 2x2",                   (16, 64, 56, 56),   (1,),             "F.max_pool2d(x, 2)"),
    ("avg_pool 2x2",                   (16, 64, 56, 56),   (1,),             "F.avg_pool2d(x, 2)"),
]
BACKWARD = [
    ("3x3, 64 channels, 28x28, backward", (8, 64, 28, 28), (64, 64, 3, 3),   "F.conv2d(x, w, b, padding=1)"),
    ("5x5, 32 channels, 28x28, backward", (8, 32, 28, 28), (32, 32, 5, 5),   "F.conv2d(x, w, b, padding=2)"),
    ("max_pool 2x2, backward",         (16, 64, 56, 56),   (1,),             "F.max_pool2d(x, 2)"),
]
# fmt: on

SECTION = Section(
    "convolution",
    "convolutions and poolings",
    (
        *(Case(name, SETUP.format(x=x, w=w), stmt) for name, x, w, stmt in FORWARD),
        *(
            Case(
                name,
                SETUP.format(x=x, w=w) + "; x.requires_grad_(); w.requires_grad_()",
                f"x.grad = w.grad = None; {stmt}.sum().backward(); x.grad",
            )
            for name, x, w, stmt in BACKWARD
        ),
    ),
    mean=1.0,
    floor=1.0,
    implementations=("torch", "weft"),
)
