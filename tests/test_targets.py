"""Kernels compile for systems where nobody runs the tests (tests/targets.py)."""

from pathlib import Path

import llvmlite.binding as llvm
import object_files
import pytest

from weft.engine import host, objects

TOOL = Path(__file__).with_name("targets.py")
TRIPLES = [
    "x86_64-apple-macosx13.0",
    "arm64-apple-macosx13.0",
    "x86_64-pc-windows-msvc",
    "aarch64-unknown-linux-gnu",
]
PROGRAM = """\
import weft as torch
x = torch.arange(12.0).reshape(3, 4)
print(torch.softmax(x, -1).sum().item(), (x @ x.T)[0, 0].item(), x.half().mean().item(), x.sort(0)[0][0, 0].item())
"""


@pytest.mark.parametrize("triple", TRIPLES)
def test_kernels_compile(run, tmp_path, triple):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run(TOOL, triple, "program.py", WEFT_CACHE_DIR=str(tmp_path / "cache"))
    result, counted = done.stdout.splitlines()
    assert [float(each) for each in result.split()] == pytest.approx([3.0, 14.0, 5.5, 0.0])
    assert int(counted.split()[0]) > 10


CALLS = """
@data = external global i64
declare void @a_function_with_a_long_name(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define internal void @inner() noinline { ret void }
define i64 @called(i64 %n) {
    %room = alloca [9000 x i8]
    call void @llvm.memset.p0.i64(ptr %room, i8 1, i64 %n, i1 false)
    call void @a_function_with_a_long_name(ptr %room)
    call void @inner()
    %value = load i64, ptr @data
    ret i64 %value
}
"""


@pytest.mark.parametrize("triple", TRIPLES)
def test_symbols_that_object_files_need(triple):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(CALLS)
    module.triple = triple
    found = object_files.undefined(
        llvm.Target.from_triple(triple).create_target_machine(jit=True).emit_object(module)
    )
    probe = {"__chkstk"} if "windows" in triple else set()  # of the pages of the stack frame
    assert found == {"data", "a_function_with_a_long_name", "memset"} | probe


def test_a_kernel_that_cannot_be_linked_ends_the_program(run, tmp_path):
    (tmp_path / "program.py").write_text(
        "from weft.engine import host\n"
        "host.compile_ir('declare i64 @getppid()\\n"
        "define i64 @f(i64 %n) {\\n%r = call i64 @getppid()\\nret i64 %r\\n}', 'f')\n"
    )
    done = run(TOOL, TRIPLES[0], "program.py", WEFT_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"{TRIPLES[0]} has no getppid, which a kernel needs:")


def test_functions_of_python_that_machine_code_calls_are_known_to_the_linker():
    assert objects._API.keys() <= set(host._PYTHON_API)
