"""Libraries that know nothing of weft take its tensors wherever they take PyTorch's, with the same results."""

import importlib
import io
import warnings

import numpy as np
import pytest
import torch

import weft

# module as its name in the expressions of x: [4, 3] floats, v: [4] floats, k: [4] integers
TABLE = """
pandas as pd: pd.DataFrame(x) | pd.Series(v) | pd.DataFrame({'a': v, 'b': k}) | pd.DataFrame(x.numpy()).describe()
pandas as pd: pd.Series([1., 2., 3., 4.]) + pd.Series(v) | pd.DataFrame(x, columns=['a', 'b', 'c']).mean().to_dict()
pandas as pd: pd.DataFrame([1., 2., 3., 4.]).assign(n=v) | pd.cut(v.numpy(), 2) | pd.DataFrame(x).loc[k.tolist()].shape
scipy.stats as sp: sp.zscore(x) | sp.pearsonr(v, v * 2).statistic | sp.norm.cdf(v) | sp.rankdata(v) | sp.norm.pdf(x, loc=v[:3])
scipy.linalg as sp: sp.norm(x) | sp.svdvals(x) | sp.expm(x[:3]) | sp.solve(x[:3] + 3 * np.eye(3), v[:3])
scipy.special as sp: sp.gamma(v) | sp.logsumexp(x, axis=1) | sp.softmax(x) | sp.expit(x)
scipy.optimize as sp: sp.minimize(lambda p: float(((torch.as_tensor(p) - v) ** 2).sum()), np.zeros(4)).x.round(3) | sp.nnls(x, v)[0]
scipy.signal as sp: sp.convolve(v, v) | sp.detrend(v) | sp.fftconvolve(x, x) | sp.medfilt(v, 3)
scipy.interpolate as sp: sp.interp1d(v, v ** 2)(v) | sp.CubicSpline(v, v)(v)
scipy.sparse as sp: sp.csr_matrix(x) | sp.csr_array(x) @ v[:3].numpy()
scipy.spatial.distance as sp: sp.cdist(x, x) | sp.pdist(x) | sp.euclidean(v, v + 1)
scipy.ndimage as sp: sp.gaussian_filter(x, 1) | sp.label(x > 0)[0]
scipy.integrate as sp: sp.trapezoid(v, v) | sp.simpson(v, x=v)
scipy.fft as sp: sp.fft(v) | sp.rfft(x)
scipy.cluster.vq as sp: sp.whiten(x) | sp.vq(x, x)[0]
sklearn.linear_model as sk: sk.LinearRegression().fit(x, v).coef_ | sk.Ridge().fit(x, v).predict(x) | sk.LogisticRegression().fit(x, k % 2).predict(x)
sklearn.preprocessing as sk: sk.StandardScaler().fit_transform(x) | sk.MinMaxScaler().fit_transform(x) | sk.OneHotEncoder().fit_transform(k.reshape(-1, 1))
sklearn.decomposition as sk: abs(sk.PCA(2).fit_transform(x))
sklearn.cluster as sk: sk.KMeans(2, random_state=0, n_init=1).fit(x).labels_
sklearn.metrics as sk: sk.accuracy_score(k, k) | sk.confusion_matrix(k, k) | sk.mean_squared_error(v, v + 1) | sk.roc_auc_score(k % 2, v)
sklearn.model_selection as sk: sk.train_test_split(x, v, random_state=0) | sk.cross_val_score(NB(), x, k % 2, cv=2)
sklearn.neighbors as sk: sk.KNeighborsClassifier(1).fit(x, k).predict(x) | sk.NearestNeighbors().fit(x).kneighbors(x, 2)
sklearn.ensemble as sk: sk.RandomForestRegressor(3, random_state=0).fit(x, v).predict(x)
networkx as nx: nx.from_numpy_array((x[:3] @ x[:3].T).numpy()).edges | nx.from_edgelist(torch.stack([k, k.flip(0)], 1).tolist()).number_of_edges()
networkx as nx: sorted(nx.path_graph(int(k[3])).nodes) | nx.relabel_nodes(nx.path_graph(2), dict(enumerate(k.tolist()))).nodes
PIL.Image as Im: Im.fromarray((x * 9).to(torch.uint8).numpy()).size | np.asarray(Im.fromarray(x.numpy()))
PIL.Image as Im: torch.as_tensor(np.array(Im.new('RGB', (3, 2), 'red'))).sum() | torch.tensor(np.asarray(Im.new('L', (3, 2), 7)))
tqdm as tqdm: list(tqdm.tqdm(v, file=io.StringIO())) | [len(tqdm.tqdm(x, file=io.StringIO())) for _ in range(2)] | tqdm.tqdm(x, file=io.StringIO()).total
rich.pretty as rich: rich.pretty_repr(x) | rich.pretty_repr({'a': [v]}) | rich.pretty_repr(torch.nn.Linear(2, 2))
IPython.lib.pretty as ip: ip.pretty(x) | ip.pretty([v, {'k': k}]) | ip.pretty(torch.nn.Linear(2, 2))
pprint as pp: pp.pformat(x) | pp.pformat({'a': [x, v]})
json as js: js.dumps(x.tolist()) | js.dumps(v[0].item())
statistics as st: st.mean(v.tolist()) | float(st.fmean(v))
math as m: m.sqrt(v[0]) | m.hypot(*v) | m.floor(v[1]) | m.prod(v) | m.isclose(v[0], v[0]) | m.comb(k[3], k[1])
random as ra: ra.Random(0).choice(v) | ra.Random(0).sample(list(range(k[3])), 2)
itertools as it: list(it.chain(v, k)) | list(it.product(k[:2], k[:2])) | list(it.islice(x, 2))
collections as co: co.Counter(k.tolist()) | co.deque(v) | sorted(v, reverse=True)
operator as op: op.index(k[2]) | [10, 20, 30, 40][k[1]] | list(range(k[2])) | 'abcd'[k[1]:k[3]] | hex(k[2])
"""
EXTRA = {"NB": lambda: importlib.import_module("sklearn.naive_bayes").GaussianNB}


