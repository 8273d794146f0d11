"""Gamma numbers by rejection: a sampler that draws uniforms and normals until it accepts.

Method: Marsaglia and Tsang 2000, "A simple method for generating gamma variables". The draws and the order of the
tests are those of ATen/native/Distributions.h; every bit is PyTorch's.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable

from ..core.dtype import DType, float32, float64
from ..core.generator import STATE, Generator
from .rejection import compiled_samplers, first_uniform

_OFFSETS = {name: field[1] for name, field in (STATE.fields or {}).items()}


# PyTorch's two constants that are not exact are of float32.
_THIRD, _SQUEEZE = (struct.unpack("<f", struct.pack("<f", value))[0] for value in (1 / 3, 0.0331))


def _hex(value: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


# A standard normal by Box and Muller's method, which makes two: the generator keeps the second for the next call.
_NORMAL = f"""
define internal double @normal(ptr %state) #0 {{
  %pvalid = getelementptr i8, ptr %state, i64 {_OFFSETS["normal_is_valid"]}
  %pkept = getelementptr i8, ptr %state, i64 {_OFFSETS["normal"]}
  %valid = load i32, ptr %pvalid
  %is_kept = icmp ne i32 %valid, 0
  br i1 %is_kept, label %take, label %make
take:
  %kept = load double, ptr %pkept
  store i32 0, ptr %pvalid
  store double 0.0, ptr %pkept
  ret double %kept
make:
  %u1 = call double @uniform(ptr %state, double 0.0, double 0.0)
  %u2 = call double @uniform(ptr %state, double 0.0, double 0.0)
  %negative = fneg double %u2
  %log = call double @log1p(double %negative)
  %square = fmul double %log, -2.0
  %radius = call double @llvm.sqrt.f64(double %square)
  %angle = fmul double %u1, {_hex(2 * math.pi)}
  %sine = call double @sin(double %angle)
  %cosine = call double @cos(double %angle)
  %second = fmul double %radius, %sine
  %first = fmul double %radius, %cosine
  store double %second, ptr %pkept
  store i32 1, ptr %pvalid
  ret double %first
}}
"""

_GAMMA = f"""
define internal double @one(ptr %state, double %shape, double %unused) #0 {{
entry:
  %zero = fcmp oeq double %shape, 0.0
  br i1 %zero, label %none, label %some
none:
  ret double 0.0
some:
  %small = fcmp olt double %shape, 1.0
  br i1 %small, label %boost, label %start
boost:
  %b = call double @uniform(ptr %state, double 0.0, double 0.0)
  %base = fsub double 1.0, %b
  %quotient = fdiv double 1.0, %shape
  %exponent = call double @rounded(double %quotient)
  %boosted = call double @pow(double %base, double %exponent)
  %sum = fadd double %shape, 1.0
  %larger = call double @rounded(double %sum)
  br label %start
start:
  %scale = phi double [1.0, %some], [%boosted, %boost]
  %alpha = phi double [%shape, %some], [%larger, %boost]
  %difference = fsub double %alpha, {_hex(_THIRD)}
  %d = call double @rounded(double %difference)
  %nine = fmul double %d, 9.0
  %root = call double @llvm.sqrt.f64(double %nine)
  %c = fdiv double 1.0, %root
  br label %turn
turn:
  %x = call double @normal(ptr %state)
  %cx = fmul double %c, %x
  %y = fadd double %cx, 1.0
  %outside = fcmp ole double %y, 0.0
  br i1 %outside, label %turn, label %inside
inside:
  %yy = fmul double %y, %y
  %v = fmul double %yy, %y
  %u0 = call double @uniform(ptr %state, double 0.0, double 0.0)
  %u = fsub double 1.0, %u0
  %xx = fmul double %x, %x
  %t = fmul double %xx, {_hex(_SQUEEZE)}
  %tt = fmul double %t, %xx
  %squeeze = fsub double 1.0, %tt
  %quick = fcmp olt double %u, %squeeze
  br i1 %quick, label %accept, label %test
test:
  %left = call double @log(double %u)
  %half = fmul double %xx, 0.5
  %log_v = call double @log(double %v)
  %rest = fsub double 1.0, %v
  %bracket = fadd double %rest, %log_v
  %product = fmul double %d, %bracket
  %right = fadd double %half, %product
  %accepted = fcmp olt double %left, %right
  br i1 %accepted, label %accept, label %turn
accept:
  %scaled = fmul double %scale, %d
  %sample = fmul double %scaled, %v
  ret double %sample
}}
"""

# What is computed from the shape alone has the dtype of the shape.
_ROUNDED = {
    float64: """
define internal double @rounded(double %x) #0 {
  ret double %x
}
""",
    float32: """
define internal double @rounded(double %x) #0 {
  %narrow = fptrunc double %x to float
  %wide = fpext float %narrow to double
  ret double %wide
}
""",
}

_LIBRARY = {
    *(f"declare double @{name}(double)" for name in ("log", "log1p", "sin", "cos", "llvm.sqrt.f64")),
    "declare double @pow(double, double)",
}


@functools.cache
def _gamma(dtype: DType) -> Callable:
    return compiled_samplers((first_uniform,), _NORMAL + _ROUNDED[dtype] + _GAMMA, "gamma", _LIBRARY)


def gamma(generator: Generator, out: int, shapes: int, n: int, dtype: DType) -> None:
    """A gamma number of rate 1 for each shape >= 0: float64 at address `shapes` to float64 at address `out`.

    With float32, what depends on the shape alone is rounded as PyTorch rounds it for tensors of that dtype.
    """
    if n:
        with generator.lock:
            _gamma(dtype)(generator.address, out, shapes, shapes, 0, n)
