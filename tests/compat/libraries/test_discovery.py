"""einops and opt_einsum work on tensors, whichever is imported first, beside PyTorch and without it."""

import sys

import numpy as np
import pytest
import torch

import weft
from weft.core.when_imported import when_imported


class TestEinops:
    @pytest.fixture(autouse=True)
    def library(self):
        self.einops = pytest.importorskip("einops")

    @pytest.mark.parametrize(
        "call",
        [
            "rearrange(x, 'a b c -> (c a) b')",
            "rearrange(x, '(a d) b c -> a b (d c)', d=2)",
            "rearrange([x, x], 'n a b c -> a (n b) c')",
            "reduce(x, 'a b c -> b', 'mean')",
            "reduce(x, 'a b c -> a () c', 'max')",
            "reduce(x, 'a b c -> c', 'prod')",
            "reduce(x > 3, 'a b c -> c', 'any')",
            "repeat(x, 'a b c -> a b c d', d=2)",
            "repeat(x, 'a b c -> a (b n) c', n=3)",
            "einsum(x, x, 'a b c, a b d -> c d')",
            "pack([x, x[:, :, 0]], 'a b *')[0]",
            "unpack(x, [[1], [2]], 'a b *')",
            "parse_shape(x, 'a b _')",
            "asnumpy(x)",
            "rearrange(x, 'a b -> b a')",
        ],
    )
    def test_same_as_torch(self, call):
        results = []
        for library in (weft, torch):
            x = library.arange(24.0).reshape(2, 4, 3)
            try:
                result = eval(f"einops.{call}", {"einops": self.einops, "x": x})
            except Exception as error:
                results.append(type(error))
                continue
            many = result if isinstance(result, list) else [result]
            results.append([each.tolist() if hasattr(each, "tolist") else each for each in many])
            assert all(type(each) in (library.Tensor, np.ndarray, dict) for each in many)
        assert results[0] == results[1]

    def test_gradients_and_parameters(self):
        parameter = weft.nn.Parameter(weft.ones(2, 3))
        self.einops.reduce(parameter, "a b -> b", "sum").pow(2).sum().backward()
        assert parameter.grad.tolist() == [[4, 4, 4], [4, 4, 4]]

    def test_layers_under_weft_run(self, run_weft, tmp_path):
        (tmp_path / "program.py").write_text(
            "import torch\n"
            "from einops.layers.torch import EinMix, Rearrange, Reduce\n"
            "net = torch.nn.Sequential(\n"
            "    Rearrange('b c (h i) -> b (c i) h', i=2), Reduce('b c h -> b c', 'max'),\n"
            "    EinMix('b c -> b d', weight_shape='c d', bias_shape='d', c=6, d=5))\n"
            "x = torch.ones(2, 3, 4, requires_grad=True)\n"
            "net(x).sum().backward()\n"
            "print(net(x).shape, x.grad.shape, len(list(net.parameters())))\n"
        )
        done = run_weft("run", "program.py")
        assert done.stdout == "torch.Size([2, 5]) torch.Size([2, 3, 4]) 2\n", done.stderr


ORDERS = {
    "weft first": "import weft, {0}",
    "weft last": "import {0}, weft",
    "in one go": "import {0}; {0}.__doc__; import weft",
}
CALLS = {
    "einops": "einops.rearrange(weft.ones(2, 3), 'a b -> b a').shape",
    "opt_einsum": "opt_einsum.contract('ab,bc,cd->ad', *[weft.ones(2, 2)] * 3).shape",
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("library", CALLS)
def test_neither_order_of_imports_nor_torch_matters(run, library, order):
    pytest.importorskip(library)
    program = (
        f"{ORDERS[order].format(library)}\nimport sys\nprint(len({CALLS[library]}), 'torch' in sys.modules)"
    )
    done = run("-c", program)
    assert done.stdout == "2 False\n", done.stderr


class TestOptEinsum:
    @pytest.fixture(autouse=True)
    def library(self):
        self.opt_einsum = pytest.importorskip("opt_einsum")

    def test_both_libraries_side_by_side(self):
        for library in (weft, torch, weft):
            a, b, c = (library.arange(6.0).reshape(2, 3) for _ in range(3))
            result = self.opt_einsum.contract("ij,kj,kl->il", a, b, c)
            assert type(result) is library.Tensor
            assert result.tolist() == [[42.0, 61.0, 80.0], [150.0, 214.0, 278.0]]

    @pytest.mark.parametrize("equation", ["ab,ab->ab", "ab,ab->", "ab,cb->a"])
    def test_steps_that_are_no_product_of_matrices(self, equation):
        results = []
        for library in (weft, torch):
            x = library.arange(6.0).reshape(2, 3)
            results.append(self.opt_einsum.contract(equation, x, x))
            assert type(results[-1]) is library.Tensor
        assert results[0].tolist() == results[1].tolist()

    def test_labels_beyond_letters(self):
        labels = [self.opt_einsum.get_symbol(n) for n in (60, 61, 62)]
        equation = f"{labels[0]}{labels[1]},{labels[1]}{labels[2]}->{labels[2]}{labels[0]}"
        assert self.opt_einsum.contract(equation, weft.ones(2, 3), weft.ones(3, 4)).shape == (4, 2)

    def test_constants(self):
        for library in (weft, torch):
            expression = self.opt_einsum.contract_expression(
                "ab,bc,cd->ad", library.ones(2, 3), (3, 4), library.ones(4, 5), constants=[0, 2]
            )
            assert expression(library.ones(3, 4)).tolist() == [[12.0] * 5] * 2

    def test_arrays_computed_by_torch(self):
        expression = self.opt_einsum.contract_expression("ab,bc->ac", (2, 3), (3, 2))
        result = expression(np.ones((2, 3)), np.ones((3, 2)), backend="torch")
        assert type(result) is np.ndarray and result.tolist() == [[3, 3], [3, 3]]

    def test_gradients(self):
        x = weft.ones(2, 3, requires_grad=True)
        self.opt_einsum.contract("ab,ab,bc->", x, x, weft.ones(3, 2)).backward()
        assert x.grad.tolist() == [[4.0] * 3] * 2


def test_actions_run_once_after_the_import(tmp_path, monkeypatch):
    (tmp_path / "weft_test_neighbour.py").write_text("ready = True")
    monkeypatch.syspath_prepend(tmp_path)
    seen = []
    when_imported("weft_test_neighbour", lambda module: seen.append(module.ready))
    assert seen == []
    import weft_test_neighbour  # noqa: F401

    assert seen == [True]
    when_imported("weft_test_neighbour", lambda module: seen.append(module))
    assert seen == [True, sys.modules.pop("weft_test_neighbour")]


def test_other_versions_are_imported_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "weft_test_neighbour.py").write_text("ready = True")
    monkeypatch.syspath_prepend(tmp_path)
    when_imported("weft_test_neighbour", lambda module: module.something_else)
    with pytest.warns(RuntimeWarning, match="this version of weft_test_neighbour"):
        import weft_test_neighbour
    assert sys.modules.pop("weft_test_neighbour") is weft_test_neighbour
