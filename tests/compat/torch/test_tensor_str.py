"""`torch._tensor_str`."""

import torch._tensor_str

import weft
import weft._tensor_str


def test_as_in_pytorch():
    def program(lib):
        module = lib._tensor_str
        x = lib.tensor([1.23456, 2.0])
        before = module.PRINT_OPTS.precision
        with module.printoptions(precision=2):
            short = module._str(x), module.PRINT_OPTS.precision
        return before, short, module._str(x), module._str(x, tensor_contents="..."), module.get_printoptions()

    assert program(weft) == program(torch)
    assert weft._tensor_str.tensor_totype(weft.ones(1)).dtype is weft.float64
