"""Printing is compared with PyTorch's for the same times; timing uses a clock that the test moves."""

import pickle

import pytest
import torch.utils.benchmark as reference
from hypothesis import assume, given
from hypothesis import strategies as st

from weft.utils import benchmark

TIMES = st.lists(st.floats(2e-9, 2e3), min_size=1, max_size=12)
CLOSE_TIMES = st.builds(
    lambda scale, factors: [scale * f for f in factors],
    st.floats(1e-8, 1e2),
    st.lists(st.floats(1, 1.3), min_size=1, max_size=12),
)
WORDS = st.sampled_from(["", "a", "relu(x + 1)", "a longer name"])
MAYBE_WORDS = st.none() | WORDS
SPECS = st.fixed_dictionaries(
    {
        "stmt": st.sampled_from(["x + y", "a = 1\nb = a + 1", ""]),
        "setup": st.sampled_from(["pass", "", "x = 1", "x = 1\ny = 2"]),
        "label": MAYBE_WORDS,
        "sub_label": MAYBE_WORDS,
        "description": MAYBE_WORDS,
        "env": MAYBE_WORDS,
        "num_threads": st.integers(1, 3),
    }
)


def measurement(library, runs, times, spec):
    return library.Measurement(runs, times, library.TaskSpec(**spec))


def without_address(text):
    return text.split("\n")[1:]


