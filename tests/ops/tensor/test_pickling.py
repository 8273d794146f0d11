"""Copies and pickles of tensors."""

import copy
import pickle

import pytest
import sharing_workers

import weft


class Special(weft.Tensor):
    pass


class Slotted(weft.Tensor):
    __slots__ = ("note", "unset")


def pickled(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("duplicate", [pickled, copy.deepcopy])
class TestDuplicates:
    def test_shared_memory_stays_shared(self, duplicate):
        whole = weft.arange(6.0).reshape(2, 3)
        copied, row, storage = duplicate((whole, whole[1], whole.untyped_storage()))
        row[0] = 99
        assert copied[1, 0] == 99 and whole[1, 0] == 3
        assert copied.untyped_storage().data_ptr() == storage.data_ptr()

    @pytest.mark.parametrize("dtype", list(weft.core.dtype.DTYPES.values()), ids=str)
    def test_dtypes_and_strides(self, duplicate, dtype):
        tensor = weft.tensor([[0, 1], [1, 1]]).to(dtype).t()
        copied = duplicate(tensor)
        assert copied.spec is tensor.spec and copied.tolist() == tensor.tolist()

    def test_attributes_and_requires_grad(self, duplicate):
        tensor = weft.ones(2, requires_grad=True)
        tensor.note = "mine"
        copied = duplicate(tensor)
        assert copied.requires_grad and copied.note == "mine"

    def test_subclasses(self, duplicate):
        tensor = Special([1, 2])
        tensor.note = 3
        copied = duplicate(tensor)
        assert type(copied) is Special and copied.note == 3 and copied.tolist() == [1, 2]

    def test_slots_of_subclasses(self, duplicate):
        tensor = Slotted([1, 2])
        tensor.note, tensor.other = [3], 4
        copied = duplicate(tensor)
        assert type(copied) is Slotted and copied.note == [3] and copied.other == 4
        assert copied.note is not tensor.note and not hasattr(copied, "unset")

    def test_meta_and_pending_conjugation(self, duplicate):
        assert duplicate(weft.ones(2, device="meta")).is_meta
        assert duplicate(weft.tensor([1 + 2j]).conj()).tolist() == [1 - 2j]


def test_copy_shares_memory():
    tensor = weft.zeros(2)
    copy.copy(tensor)[0] = 1
    assert tensor[0] == 1


def test_what_metadata_is_made_of():
    parts = [
        weft.Size([2]), weft.device("cpu"), weft.device("cuda:1"), weft.float32, weft.strided,
        weft.channels_last,
    ]  # fmt: skip
    assert pickled(parts) == parts
    assert all(type(a) is type(b) for a, b in zip(pickled(parts), parts))


def test_pickles_need_no_torch(run):
    """`Tensor` says that it is torch's, yet a program without the name `torch` reads and writes pickles."""
    program = (
        "import pickle, sys, weft; print(pickle.loads(pickle.dumps(weft.ones(2))), 'torch' in sys.modules)"
    )
    assert run("-c", program).stdout == "tensor([1., 1.]) False\n"


class TestGradients:
    """As PyTorch has it: deepcopy takes the gradient of a tensor along, of a Parameter it does not; pickle never does."""

    @pytest.fixture(params=["tensor", "Parameter"])
    def leaf(self, request):
        leaf = (
            weft.nn.Parameter(weft.ones(2))
            if request.param == "Parameter"
            else weft.ones(2, requires_grad=True)
        )
        (leaf * 2).sum().backward()
        return leaf

    def test_deepcopy(self, leaf):
        copied = copy.deepcopy(leaf)
        assert type(copied) is type(leaf) and copied.requires_grad and copied.is_leaf
        if type(leaf) is weft.Tensor:
            copied.grad.zero_()
            assert leaf.grad.tolist() == [2, 2]
        else:
            assert copied.grad is None

    @pytest.mark.parametrize("duplicate", [pickled, copy.copy])
    def test_pickle_and_copy(self, duplicate, leaf):
        leaf.note = 1
        copied = duplicate(leaf)
        assert (
            copied.grad is None and copied.requires_grad and copied.note == 1 and type(copied) is type(leaf)
        )

    def test_results(self, leaf):
        with pytest.raises(RuntimeError, match="graph leaves"):
            copy.deepcopy(leaf * 2)
        assert pickled(leaf * 2).is_leaf and pickled(leaf * 2).requires_grad

    def test_tied_parameters_stay_tied(self):
        layer = weft.nn.Linear(2, 2)
        both = weft.nn.ModuleList([layer, layer])
        for copied in (copy.deepcopy(both), pickled(both)):
            assert copied[0].weight is copied[1].weight and copied[0].weight is not layer.weight


class TestOtherPicklers:
    def test_cloudpickle(self):
        cloudpickle = pytest.importorskip("cloudpickle")
        tensor = weft.arange(3.0, requires_grad=True)
        function = pickle.loads(cloudpickle.dumps(lambda x: (x * tensor).sum()))
        assert function(weft.ones(3)).item() == 3

    def test_joblib_files(self, tmp_path):
        joblib = pytest.importorskip("joblib")
        whole = weft.arange(6.0)
        joblib.dump({"whole": whole, "part": whole[2:], "layer": weft.nn.Linear(2, 2)}, tmp_path / "x.joblib")
        loaded = joblib.load(tmp_path / "x.joblib")
        loaded["part"][0] = 9
        assert loaded["whole"].tolist() == [0, 1, 9, 3, 4, 5]
        assert joblib.hash(weft.ones(3)) == joblib.hash(weft.ones(3)) != joblib.hash(weft.zeros(3))

    @pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
    def test_joblib_parallel(self, backend):
        joblib = pytest.importorskip("joblib")
        calls = [joblib.delayed(sharing_workers.double)(weft.full((2,), n)) for n in range(3)]
        results = joblib.Parallel(n_jobs=2, backend=backend)(calls)
        assert [result.tolist() for result in results] == [[0, 0], [2, 2], [4, 4]]


def test_a_view_made_under_no_grad_arrives_as_a_leaf():
    leaf = weft.ones(4, requires_grad=True)
    with weft.no_grad():
        view = leaf.view(2, 2)
    copy = pickle.loads(pickle.dumps(view))
    assert not vars(copy) and copy.requires_grad
    copy.sum().backward()
    assert copy.grad.tolist() == [[1, 1], [1, 1]]


def test_a_tensor_that_is_met_twice_is_copied_once():
    tensor = weft.ones(2, requires_grad=True)
    first, second = copy.deepcopy([tensor, tensor])
    assert first is second and first is not tensor
