"""An image computes what LLVM's linker makes of the same object code."""

import ctypes
import functools
import platform
import sys

import pytest

from weft.engine import code_memory, host, image, tiers

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="images are for Linux on x86-64"
)

CONSTANTS = """
define double @powers(i64 %k) {
switch i64 %k, label %other [i64 0, label %zero
i64 1, label %one
i64 2, label %two
i64 3, label %three
i64 4, label %four]
zero:
ret double 1.5
one:
ret double 2.25
two:
ret double 1.0e300
three:
ret double 3.5
four:
%r = call double @twice(double 4.125)
ret double %r
other:
ret double -1.0
}
define double @twice(double %x) noinline {
%y = fmul double %x, 2.0
ret double %y
}
"""
OUTER = """
@"weft.test.numbers" = external global i8
declare ptr @memset(ptr, i32, i64)
define i64 @second() {
%p = getelementptr i8, ptr @"weft.test.numbers", i64 8
%x = load i64, ptr %p
ret i64 %x
}
define ptr @fill(ptr %to, i64 %n) {
%r = call ptr @memset(ptr %to, i32 7, i64 %n)
ret ptr %r
}
"""
VARIABLE = "@count = global i64 5\ndefine ptr @where() {\nret ptr @count\n}\n"


@functools.cache
def object_code(ir, tier=host.OPTIMIZED):
    return host._object_code(ir, tier)


@pytest.mark.parametrize("tier", [tiers.BASELINE, host.SIMPLIFIED, host.OPTIMIZED])
def test_images_have_their_constants_tables_and_calls(tier):
    code = object_code(CONSTANTS, tier)
    found = image.packed(code)
    assert found is not None
    results = []
    for each in (code, found):
        (address,) = host.link(each, ("powers",))
        function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(address)
        results.append([function(k) for k in range(6)])
    assert results == [[1.5, 2.25, 1.0e300, 3.5, 8.25, -1.0]] * 2


def test_images_refer_to_symbols():
    numbers = (ctypes.c_int64 * 2)(3, 4)
    host.add_symbol("weft.test.numbers", ctypes.addressof(numbers))
    second, fill = host.link(image.packed(object_code(OUTER)), ("second", "fill"))
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(second)() == 4
    room = ctypes.create_string_buffer(4)
    ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64)(fill)(room, 3)
    assert room.raw == b"\7\7\7\0"


def test_an_unknown_symbol_is_named():
    code = image.packed(
        object_code("declare void @nobody()\ndefine void @f() {\ncall void @nobody()\nret void\n}\n")
    )
    with pytest.raises(AttributeError, match="nobody"):
        host.link(code, ("f",))


@pytest.mark.parametrize("ir", [VARIABLE, VARIABLE.replace("5", "0")])
def test_variables_are_left_to_llvm(ir):
    assert image.packed(object_code(ir)) is None
    (where,) = host.link(object_code(ir), ("where",))
    address = ctypes.CFUNCTYPE(ctypes.c_size_t)(where)()
    ctypes.c_int64.from_address(address).value += 1


def test_other_files_are_left_to_llvm(monkeypatch):
    assert image.packed(b"\xcf\xfa\xed\xfe" + bytes(100)) is None
    assert image.unpacked(b"\x7fELF" + bytes(100)) is None
    monkeypatch.setattr(code_memory, "is_supported", lambda: False)
    assert image.packed(object_code(CONSTANTS)) is None


def test_code_is_never_writable_and_executable():
    (address,) = host.link(image.packed(object_code(CONSTANTS)), ("powers",))
    with open("/proc/self/maps") as maps:
        for line in maps:
            start, end = (int(each, 16) for each in line.split()[0].split("-"))
            if start <= address < end:
                assert line.split()[1] == "r-xp"
                return
    raise AssertionError("the code is in no mapping")


def test_large_code_has_a_mapping_of_its_own():
    first = code_memory.reserve(3 << 20)
    second = code_memory.reserve(1)
    assert not first <= second < first + (3 << 20)
    code_memory.place(b"\xc3" * (3 << 20), first)
    ctypes.CFUNCTYPE(None)(first + (2 << 20))()


def test_a_system_that_forbids_it_is_noticed(monkeypatch):
    monkeypatch.setattr(code_memory, "_mprotect", lambda *_: -1)
    assert not code_memory.is_supported.__wrapped__()


@pytest.mark.parametrize(
    "ir, name, result, step, expected",
    [(OUTER, "second", ctypes.c_int64, 8, [4, 5, 6]), (CONSTANTS, "powers", ctypes.c_double, 0, [3.5] * 3)],
)
def test_an_image_may_be_repeated(ir, name, result, step, expected):
    numbers = (ctypes.c_int64 * 4)(3, 4, 5, 6)
    host.add_symbol("weft.test.numbers", ctypes.addressof(numbers))
    found = image.unpacked(image.packed(object_code(ir)))
    many = image.repeated(found, 3, step)
    start = image.loaded(many, host.address_of) + found.functions[name]
    functions = [ctypes.CFUNCTYPE(result, ctypes.c_int64)(start + k * len(many.code) // 3) for k in range(3)]
    assert [each(3) for each in functions] == expected