def rows():
    for line in TABLE.strip().splitlines():
        imported, expressions = line.split(": ", 1)
        module, short = imported.split(" as ")
        for expression in expressions.split(" | "):
            yield pytest.param(module, short, expression, id=f"{module}: {expression}")


def evaluate(library, module, short, expression):
    x = library.tensor([[1.0, 2.5, -1.0], [0.5, 3.0, 2.0], [2.0, -2.0, 1.5], [4.0, 0.25, 1.0]])
    names = {
        "torch": library,
        short: importlib.import_module(module),
        "np": np,
        "io": io,
        "x": x,
        "v": library.tensor([1.0, 2.0, 3.5, 5.0]),
        "k": library.tensor([0, 1, 2, 3]),
        **{name: get() for name, get in EXTRA.items() if f"{name}(" in expression},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(expression, names)


def same(ours, theirs):
    """Equal as far as the type of result knows."""
    if isinstance(theirs, torch.Tensor):
        return isinstance(ours, weft.Tensor) and np.allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)
    if isinstance(theirs, np.ndarray | float | np.floating) and not isinstance(theirs, np.ma.MaskedArray):
        return type(ours) is type(theirs) and np.allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    if isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return repr(ours) == repr(theirs)


@pytest.mark.parametrize(("module", "short", "expression"), rows())
def test_same_as_with_torch(module, short, expression):
    pytest.importorskip(module.split(".")[0], reason=f"{module} is not installed")
    weft.manual_seed(0), torch.manual_seed(0)
    ours, theirs = (evaluate(library, module, short, expression) for library in (weft, torch))
    assert same(ours, theirs), f"{ours!r} instead of {theirs!r}"


