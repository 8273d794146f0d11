"""Lines that type checkers must refuse, each for one mistake. tests/test_types.py runs mypy over them."""

import weft as torch
import weft.nn.functional as F
from weft import nn

x = torch.rand(2, 3)
# Each line from here on is wrong.
torch.sofmax(x, dim=-1)
torch.zeros("3")
x.sofmax(-1)
x.backwards()
x.shape.foo
x + "1"
x.reshape(2.5)
x.view("a")
x.to(dtyp=torch.float64)
torch.softmax(x, dims=-1)
torch.zeros(2, dytpe=torch.float32)
torch.rand(2, require_grad=True)
torch.tensor([1.0], dtype="float32")
torch.cat(x, x)
torch.stack(x, x, 0)
torch.matmul(x)
torch.where(x > 0, x)
torch.float33
torch.manual_sed(0)
torch.save(x)
torch.no_grads()
torch.linalg.invv(x)
torch.fft.fftt(x)
F.rellu(x)
F.cross_entropy(x)
nn.Linear(3)
nn.Linear(3, 4, bais=False)
nn.Liner(3, 4)
nn.Linear(3, 4)(x, x)
nn.ReLU()("x")
nn.init.xavier(x)
torch.optim.Adamm([x])
torch.optim.SGD([x], learning_rate=1.0)
torch.utils.data.DataLoder([])
count: int = torch.ones(2)
