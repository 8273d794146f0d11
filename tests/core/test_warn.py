import ast
import contextlib
import warnings
from pathlib import Path

import pytest

import weft
from weft import nn

PACKAGE = Path(weft.__file__).parent


def test_every_warning_refers_to_the_user_s_line():
    others = []
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if "warn(" not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in ("warn", "warnings.warn"):
                levels = [ast.unparse(each.value) for each in call.keywords if each.arg == "stacklevel"]
                if levels != ["user_level()"]:
                    others.append(f"{path.relative_to(PACKAGE)}:{call.lineno}")
    assert others == []


def optimizer_steps():
    """A scheduler that steps before its optimizer."""
    optimizer = weft.optim.SGD([weft.ones(2, requires_grad=True)], lr=0.1)
    scheduler = weft.optim.lr_scheduler.StepLR(optimizer, 1)
    scheduler.step()
    return optimizer, scheduler


def in_context():
    with contextlib.ExitStack() as stack:
        stack.enter_context(weft.amp.autocast("cpu", dtype=weft.float64))


CALLS = {
    "a function": lambda: nn.functional.mse_loss(weft.ones(3, 1), weft.ones(4)),
    "a layer": lambda: nn.MSELoss()(weft.ones(3, 1), weft.ones(4)),
    "layers in a layer": lambda: nn.Sequential(nn.Sequential(nn.Softmax()))(weft.ones(2, 2)),
    "a constructor": lambda: nn.LSTM(2, 2, 1, dropout=0.5),
    "a constructor that calls another": lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(4, 1), 1, enable_nested_tensor=True
    ),
    "a scheduler": optimizer_steps,
    "a context": in_context,
    "an old name": lambda: nn.init.uniform(weft.empty(2)),
    "an old argument": lambda: nn.MSELoss(size_average=True),
    "clipping nothing": lambda: nn.utils.clip_grad_norm_((each for each in ()), 1.0),
    "an old function": lambda: weft.nn.utils.weight_norm(nn.Linear(2, 2)),
    "a sampler": lambda: weft.distributions.Normal(0.0, 1.0).sample_n(2),
}


@pytest.mark.parametrize("what", CALLS)
def test_warnings_name_this_file(what):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[what]()
    assert caught
    assert {each.filename for each in caught} == {__file__}, [str(each.message) for each in caught]


def test_a_subclass_of_the_user_s():
    class Loss(nn.MSELoss):
        def forward(self, input, target):
            return super().forward(input, target)  # line of the warning

    with pytest.warns(UserWarning, match="target size") as caught:
        Loss()(weft.ones(3, 1), weft.ones(4))
    line = Path(__file__).read_text().splitlines()[caught[0].lineno - 1]
    assert line.endswith("# line of the warning")