class TestMatplotlib:
    @pytest.fixture(autouse=True)
    def axes(self):
        pytest.importorskip("matplotlib").use("Agg")
        from matplotlib import pyplot

        figure, self.axes = pyplot.subplots()
        yield
        pyplot.close(figure)

    @pytest.mark.parametrize(
        ("method", "arguments"),
        [
            ("plot", lambda x, v: (v, v**2)),
            ("plot", lambda x, v: (x,)),
            ("scatter", lambda x, v: (v, v)),
            ("bar", lambda x, v: (v, v)),
            ("hist", lambda x, v: (v,)),
            ("imshow", lambda x, v: (x,)),
            ("pcolormesh", lambda x, v: (x,)),
            ("contour", lambda x, v: (x,)),
            ("errorbar", lambda x, v: (v, v, v / 10)),
            ("fill_between", lambda x, v: (v, v, v + 1)),
            ("boxplot", lambda x, v: (x,)),
            ("quiver", lambda x, v: (v, v, v, v)),
        ],
        ids=lambda each: each if isinstance(each, str) else "",
    )
    def test_draws_what_it_draws_of_arrays(self, method, arguments):
        x, v = weft.arange(12.0).reshape(4, 3).sin(), weft.arange(4.0)
        pictures = []
        for convert in (lambda t: t, lambda t: t.numpy()):
            self.axes.clear()
            getattr(self.axes, method)(*map(convert, arguments(x, v)))
            self.axes.figure.canvas.draw()
            pictures.append(np.asarray(self.axes.figure.canvas.buffer_rgba()).copy())
        assert (pictures[0] == pictures[1]).all() and pictures[0].std() > 0


class TestJax:
    def test_both_ways(self):
        jnp = pytest.importorskip("jax.numpy")
        ours = weft.from_dlpack(jnp.arange(6.0).reshape(2, 3))
        assert ours.tolist() == [[0, 1, 2], [3, 4, 5]]
        theirs = jnp.from_dlpack(weft.arange(6, dtype=weft.int32))
        assert theirs.sum() == 15
        assert jnp.asarray(weft.ones(2)).sum() == 2 and (jnp.ones(2) + weft.ones(2).numpy()).sum() == 4

    @pytest.mark.parametrize("name", ["bfloat16", "float16", "bool", "uint8", "complex64"])
    def test_dtypes(self, name):
        jnp = pytest.importorskip("jax.numpy")
        ours = weft.ones(3).to(getattr(weft, name))
        assert jnp.from_dlpack(ours).dtype == name
        assert weft.from_dlpack(jnp.ones(3, name)).dtype is ours.dtype


def test_array_api_compat_finds_the_namespace():
    compat = pytest.importorskip("array_api_compat")
    from weft.compat.libraries import array_api

    tensor = weft.ones(2, 3)
    assert compat.is_array_api_obj(tensor)
    assert compat.array_namespace(tensor, weft.ones(1)) is array_api
    assert compat.device(tensor) == weft.device("cpu") and compat.size(tensor) == 6
    assert compat.to_device(tensor, "cpu") is tensor


def test_scipy_with_array_api_returns_tensors(run):
    """SciPy computes with the namespace of what it is given, if asked to."""
    program = (
        "import weft, scipy.stats as st, scipy.special as sp, scipy.cluster.vq as vq\n"
        "x = weft.arange(12.0).reshape(4, 3)\n"
        "print(type(st.zscore(x)).__name__, type(sp.logsumexp(x, axis=1)).__name__, type(vq.whiten(x)).__name__)\n"
        "print(st.skew(x).shape, sp.expit(x).shape, st.gmean(x + 1).shape)"
    )
    done = run("-c", program, SCIPY_ARRAY_API="1")
    assert done.stdout.splitlines() == [
        "Tensor Tensor Tensor",
        "torch.Size([3]) torch.Size([4, 3]) torch.Size([3])",
    ], done.stderr
