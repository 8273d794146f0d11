"""The code of kernels for AMD's GPUs is made and linked, and read as HIP's loader reads it. No driver takes part.

Where LLVM's tools are (`ld.lld`, `llvm-objdump`; Debian's packages lld and llvm), they link and disassemble the same objects.
"""

import re
import shutil
import struct
import subprocess
import warnings
from typing import NamedTuple

import pytest

from weft.devices._gpu import code
from weft.devices._gpu.code import compiled
from weft.devices._gpu.linking import linked
from weft.devices._gpu.target import AMDGPU, THREADS

# Each is given every sixth kernel of the recorded ones. Those from gfx1030 on have waves of 32 threads, the others of 64.
PROCESSORS = ["gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1200"]

TABLES = """
@first = private unnamed_addr addrspace(4) constant [4 x i64] [i64 11, i64 12, i64 13, i64 14]
@second = internal addrspace(4) constant [3 x i64] [i64 21, i64 22, i64 23]
""" + AMDGPU.kernel(
    ["start", "i"],
    [
        "%p = inttoptr i64 %start to ptr addrspace(1)",
        "%a = getelementptr i64, ptr addrspace(4) @first, i64 %i",
        "%b = getelementptr i64, ptr addrspace(4) @second, i64 %i",
        "%x = load i64, ptr addrspace(4) %a",
        "%y = load i64, ptr addrspace(4) %b",
        "%z = add i64 %x, %y",
        "store i64 %z, ptr addrspace(1) %p",
    ],
)


# ---- Reading ELF, as HIP's loader does ---------------------------------------------------------------------------------


class Symbol(NamedTuple):
    address: int
    size: int
    section: int


class Loaded(NamedTuple):
    """A shared object whose segments are in memory."""

    ident: bytes
    kind: int
    machine: int
    flags: int
    memory: bytes
    sections: dict  # name: (kind, address, content)
    symbols: dict  # name: Symbol
    dynamic: dict  # tag: value
    metadata: dict

    def descriptor(self):
        return self.memory[self.symbols["kernel.kd"].address :][:64]

    def entry(self):
        """The address that the processor jumps to."""
        (distance,) = struct.unpack_from("<q", self.descriptor(), 16)
        return self.symbols["kernel.kd"].address + distance

    def code(self):
        kernel = self.symbols["kernel"]
        return self.memory[kernel.address : kernel.address + kernel.size]


def text(strings, start):
    return strings[start : strings.index(b"\0", start)].decode()


def sections_of(image):
    start, (size, count, names) = struct.unpack_from("<Q", image, 40)[0], struct.unpack_from("<3H", image, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, start + size * k) for k in range(count)]
    content = [
        image[place : place + length] if kind != 8 else b"" for _, kind, _, _, place, length, *_ in headers
    ]
    return {
        text(content[names], name): (kind, address, bytes_, content[link] if link < count else b"")
        for (name, kind, _, address, _, _, link, *_), bytes_ in zip(headers, content, strict=True)
    }


def symbols_in(table, strings):
    fields = list(struct.iter_unpack("<IBBHQQ", table))
    assert fields[0] == (0,) * 6
    return {text(strings, name): Symbol(value, size, at) for name, _, _, at, value, size in fields[1:]}


def segments_of(image):
    (start,), (size, count) = struct.unpack_from("<Q", image, 32), struct.unpack_from("<HH", image, 54)
    return [struct.unpack_from("<IIQQQQQQ", image, start + size * k) for k in range(count)]


def loaded(image):
    ident, kind, machine = image[:16], *struct.unpack_from("<HH", image, 16)
    segments = segments_of(image)
    memory = bytearray(max(address + length for _, _, _, address, _, _, length, _ in segments))
    for type_, _, place, address, _, length, _, align in segments:
        if type_ == 1:
            assert place % align == address % align
            memory[address : address + length] = image[place : place + length]
    sections = sections_of(image)
    ((note, length),) = ((place, length) for type_, _, place, _, _, length, *_ in segments if type_ == 4)
    ((dynamic, size),) = ((address, length) for type_, _, _, address, _, length, *_ in segments if type_ == 2)
    return Loaded(
        ident,
        kind,
        machine,
        struct.unpack_from("<I", image, 48)[0],
        bytes(memory),
        {name: each[:3] for name, each in sections.items()},
        symbols_in(*sections[".symtab"][2:]),
        dict(struct.iter_unpack("<QQ", memory[dynamic : dynamic + size])),
        metadata_of(image[note : note + length]),
    )


