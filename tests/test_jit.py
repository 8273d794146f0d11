"""torch.jit beside PyTorch with PYTORCH_JIT=0, and reading what PyTorch's TorchScript wrote."""

import json
import os
import subprocess
import sys
import textwrap

import pytest
import torch

import weft
import weft.jit

# What both run. Each line is an expression, or a statement where it says so; `x`, `f`, `module` and the classes are there.
PROLOGUE = """
import json, typing, warnings
from typing import *
warnings.simplefilter("ignore")
nn, jit = torch.nn, torch.jit
def f(x): return x + 1
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(2))
    @jit.export
    def exported(self, x): return x
    @jit.ignore
    def ignored(self, x): return x
    @jit.unused
    def unused(self, x): return x
    def forward(self, x): return x + self.a
class Scripted(jit.ScriptModule):
    __constants__ = ["k"]
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.k = 3
        self.b = jit.Attribute([1], List[int])
    @jit.script_method
    def forward(self, x): return x * self.w
@jit._overload
def over(x: int) -> int: ...
@jit._overload
def over(x: str) -> str: ...
def over(x): return x
@jit.script_if_tracing
def scripted(x): return x
@jit.interface
class Interface:
    def one(self, x: torch.Tensor) -> torch.Tensor: pass
x, module = torch.ones(1, 2), Net()
"""
CASES = """
jit.script(f) is f, jit.script(module) is module, jit.script(Net) is Net, jit.script(3), jit.script([1]), jit.script(None)
jit.trace(f, (x,)) is f, jit.trace(module, x) is module, jit.trace_module(module, {"forward": x}) is module
jit.trace(f) is f, jit.trace(3, x), jit.script(module, example_inputs=[(x,)]) is module
module.exported(x), module.ignored(x), module.unused(x), jit.unused(f) is f, jit.ignore(drop=True)(f) is f, jit._drop(f) is f
jit.ignore(drop=3)
Scripted(), Scripted()(x), Scripted().b, Scripted().k, list(Scripted().state_dict()), isinstance(module, jit.ScriptModule)
jit.freeze(f)
jit.optimize_for_inference(f)
jit.wait(jit.fork(f, x)), type(jit.fork(f, x)).__name__, jit.fork(f, x).done(), jit.fork(f, x).value()
jit.fork(lambda: 1 / 0)
jit.annotate(int, 3), jit.Attribute(3, int), jit.is_scripting(), jit.is_tracing(), bool(jit._state._enabled), over(3), scripted(4)
jit.isinstance([1, 2], List[int]), jit.isinstance([1, "a"], List[int]), jit.isinstance({"a": 1}, Dict[str, int])
jit.isinstance(3, (int, str)), jit.isinstance(None, Optional[int]), jit.isinstance((1, "a"), Tuple[int, str]), jit.isinstance([], List[int])
jit.isinstance([[1], [2]], List[List[int]]), jit.isinstance((1,), Tuple[int, int]), jit.isinstance(3.0, Union[int, str]), jit.isinstance(3, int)
jit.isinstance([], List)
jit.isinstance({}, dict)
jit.set_fusion_strategy([("STATIC", 3)]), jit.set_fusion_strategy([("STATIC", 2), ("DYNAMIC", 10)])
jit.enable_onednn_fusion(True), jit.onednn_fusion_enabled(), jit.last_executed_optimized_graph()
jit.ScriptFunction()
jit.ScriptModule(), jit.RecursiveScriptModule(), Interface.__name__, jit.Final, list(jit._unique_state_dict(module))
issubclass(jit.TracerWarning, Warning), issubclass(jit.Error, Exception), issubclass(jit.ScriptWarning, Warning)
jit.load("/nowhere.pt")
jit.frontend.get_default_args(lambda a, b=1, *, c=2: 0)
[str(jit.annotations.ann_to_type(t, None)) for t in (int, List[int], Optional[torch.Tensor], Dict[str, float], Tuple[int, bool], torch.device)]
torch._jit_internal.boolean_dispatch("flag", 1, False, lambda x, flag=True: "yes", lambda x, flag=False: "no", "m", "n")(1, flag=True)
torch._jit_internal.is_ignored_fn(Net.ignored), torch._jit_internal.should_drop(Net.unused), torch._jit_internal.get_torchscript_modifier(Net.exported)
torch._jit_internal.BroadcastingList2[int]
""".strip().splitlines()
EPILOGUE = """
def outcome(text):
    try:
        return repr(eval(text))
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
print(json.dumps([outcome(text) for text in json.loads(CASES)]))
"""


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    path = tmp_path_factory.mktemp("jit") / "program.py"
    program = f"import torch\nCASES = {json.dumps(CASES)!r}\n{PROLOGUE}{EPILOGUE}"
    environment = {**os.environ, "PYTORCH_JIT": "0", "OMP_NUM_THREADS": "1"}
    path.write_text(program)
    command = [sys.executable, str(path)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(found.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def ours():
    found: list[str] = []
    scope = {"torch": weft, "CASES": json.dumps(CASES), "print": found.append}
    exec(compile(PROLOGUE + EPILOGUE, "<cases>", "exec"), scope)
    return json.loads(found[0].replace("weft.", "torch."))


@pytest.mark.parametrize("place", range(len(CASES)), ids=CASES)
def test_as_pytorch_without_its_compiler(place, theirs, ours):
    assert ours[place] == theirs[place]


def test_frozen_modules_are_the_modules():
    """PyTorch without its compiler refuses what `script` gave back; a program that goes on is of more use."""
    module = weft.nn.Linear(1, 1)
    with pytest.raises(RuntimeError, match="eval"):
        weft.jit.freeze(module)
    assert weft.jit.freeze(module.eval()) is module
    assert weft.jit.optimize_for_inference(module) is module


@pytest.mark.parametrize(
    "call", [lambda m: weft.jit.save(m, "x.pt"), weft.jit.export_opnames, weft.jit._get_trace_graph]
)
def test_what_needs_a_compiler_says_so(call):
    with pytest.raises(NotImplementedError, match="weft"):
        call(weft.nn.Linear(1, 1))
    with pytest.raises(NotImplementedError, match="text"):
        weft.jit.CompilationUnit("def f(x):\n  return x\n")


# ---- Files ---------------------------------------------------------------------------------------------------------------


class Inner(torch.nn.Module):
    names: list[str]

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.arange(4.0))
        self.register_buffer("b", torch.ones(2))
        self.k, self.names, self.none = 5, ["a", "b"], None
        self.sizes = [1, 2]

    def forward(self, x):
        return x * self.w + self.k + len(self.names) + self.sizes[0]

    @torch.jit.export
    def other(self, x):
        return x


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.again = self.inner
        self.seq = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.BatchNorm1d(2))
        self.list = torch.nn.ModuleList([torch.nn.Linear(1, 1, bias=False)])

    def forward(self, x):
        return self.seq(self.inner(x))


