"""`torch.utils._dtype_abbrs`: short names of dtypes, as PyTorch's graphs print them."""

from ..core import dtype as dt

dtype_abbrs = {
    dt.bfloat16: "bf16",
    dt.float64: "f64",
    dt.float32: "f32",
    dt.float16: "f16",
    dt.float8_e4m3fn: "f8e4m3fn",
    dt.float8_e5m2: "f8e5m2",
    dt.float8_e4m3fnuz: "f8e4m3fnuz",
    dt.float8_e5m2fnuz: "f8e5m2fnuz",
    dt.complex32: "c32",
    dt.complex64: "c64",
    dt.complex128: "c128",
    dt.int8: "i8",
    dt.int16: "i16",
    dt.int32: "i32",
    dt.int64: "i64",
    dt.bool_: "b8",
    dt.uint8: "u8",
    dt.uint16: "u16",
    dt.uint32: "u32",
    dt.uint64: "u64",
}