def metadata_of(note):
    name, length, kind = struct.unpack_from("<III", note)
    assert (note[12 : 12 + name], kind) == (b"AMDGPU\0", 32)  # NT_AMDGPU_METADATA
    start = 12 + -(-name // 4) * 4
    value, end = unpacked(note, start)
    assert end == start + length
    return value


def unpacked(data, at):
    """(the value of MessagePack at a place, where it ends), for the kinds that notes have. Source: msgpack/spec.md."""
    first = data[at]
    if first < 0x80:
        return first, at + 1
    if first in (0xC2, 0xC3):
        return first == 0xC3, at + 1
    if first in (0xCC, 0xCD, 0xCE, 0xCF):
        width = 1 << first - 0xCC
        return int.from_bytes(data[at + 1 : at + 1 + width], "big"), at + 1 + width
    if 0xA0 <= first < 0xC0 or first in (0xD9, 0xDA):
        width = {0xD9: 1, 0xDA: 2}.get(first, 0)
        length = int.from_bytes(data[at + 1 : at + 1 + width], "big") if width else first & 31
        at += 1 + width
        return data[at : at + length].decode(), at + length
    width = {0xDC: 2, 0xDE: 2}.get(first, 0)
    count = int.from_bytes(data[at + 1 : at + 1 + width], "big") if width else first & 15
    at += 1 + width
    is_map = first & 0xF0 == 0x80 or first == 0xDE
    assert is_map or first & 0xF0 == 0x90 or first == 0xDC, hex(first)
    items = []
    for _ in range(2 * count if is_map else count):
        item, at = unpacked(data, at)
        items.append(item)
    return (dict(zip(items[::2], items[1::2], strict=True)) if is_map else items), at


def object_of(ir, processor):
    """The object of LLVM, and what the linker makes of it, loaded."""
    relocatable = compiled(AMDGPU, ir, processor)
    return relocatable, loaded(linked(relocatable))


# ---- Kernels of all kinds ----------------------------------------------------------------------------------------------


def checked(ir, processor):
    """The facts in the note about a kernel, whose shared object is right."""
    relocatable, found = object_of(ir, processor)
    (kernel,) = found.metadata["amdhsa.kernels"]
    assert found.ident[:9] == b"\x7fELF\x02\x01\x01\x40\x03"  # 64 bits, AMD's HSA, code objects of version 5
    assert (found.kind, found.machine) == (3, 224)
    assert found.flags == struct.unpack_from("<I", relocatable, 48)[0]  # the processor
    assert found.metadata["amdhsa.target"] == f"amdgcn-amd-amdhsa--{processor}"
    _check_descriptor(found, kernel)
    _check_arguments(found, kernel, len(re.search(r"@kernel\((.*?)\)", ir)[1].split(",")))
    _check_names(found)
    for name, (_, address, content) in found.sections.items():  # all with an address are in a segment
        assert not address or found.memory[address : address + len(content)] == content, name
    before = sections_of(relocatable)
    if ".rela.text" not in before:
        assert found.code() == before[".text"][2][: found.symbols["kernel"].size]
    return kernel


def _check_descriptor(found, kernel):
    descriptor, symbol = found.descriptor(), found.symbols["kernel.kd"]
    assert symbol.address % 64 == 0 and symbol.size == 64
    assert found.entry() == found.symbols["kernel"].address and found.entry() % 256 == 0
    assert list(found.sections)[symbol.section] == ".rodata"
    assert list(found.sections)[found.symbols["kernel"].section] == ".text"
    assert struct.unpack_from("<3I", descriptor) == (
        kernel[".group_segment_fixed_size"],
        kernel[".private_segment_fixed_size"],
        kernel[".kernarg_segment_size"],
    )
    assert kernel[".group_segment_fixed_size"] <= 64 << 10  # what each of these processors has
    # Floats round to the nearest and have denormal numbers.
    assert struct.unpack_from("<I", descriptor, 48)[0] >> 12 & 0xFF == 0xF0


def _check_arguments(found, kernel, count):
    given = kernel[".args"][:count]
    assert [(each[".offset"], each[".size"]) for each in given] == [(8 * k, 8) for k in range(count)]
    assert {each[".value_kind"] for each in given} == {"by_value"}
    hidden = {each[".value_kind"]: each[".offset"] for each in kernel[".args"][count:]}
    assert hidden.get("hidden_block_count_x", 8 * count) == 8 * count  # where @groups reads
    assert (kernel[".name"], kernel[".symbol"]) == ("kernel", "kernel.kd")
    assert kernel[".max_flat_workgroup_size"] == THREADS


def _check_names(found):
    """Both tables have the symbols, and the hash table finds each."""
    symbols = found.dynamic[6]
    count = struct.unpack_from("<4I", found.memory, found.dynamic[4])[1]
    strings = found.memory[found.dynamic[5] :][: found.dynamic[10]]
    dynamic = symbols_in(found.memory[symbols:][: 24 * count], strings)
    assert dynamic == found.symbols and set(dynamic) == {"kernel", "kernel.kd"}
    assert all(found_by_hash(found, name) == at for at, name in enumerate(dynamic, 1))


def found_by_hash(found, name):
    """The number of a symbol in the dynamic table. Source: System V ABI, chapter 5."""
    value = 0
    for letter in name.encode():
        value = (value << 4) + letter
        value = (value ^ (value >> 24 & 0xF0)) & 0x0FFFFFFF
    words = found.memory[found.dynamic[4] :]
    buckets, count = struct.unpack_from("<2I", words)
    at = struct.unpack_from("<I", words, 8 + 4 * (value % buckets))[0]
    strings = found.memory[found.dynamic[5] :]
    for _ in range(count):
        if text(strings, struct.unpack_from("<I", found.memory, found.dynamic[6] + 24 * at)[0]) == name:
            return at
        at = struct.unpack_from("<I", words, 8 + 4 * (buckets + at))[0]
    raise AssertionError(f"the chain of {name} does not have it")


def sample(kernels, processor):
    return kernels[PROCESSORS.index(processor) :: len(PROCESSORS)]


@pytest.mark.parametrize("processor", PROCESSORS)
def test_kernels_of_all_kinds_are_linked(processor, kernels):
    for name, each in sample(kernels, processor):
        kernel = checked(each["amdgpu"], processor)
        assert kernel[".wavefront_size"] == (32 if processor.startswith("gfx1") else 64)
        if kernel[".vgpr_spill_count"] or kernel[".private_segment_fixed_size"]:
            warnings.warn(f"{processor}: a kernel of {name} spills registers: {kernel}", stacklevel=1)


# ---- The linker --------------------------------------------------------------------------------------------------------


GET_PC = {
    "gfx90a": rb"\x00\x1c.\xbe",
    "gfx1200": rb"\x00\x47.\xbe",
}  # s_getpc_b64: the address of the next instruction


@pytest.mark.parametrize("processor", GET_PC)
def test_code_finds_its_tables(processor):
    checked(TABLES, processor)
    relocatable, found = object_of(TABLES, processor)
    relocations = struct.iter_unpack("<QQq", sections_of(relocatable)[".rela.text"][2])
    distances = [struct.unpack_from("<I", found.code(), place)[0] for place, _, _ in relocations]
    addresses = [
        found.entry() + match.end() for match in re.finditer(GET_PC[processor], found.code(), re.DOTALL)
    ]
    # Code adds a distance to such an address, its low word and its high one.
    pairs = zip(addresses, distances[::2], distances[1::2], strict=True)
    tables = [(address + (high << 32 | low)) % (1 << 64) for address, low, high in pairs]
    assert [struct.unpack_from("<3q", found.memory, table) for table in tables] == [
        (11, 12, 13),
        (21, 22, 23),
    ]


def test_an_object_that_calls_a_function_is_refused():
    ir = "declare void @elsewhere()\n" + AMDGPU.kernel(["start"], ["call void @elsewhere()"])
    with pytest.raises(NotImplementedError, match="elsewhere"):
        linked(compiled(AMDGPU, ir))


def test_an_object_with_variables_is_refused():
    ir = "@variable = internal addrspace(1) global i64 5\n" + AMDGPU.kernel(
        ["start"], ["store volatile i64 1, ptr addrspace(1) @variable"]
    )
    with pytest.raises(NotImplementedError, match="variables"):
        linked(compiled(AMDGPU, ir))


# ---- Instructions ------------------------------------------------------------------------------------------------------


def assembly(ir, processor):
    """What LLVM writes for the same module instead of an object."""
    machine = code._machine(AMDGPU, processor, "")
    return machine.emit_assembly(code._optimized(machine, code._text(AMDGPU, machine, ir)))


def of_two_floats(*lines):
    """A kernel that stores %z, computed of %x and %y, which it loads."""
    head = [f"%{p} = inttoptr i64 %{a} to ptr addrspace(1)" for p, a in (("p", "a"), ("q", "b"))]
    loads = ["%i = call i32 @llvm.amdgcn.workitem.id.x()"]
    for pointer, place, value in (("p", "s", "x"), ("q", "t", "y")):
        loads.append(f"%{place} = getelementptr float, ptr addrspace(1) %{pointer}, i32 %i")
        loads.append(f"%{value} = load float, ptr addrspace(1) %{place}")
    return "declare float @llvm.sqrt.f32(float)\n" + AMDGPU.kernel(
        ["a", "b"], [*head, *loads, *lines, "store float %z, ptr addrspace(1) %s"]
    )


@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_product_and_a_sum_are_rounded_both(processor):
    found = assembly(of_two_floats("%m = fmul float %x, %y", "%z = fadd float %m, %x"), processor)
    assert re.search(r"v_mul_f32|v_dual_mul_f32", found) and re.search(r"v_add_f32|v_dual_add_f32", found)
    assert not re.search(r"f(ma|mac|mad|mamk|maak)\w*_f32|_ma[cd]_f32", found)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_quotients_and_roots_are_rounded_correctly(processor):
    """The instructions alone are off by a bit: v_rcp_f32 and v_sqrt_f32 are followed by steps that correct them."""
    quotient = assembly(of_two_floats("%z = fdiv float %x, %y"), processor)
    assert (
        quotient.count("v_div_scale_f32") == 2
        and "v_div_fmas_f32" in quotient
        and "v_div_fixup_f32" in quotient
    )
    root = assembly(of_two_floats("%z = call float @llvm.sqrt.f32(float %x)"), processor)
    assert "v_sqrt_f32" in root and len(re.findall(r"v_fma_f32|v_fmac_f32", root)) >= 2


@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_barrier_waits_for_what_was_stored(processor):
    room = "@room = internal addrspace(3) global [256 x i32] undef\n"
    ir = room + AMDGPU.kernel(
        ["start", "n"],
        [
            f"%i = {AMDGPU.thread}",
            "%mine = getelementptr i32, ptr addrspace(3) @room, i32 %i",
            "store i32 %i, ptr addrspace(3) %mine",
            AMDGPU.barrier,
            "%other = xor i32 %i, 255",
            "%theirs = getelementptr i32, ptr addrspace(3) @room, i32 %other",
            "%x = load i32, ptr addrspace(3) %theirs",
            "%p = inttoptr i64 %start to ptr addrspace(1)",
            "%q = getelementptr i32, ptr addrspace(1) %p, i32 %i",
            "store i32 %x, ptr addrspace(1) %q",
        ],
    )
    found = assembly(ir, processor)
    store, barrier, load = (
        re.search(each, found).start()
        for each in (r"ds_(write|store)_b32", r"s_barrier", r"ds_(read|load)_b32")
    )
    assert store < barrier < load and "s_wait" in found[store:barrier]


# ---- LLVM's tools, where they are --------------------------------------------------------------------------------------


def tool(name):
    """The path of a tool of LLVM 19 or newer, which knows these processors."""
    for path in map(shutil.which, (*(f"{name}-{version}" for version in range(25, 18, -1)), name)):
        if path:
            said = subprocess.run([path, "--version"], check=True, capture_output=True, text=True).stdout
            if int(re.search(r"(?:LLD|version) (\d+)", said)[1]) >= 19:
                return path
    return pytest.skip(f"no {name} of LLVM 19 or newer")


def instructions(objdump, path):
    """What `llvm-objdump` reads in the code of a shared object, without addresses."""
    done = subprocess.run([objdump, "-d", path], check=True, capture_output=True, text=True)
    lines = [line.partition("//")[0].strip() for line in done.stdout.partition("<kernel>:")[2].splitlines()]
    return [re.sub(r"<.*>", "", line) for line in lines if line]


@pytest.mark.parametrize("processor", PROCESSORS)
def test_lld_links_the_same(processor, kernels, tmp_path):
    lld, objdump = tool("ld.lld"), tool("llvm-objdump")
    ours, theirs = tmp_path / "ours.so", tmp_path / "theirs.so"
    for ir in [TABLES, *(each["amdgpu"] for _, each in sample(kernels, processor)[::3])]:
        relocatable = compiled(AMDGPU, ir, processor)
        (tmp_path / "kernel.o").write_bytes(relocatable)
        subprocess.run([lld, "-shared", tmp_path / "kernel.o", "-o", theirs], check=True)
        ours.write_bytes(linked(relocatable))
        found, expected = loaded(ours.read_bytes()), loaded(theirs.read_bytes())
        assert found.metadata == expected.metadata and found.flags == expected.flags
        assert found.descriptor()[:16] == expected.descriptor()[:16]
        assert found.descriptor()[24:] == expected.descriptor()[24:]
        if ir is TABLES:
            continue  # the distances to the tables differ
        assert found.code() == expected.code()
        read = instructions(objdump, ours)
        assert read == instructions(objdump, theirs) and "s_endpgm" in read and "<unknown>" not in read