@pytest.fixture(scope="module", params=["script", "trace"])
def file(request, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("jit") / "model.pt")
    module = Outer().eval()
    made = (
        torch.jit.script(module) if request.param == "script" else torch.jit.trace(module, torch.ones(3, 4))
    )
    made.save(path, _extra_files={"meta.txt": "hello"})
    return path


def test_torchscript_files_have_their_weights_and_attributes(file):
    extra = {"meta.txt": ""}
    theirs, ours = torch.jit.load(file), weft.jit.load(file, _extra_files=extra)
    assert repr(ours) == repr(theirs)
    assert {name: value.tolist() for name, value in ours.state_dict().items()} == {
        name: value.tolist() for name, value in theirs.state_dict().items()
    }
    for listed in ("named_parameters", "named_buffers", "named_modules"):
        assert [name for name, _ in getattr(ours, listed)()] == [
            name for name, _ in getattr(theirs, listed)()
        ]
    assert [p.requires_grad for p in ours.parameters()] == [p.requires_grad for p in theirs.parameters()]
    assert ours.training == theirs.training is False
    assert ours.original_name == theirs.original_name == "Outer"
    assert ours.again.w is ours.inner.w
    assert ours.code.splitlines()[:2] == theirs.code.splitlines()[:2]
    assert extra == {"meta.txt": b"hello"} or extra == {"meta.txt": "hello"}


def test_attributes_of_scripted_modules(file):
    theirs, ours = torch.jit.load(file), weft.jit.load(file)
    if not hasattr(theirs.inner, "k"):  # a trace keeps none of them
        return
    for name in ("k", "names", "none", "sizes"):
        assert getattr(ours.inner, name) == getattr(theirs.inner, name)
    assert ours.seq[1].eps == 1e-5 if hasattr(type(ours.seq), "__getitem__") else True
    with pytest.raises(NotImplementedError, match="Inner.other"):
        ours.inner.other(1)


def test_loaded_modules_cannot_be_called_but_give_their_state(file):
    ours = weft.jit.load(file, map_location="cpu")
    with pytest.raises(NotImplementedError, match="state_dict"):
        ours(weft.ones(3, 4))
    layer = weft.nn.Linear(4, 2)
    prefix = "seq.0."
    layer.load_state_dict(
        {name[len(prefix) :]: value for name, value in ours.state_dict().items() if name.startswith(prefix)}
    )
    assert weft.equal(layer.weight, getattr(ours.seq, "0").weight)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "weights.pt"
    torch.save({"a": torch.ones(1)}, path)
    with pytest.raises(RuntimeError, match="constants.pkl"):
        weft.jit.load(path)
    path.write_text(textwrap.dedent("no archive"))
    with pytest.raises(RuntimeError, match="zip"):
        weft.jit.load(path)
