"""Runs the tests of one file of PyTorch's, in one process, and writes a line of JSON before and after each.

    python tests/conformance/child.py weft|pytorch FILE LOG LIMIT [PATTERN]

Tests that LOG already has are left out, so that a run which crashed goes on behind the test that crashed it. run.py starts this.
"""

import importlib
import inspect
import json
import os
import re
import signal
import sys
import time
import traceback
import unittest
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path

import pytest
from adapting import adapted

HERE = Path(__file__).resolve().parent


class Late(BaseException):
    """A test took longer than its limit. No `except Exception` of a test catches it."""


class Adapting(SourceFileLoader):
    """Loads a test file of another project as one for the CPU."""

    def get_code(self, fullname):
        """The code of the adapted text; no bytecode is read or written."""
        return compile(adapted(Path(self.path).read_text(encoding="utf-8")), self.path, "exec")


class Log(unittest.TestResult):
    """Writes each outcome to a file as soon as it is known."""

    def __init__(self, file, limit):
        super().__init__()
        self.file = file
        self.limit = limit

    def write(self, test, outcome, reason="", trace=""):
        """Write one outcome of a test."""
        line = {"test": name_of(test), "outcome": outcome, "reason": reason, "trace": trace[-4000:]}
        line["seconds"] = round(time.monotonic() - self.started, 2)
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def run(self, test):
        """Run one test. What goes wrong around it, in the framework, is an error of the test."""
        try:
            unittest.TestSuite([test]).run(self)
        except BaseException:
            self.outcome = None
            self.addError(test, sys.exc_info())
            self.stopTest(test)

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()
        self.outcome = None
        self.write(test, "started")
        signal.alarm(self.limit)

    def stopTest(self, test):
        signal.alarm(0)
        self.write(test, *(self.outcome or ("error", "the test ended without an outcome")))
        super().stopTest(test)

    def addSuccess(self, test):
        self.outcome = self.outcome or ("passed",)

    def addSkip(self, test, reason):
        self.outcome = self.outcome or ("skipped", reason)

    def addExpectedFailure(self, test, err):
        self.outcome = ("passed",)

    def addUnexpectedSuccess(self, test):
        self.outcome = ("failed", "the test was expected to fail")

    def addFailure(self, test, err):
        self._failed("failed", err)

    def addError(self, test, err):
        self._failed("error", err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._failed("failed", err)

    def _failed(self, outcome, err):
        if self.outcome is None or self.outcome[0] in ("passed", "skipped"):
            kind, value, trace = err
            text = "".join(traceback.format_exception(kind, value, trace))
            self.outcome = (outcome, last_line(kind, value), text)


def last_line(kind, value):
    """The error in one line, without the advice how to repeat the test, which PyTorch's framework appends."""
    text = str(value).partition("\nTo execute this test")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{kind.__name__}: {' | '.join(lines[:3])[:300]}"


def name_of(test):
    """The class and the name of a test."""
    return (
        test if isinstance(test, str) else f"{type(test).__name__}.{getattr(test, '_testMethodName', test)}"
    )


def tests_in(suite):
    """All tests of nested suites."""
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from tests_in(each)
        else:
            yield each


class ByPytest:
    """A plugin of pytest that writes the outcomes of the functions of a file that are tests themselves."""

    def __init__(self, result, pattern, done):
        self.result, self.pattern, self.done = result, pattern, done

    def pytest_collection_modifyitems(self, items):
        """Keep the functions whose names the pattern matches, and that have no outcome yet."""
        items[:] = [
            item
            for item in items
            if item.cls is None and re.search(self.pattern, item.name) and item.name not in self.done
        ]

    def pytest_runtest_protocol(self, item):
        """Say that a test begins; pytest goes on with it."""
        self.result.startTest(item.name)

    def pytest_runtest_makereport(self, item, call):
        """Take what a test raised as its outcome."""
        error = call.excinfo
        if error is not None and isinstance(error.value, (pytest.skip.Exception, unittest.SkipTest)):
            self.result.addSkip(item.name, str(error.value))
        elif error is not None:
            self.result.addError(item.name, (error.type, error.value, error.tb))
        elif call.when == "call":
            self.result.addSuccess(item.name)

    def pytest_runtest_logfinish(self, nodeid):
        """Write the outcome."""
        self.result.stopTest(nodeid.partition("::")[2])


class Beside:
    """A finder of the files beside the test file, some of which it imports. They are adapted as well."""

    def __init__(self, folder):
        self.folder = str(folder)

    def find_spec(self, name, path=None, target=None):
        """Where the module is, if it is in the folder."""
        spec = PathFinder.find_spec(name, path)
        if spec is None or not str(spec.origin).startswith(self.folder):
            return None
        spec.loader = Adapting(name, spec.origin)
        return spec


def load(path):
    """The test file as a module that can be imported by its name, as processes which tests start do."""
    sys.path[:0] = [str(path.parent), str(path.parent.parent)]
    sys.meta_path.insert(0, Beside(path.parents[1]))
    return importlib.import_module(path.stem)


def main(library, path, log, limit, pattern=""):
    """Run the tests of the file whose names `pattern` matches."""
    sys.path[:] = [each for each in sys.path if each and Path(each).resolve() != HERE] + [str(HERE)]
    sys.argv[:] = [
        str(path)
    ]  # the framework reads options there, and that the tests are those of this script
    os.environ.setdefault("PYTORCH_TESTING_DEVICE_ONLY_FOR", "cpu")
    if library == "weft":
        import framework

        framework.bind()
        # Tests skip themselves where PyTorch would be built without MKL. weft computes without it what they test.
        import torch.testing._internal.common_utils as common

        common.TEST_MKL = True
    before = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    done = {each["test"] for each in before}

    def late(signum, frame):
        raise Late(f"the test takes more than {limit} s")

    signal.signal(signal.SIGALRM, late)
    with log.open("a") as file:
        result = Log(file, limit)
        result.started = time.monotonic()
        try:
            module = load(path)
        except BaseException as error:
            result.write("import", "error", last_line(type(error), error), traceback.format_exc())
            return
        suite = unittest.TestLoader().loadTestsFromModule(module)
        chosen = [t for t in tests_in(suite) if re.search(pattern, name_of(t)) and name_of(t) not in done]
        for test in chosen:
            result.run(test)
        if any(name.startswith("test") and inspect.isfunction(each) for name, each in vars(module).items()):
            options = ["-q", "-p", "no:cacheprovider", f"--rootdir={path.parent}", str(path)]
            pytest.main(options, plugins=[ByPytest(result, pattern, done)])


if __name__ == "__main__":
    library, path, log, limit, *rest = sys.argv[1:]
    main(library, Path(path).resolve(), Path(log), int(limit), *rest)
    os._exit(0)  # threads and processes that tests left behind would keep this one alive
