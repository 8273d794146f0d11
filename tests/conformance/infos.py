"""Tests in the manner of PyTorch's own, of its databases in the wheel: samples of operations, modules and optimizers.

They run on the framework's TestCase, on weft (test_framework.py) and on PyTorch:

    python tests/conformance/run.py tests/conformance/infos.py
"""

import copy
import pickle
import unittest

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db, modules
from torch.testing._internal.common_optimizers import optim_db, optims
from torch.testing._internal.common_utils import TestCase, run_tests

# One operation of each kind of definition that weft has, and of each kind of OpInfo that PyTorch has.
OPS = set(
    "add atan2 sinc clamp where sum var nansum amax logsumexp cumsum cummax sort topk gather scatter_add index_put "
    "masked_fill cat stack roll transpose view as_strided unfold matmul bmm einsum linalg.solve linalg.svd linalg.norm fft.rfft "
    "softmax log_softmax nn.functional.conv2d nn.functional.linear nn.functional.layer_norm nn.functional.cross_entropy "
    "nn.functional.gelu nn.functional.max_pool2d nn.functional.interpolate nn.functional.pad special.i0 nn.functional.embedding "
    "unique searchsorted bincount tril eye arange masked.sum split".split()
)
MODULES = set(
    "Linear Conv2d ConvTranspose1d BatchNorm2d LayerNorm GRU LSTM TransformerEncoderLayer MultiheadAttention Embedding "
    "CrossEntropyLoss CTCLoss MaxPool2d PReLU Bilinear".split()
)
OPTIMIZERS = set("Adam SGD RMSprop LBFGS Rprop".split())

sampled_ops = [op for op in op_db if op.name in OPS]
sampled_modules = [info for info in module_db if info.module_cls.__name__ in MODULES]
sampled_optimizers = [info for info in optim_db if info.optim_cls.__name__ in OPTIMIZERS]


class TestOpInfos(TestCase):
    # NumPy's transforms call the dim "axis", and its variance divides by the number of elements.
    @ops(
        [op for op in sampled_ops if op.ref is not None and "fft" not in op.name and op.name != "var"],
        allowed_dtypes=(torch.float64, torch.int64),
    )
    def test_numpy_reference(self, device, dtype, op):
        sample = next(iter(op.sample_inputs(device, dtype)))
        self.compare_with_reference(op, op.ref, sample, exact_dtype=dtype.is_floating_point)

    # A copy of a view lacks the memory around it, which as_strided may reach.
    @ops([op for op in sampled_ops if op.name != "as_strided"], allowed_dtypes=(torch.float64,))
    def test_method_and_in_place(self, device, dtype, op):
        for sample in list(op.sample_inputs(device, dtype))[:3]:
            expected = op(sample.input, *sample.args, **sample.kwargs)
            if op.get_method() is not None:
                self.assertEqual(op.get_method()(sample.input, *sample.args, **sample.kwargs), expected)
            is_usual = not sample.broadcasts_input and isinstance(expected, torch.Tensor)
            if op.get_inplace() is not None and is_usual and expected.dtype is sample.input.dtype:
                target = sample.input.clone()
                op.get_inplace()(target, *sample.args, **sample.kwargs)
                self.assertEqual(target, expected)

    @ops([op for op in sampled_ops if op.supports_autograd], allowed_dtypes=(torch.float64,))
    def test_gradients(self, device, dtype, op):
        for sample in list(op.sample_inputs(device, dtype, requires_grad=True))[:2]:
            function = op.gradcheck_wrapper

            def call(*inputs, sample=sample, function=function):
                first = inputs[0] if isinstance(sample.input, torch.Tensor) else inputs
                result = function(op, first, *sample.args, **sample.kwargs)
                return sample.output_process_fn_grad(result)

            inputs = (sample.input,) if isinstance(sample.input, torch.Tensor) else tuple(sample.input)
            self.assertTrue(
                torch.autograd.gradcheck(call, inputs, fast_mode=op.gradcheck_fast_mode is not False)
            )

    @ops(sampled_ops, allowed_dtypes=(torch.float32,))
    def test_errors(self, device, dtype, op):
        if op.error_inputs_func is None:
            raise unittest.SkipTest("the database has no wrong calls of this operation")
        for wrong in list(op.error_inputs(device))[:5]:
            sample = wrong.sample_input
            with self.assertRaisesRegex(wrong.error_type, wrong.error_regex):
                op(sample.input, *sample.args, **sample.kwargs)


class TestModuleInfos(TestCase):
    def made(self, info, device, dtype, training):
        for given in info.module_inputs_func(
            info, device=device, dtype=dtype, requires_grad=False, training=training
        ):
            arguments = given.constructor_input
            module = info.module_cls(*arguments.args, **{**arguments.kwargs})
            yield module.to(device).to(dtype).train(training), given

    @modules(sampled_modules, allowed_dtypes=(torch.float64,))
    def test_reference(self, device, dtype, module_info, training):
        for module, given in self.made(module_info, device, dtype, training):
            if given.reference_fn is None or given.forward_input is None:
                continue
            call = given.forward_input
            expected = given.reference_fn(module, *call.args, **call.kwargs)
            self.assertEqual(module(*call.args, **call.kwargs), expected, exact_dtype=False)

    @modules(sampled_modules, allowed_dtypes=(torch.float32,))
    def test_copies_and_pickles(self, device, dtype, module_info, training):
        for module, given in self.made(module_info, device, dtype, training):
            self.assertIsInstance(repr(module), str)
            others = copy.deepcopy(module), pickle.loads(pickle.dumps(module))
            call, results = given.forward_input, []
            for each in (module, *others):
                self.assertEqual(each.state_dict(), module.state_dict())
                if call is not None:
                    torch.manual_seed(0)
                    results.append(copy.deepcopy(each)(*call.args, **call.kwargs))
            for result in results[1:]:
                self.assertEqual(result, results[0])


class TestOptimizerInfos(TestCase):
    def steps(self, info, given, **options):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3, dtype=torch.float64)
        optimizer = info.optim_cls(model.parameters(), **{**given.kwargs, **options})
        x, y = torch.randn(5, 4, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)

        def closure():
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return model, optimizer, closure

    @optims(sampled_optimizers, dtypes=[torch.float64])
    def test_all_implementations_agree(self, device, dtype, optim_info):
        for given in optim_info.optim_inputs_func(device=device):
            if given.kwargs.get("fused") or given.kwargs.get("capturable"):
                continue
            expected = self.steps(optim_info, given)[0].state_dict()
            for implementation in optim_info.supported_impls:
                if implementation in ("foreach", "differentiable") and implementation not in given.kwargs:
                    got = self.steps(optim_info, given, **{implementation: implementation == "foreach"})
                    self.assertEqual(got[0].state_dict(), expected)

    @optims(sampled_optimizers, dtypes=[torch.float64])
    def test_a_state_that_was_loaded_goes_on(self, device, dtype, optim_info):
        for given in optim_info.optim_inputs_func(device=device):
            if given.kwargs.get("fused") or given.kwargs.get("capturable"):
                continue
            model, optimizer, closure = self.steps(optim_info, given)
            other, again, closure_of_other = self.steps(optim_info, given)
            again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
            optimizer.step(closure)
            again.step(closure_of_other)
            self.assertEqual(other.state_dict(), model.state_dict())


instantiate_device_type_tests(TestOpInfos, globals(), only_for="cpu")
instantiate_device_type_tests(TestModuleInfos, globals(), only_for="cpu")
instantiate_device_type_tests(TestOptimizerInfos, globals(), only_for="cpu")

if __name__ == "__main__":
    run_tests()
