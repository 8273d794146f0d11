"""Switches of libraries that weft does not use: they keep what they are given, and answer as PyTorch's CPU build."""

import pytest
from expressions import check, lines

EXPRESSIONS = """
torch.backends.cuda.is_built()
torch.backends.cuda.matmul.allow_tf32, torch.backends.cuda.matmul.allow_fp16_accumulation
setattr(torch.backends.cuda.matmul, 'nonsense', 1)  # raises
torch.backends.cuda.cufft_plan_cache.size  # raises
torch.backends.cuda.cufft_plan_cache[0]  # raises
torch.backends.cuda.is_flash_attention_available(), torch.backends.cuda.is_ck_sdpa_available()
torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
torch.backends.cuda.preferred_linalg_library('nonsense')  # raises
torch.backends.cuda.preferred_linalg_library().name
torch.backends.mha.get_fastpath_enabled(), torch.backends.mha.set_fastpath_enabled(True)
torch.backends.cusparselt.is_available(), torch.backends.cusparselt.version(), torch.backends.cusparselt.get_max_alg_id()
torch.backends.kleidiai.is_available()
torch.backends.mkl.VERBOSE_ON, torch.backends.mkl.VERBOSE_OFF
torch.backends.python_native.is_operation_disabled('aten::mm')
torch.backends.miopen.immediate

"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_like_pytorch(expression):
    check(expression)


def test_switches_are_kept():
    import weft

    with pytest.warns(FutureWarning), weft.backends.cuda.sdp_kernel(enable_math=False):
        assert not weft.backends.cuda.math_sdp_enabled()
    assert weft.backends.cuda.math_sdp_enabled()
    weft.backends.cuda.matmul.allow_tf32 = True
    assert weft.backends.cuda.matmul.allow_tf32
    weft.backends.cuda.matmul.allow_tf32 = False
    with weft.backends.python_native.operations_disabled("aten::mm"):
        assert weft.backends.python_native.is_operation_disabled("aten::mm")
    assert not weft.backends.python_native.is_operation_disabled("aten::mm")


def test_the_launcher_runs_a_program(tmp_path, capsys):
    from weft.backends.xeon import run_cpu

    (tmp_path / "program.py").write_text("import sys; print(sys.argv[1:])")
    run_cpu.main(["--throughput-mode", str(tmp_path / "program.py"), "--lr", "1"])
    assert capsys.readouterr().out == "['--lr', '1']\n"