@given(times=TIMES | CLOSE_TIMES, runs=st.sampled_from([1, 7, 1000]), spec=SPECS)
def test_measurement_prints_and_summarises_as_in_pytorch(times, runs, spec):
    times = [t * runs for t in times]
    ours, theirs = (measurement(library, runs, times, spec) for library in (benchmark, reference))
    for name in ("times", "has_warnings", "title", "env", "as_row_name", "stmt", "num_threads"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for name in ("median", "mean", "iqr"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-12, abs=1e-20), name
    assert ours.significant_figures == theirs.significant_figures
    assert ours.meets_confidence(0.2) == theirs.meets_confidence(0.2)
    assert without_address(repr(ours)) == without_address(repr(theirs))


def test_measurement_names_its_class_and_round_trips_through_pickle():
    ours = measurement(benchmark, 10, [1e-3, 2e-3], {"stmt": "x", "setup": "pass"})
    assert repr(ours).startswith("<weft.utils.benchmark.")
    assert pickle.loads(pickle.dumps(ours)) == ours
    with pytest.raises(AttributeError, match="no_such_name"):
        ours.no_such_name  # noqa: B018


def test_merge_joins_equal_specs_in_order_of_appearance():
    a, b = {"stmt": "a", "setup": "pass"}, {"stmt": "b", "setup": "pass"}
    parts = [(2, [4.0], a), (1, [5.0], b), (4, [4.0, 8.0], a)]
    merged = benchmark.Measurement.merge(measurement(benchmark, *part) for part in parts)
    assert [(m.stmt, m.number_per_run, m.raw_times) for m in merged] == [
        ("a", 1, [2.0, 1.0, 2.0]),
        ("b", 1, [5.0]),
    ]


TABLE = st.lists(
    st.tuples(
        st.sampled_from(["add", "mul"]),  # label
        st.sampled_from(["short", "a longer name"]),  # sub_label
        st.sampled_from(["n = 1", "n = 100000"]),  # description
        st.sampled_from(["old", "newer"]),  # env
        st.sampled_from([1, 4]),  # num_threads
        TIMES | CLOSE_TIMES,
    ),
    min_size=1,
    max_size=8,
)


@given(
    table=TABLE,
    trim=st.booleans(),
    highlight=st.booleans(),
    colorize=st.sampled_from([None, False, True]),
    one_env=st.booleans(),
)
def test_compare_prints_as_in_pytorch(table, trim, highlight, colorize, one_env):
    texts = []
    for library in (benchmark, reference):
        compare = library.Compare([])
        for label, sub_label, description, env, num_threads, times in table:
            spec = dict(stmt="s", setup="pass", label=label, sub_label=sub_label, description=description)
            spec |= dict(env=None if one_env else env, num_threads=num_threads)
            compare.extend_results([measurement(library, 1, times, spec)])
        if trim:
            compare.trim_significant_figures()
        if highlight:
            compare.highlight_warnings()
        if colorize is not None:
            compare.colorize(rowwise=colorize)
        texts.append(str(compare))
    assert texts[0] == texts[1]


def test_compare_rejects_what_is_no_measurement(capsys):
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`, got <class 'int'> instead."):
        benchmark.Compare([3])
    benchmark.Compare([measurement(benchmark, 1, [1.0], {"stmt": "x", "setup": "pass"})]).print()
    assert "Times are in seconds (s)." in capsys.readouterr().out


@given(t=st.floats(1e-9, 1e4))
def test_select_unit(t):
    assert benchmark.select_unit(t) == reference.select_unit(t)


@given(x=st.floats(-1e6, 1e6), n=st.integers(1, 4))
def test_trim_sigfig(x, n):
    assume(abs(x) > 1e-9)
    assert benchmark.trim_sigfig(x, n) == reference.trim_sigfig(x, n)


def test_words_and_order():
    for unit in ("ns", "us", "ms", "s"):
        assert benchmark.unit_to_english(unit) == reference.unit_to_english(unit)
    assert benchmark.ordered_unique([3, 1, 3, 2, 1]) == [3, 1, 2]


class Work:
    """A clock that stands still except while `run` works, and 10 ns per look."""

    def __init__(self, seconds):
        self.seconds, self.now, self.runs = seconds, 0.0, 0

    def run(self):
        self.now += self.seconds
        self.runs += 1

    def clock(self):
        self.now += 1e-8
        return self.now

    def timer(self, **options):
        return benchmark.Timer("work.run()", timer=self.clock, globals={"work": self}, **options)


def test_timeit_counts_runs():
    work = Work(0.5)
    measured = work.timer(label="work").timeit(100)
    assert work.runs > measured.number_per_run == 100  # there was a warm-up
    assert measured.median == pytest.approx(0.5)
    assert (measured.title, len(measured.times)) == ("work", 1)


def test_blocked_autorange_measures_long_enough_blocks_for_the_given_time():
    work, blocks = Work(1e-6), []
    measured = work.timer().blocked_autorange(callback=lambda *block: blocks.append(block), min_run_time=0.5)
    assert sum(measured.raw_times) == pytest.approx(0.5, rel=0.1)
    assert measured.raw_times[0] >= 1e-4  # ten thousand looks at the clock
    assert measured.median == pytest.approx(1e-6, rel=0.01)
    assert blocks == [(measured.number_per_run, t) for t in measured.raw_times]


def test_adaptive_autorange_stops_when_times_agree():
    measured = Work(1.0).timer().adaptive_autorange(min_run_time=0.5)
    assert len(measured.times) == 4
    assert measured.meets_confidence(0.1)


def test_adaptive_autorange_gives_up_at_max_run_time():
    work = Work(1e-3)
    benchmark_timer = benchmark.Timer(
        "work.seconds *= 1.5; work.run()", timer=work.clock, globals={"work": work}
    )
    measured = benchmark_timer.adaptive_autorange(threshold=1e-6, max_run_time=1.0)
    assert sum(measured.raw_times) >= 1.0


def test_timer_sets_threads_and_puts_them_back():
    import weft

    before, seen = weft.get_num_threads(), []
    timer = benchmark.Timer("seen.append(torch.get_num_threads())", globals={"seen": seen}, num_threads=1)
    assert timer.timeit(3).num_threads == 1
    assert set(seen) == {1}
    assert weft.get_num_threads() == before


def test_timer_dedents_code_and_sees_torch():
    timer = benchmark.Timer(
        """
        x = torch.ones(2)
        x + y
        """,
        setup="""
        y = 1
        """,
    )
    measured = timer.timeit(1)
    assert (measured.stmt, measured.setup) == ("x = torch.ones(2)\nx + y", "y = 1")


@pytest.mark.parametrize("language", ["c++", "cpp", benchmark.Language.CPP])
def test_cpp_is_named_as_missing(language):
    with pytest.raises(NotImplementedError, match="cpp"):
        benchmark.Timer("1", language=language)


def test_callgrind_is_named_as_missing():
    with pytest.raises(NotImplementedError, match="collect_callgrind"):
        benchmark.Timer("1").collect_callgrind()


@pytest.mark.parametrize(
    "options", [{"language": "fortran"}, {"global_setup": "#include <vector>"}, {"stmt": lambda: 1}]
)
def test_timer_refuses_as_pytorch_does(options):
    with pytest.raises(ValueError) as theirs:
        reference.Timer(**options)
    with pytest.raises(ValueError) as ours:
        benchmark.Timer(**options)
    assert str(ours.value) == str(theirs.value)
