"""The entry of a launch in machine code, with functions of this process in the place of a driver."""

import ctypes
import threading

import pytest

from weft.devices._gpu.launching import bound_launcher, launcher
from weft.devices._gpu.runtime import LazyKernel
from weft.engine.words import block

CONTEXT, FUNCTION, GROUPS, THREADS = 77, 88, 5, 256
OUT_OF_RESOURCES = 701


@pytest.fixture(params=["CUDA", "HIP"])
def driver(request):
    return Driver(request.param)


class Driver:
    """The two functions that an entry calls. It notes their arguments."""

    def __init__(self, api):
        self.api = api
        self.calls = []
        self.answer = 0
        self.busy = ctypes.c_int64()
        self.stream = None
        self.turn = (ctypes.c_uint64 * 3)()  # a thread, and the stream that it gives work to
        self.turning = self._turn
        self.before = lambda: self.calls.append("before")
        self.code = LazyKernel(self._compile)
        self._enter = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._note_context)
        integers = [ctypes.c_uint] * 7
        pointers = [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
        self._launch = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *integers, *pointers)(
            self._note_launch
        )

    def _compile(self):
        self.calls.append("compile")
        return FUNCTION

    def _turn(self):
        self.turn[:] = threading.get_ident(), self.stream or 0, 0

    def _note_context(self, context):
        self.calls.append(("context", context))
        return 0

    def _note_launch(self, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        assert (gy, gz, by, bz, shared, parameters) == (1, 1, 1, 1, 0, None)
        assert stream == self.stream
        # CU_LAUNCH_PARAM_BUFFER_POINTER, the buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, the address of its size, CU_LAUNCH_PARAM_END
        assert (extra[0], extra[2], extra[4]) == (1, 2, {"CUDA": None, "HIP": 3}[self.api])
        nbytes = ctypes.c_size_t.from_address(extra[3]).value
        words = (ctypes.c_int64 * (nbytes // 8)).from_address(extra[1])
        self.calls.append(("launch", function, gx, bx, list(words)))
        return self.answer

    def meta(self, places, words):
        addresses = [ctypes.cast(each, ctypes.c_void_p).value for each in (self._launch, self._enter)]
        before = (ctypes.addressof(self.busy), id(self.before))
        kernel = (ctypes.addressof(self.code.word), id(self.code.compile))
        turn = (ctypes.addressof(self.turn), id(self.turning))
        return block(
            (*addresses, CONTEXT, *before, *kernel, *turn, GROUPS, THREADS, len(words), *places, *words)
        )


def bits(kind, number):
    """A float as the word that a kernel gets."""
    return int.from_bytes(bytes(kind(number)), "little")


def test_a_launch_passes_the_arguments_and_then_its_words(driver):
    meta = driver.meta(range(5), [0, 0, 0, 0, 0, 10, 20])
    assert launcher("ppifd", driver.api)(1000, 2000, -7, 1.5, 2.5, meta.address, 1) == 1000
    words = [1000, 2000, -7, bits(ctypes.c_float, 1.5), bits(ctypes.c_double, 2.5), 10, 20]
    assert driver.calls == ["compile", ("context", CONTEXT), ("launch", FUNCTION, GROUPS, THREADS, words)]


def test_launches_follow_the_stream_of_the_driver(driver):
    meta = driver.meta(range(1), [0])
    for stream in (77, None):  # a stream, and the default stream
        driver.stream, driver.turn[0] = stream, 0
        assert launcher("p", driver.api)(1000, meta.address, 1) == 1000
    assert len(driver.calls) == 5


def test_a_launch_of_another_thread_asks_for_the_stream_again(driver):
    streams = []

    def turn():
        streams.append(driver.stream)
        driver._turn()
        if len(streams) == 1:  # another thread launches before this one goes on
            driver.turn[0] += 1

    driver.turning = turn
    meta = driver.meta(range(1), [0])
    assert launcher("p", driver.api)(1000, meta.address, 1) == 1000
    assert launcher("p", driver.api)(1000, meta.address, 1) == 1000
    assert len(streams) == 2 and len(driver.calls) == 5


def test_an_error_of_the_look_for_the_stream_ends_the_launch(driver):
    driver.turning = lambda: 1 // 0
    meta = driver.meta(range(1), [0])
    with pytest.raises(ZeroDivisionError):
        launcher("p", driver.api)(1, meta.address, 1)
    assert driver.calls == ["compile"]


def test_a_kernel_is_compiled_when_it_runs_for_the_first_time(driver):
    meta = driver.meta(range(1), [0])
    bound = bound_launcher("p", driver.api, meta.address)
    assert driver.calls == []
    for _ in range(3):
        launcher("p", driver.api)(1, meta.address, 1)
        bound(1)
    assert driver.calls.count("compile") == 1 and driver.calls[0] == "compile" and len(driver.calls) == 13
    assert driver.code.kernel() == FUNCTION and driver.calls.count("compile") == 1


def test_an_error_of_the_compiler_ends_the_launch(driver):
    driver.code = LazyKernel(lambda: 1 // 0)
    meta = driver.meta(range(1), [0])
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            launcher("p", driver.api)(1, meta.address, 1)
    assert driver.calls == []


def test_a_chain_puts_arguments_between_the_words_of_its_stages(driver):
    meta = driver.meta([0, 3, 4], [0, 10, 20, 0, 0, 30])
    assert bound_launcher("ppp", driver.api, meta.address)(1, 2, 3) == 1
    assert driver.calls[2] == ("launch", FUNCTION, GROUPS, THREADS, [1, 10, 20, 2, 3, 30])


def test_work_that_waits_is_done_first(driver):
    meta = driver.meta(range(1), [0])
    driver.busy.value = 1
    launcher("p", driver.api)(1, meta.address, 1)
    assert driver.calls[:2] == ["before", "compile"] and len(driver.calls) == 4


def test_an_error_of_that_work_ends_the_launch(driver):
    driver.before = lambda: 1 / 0
    driver.busy.value = 1
    meta = driver.meta(range(1), [0])
    with pytest.raises(ZeroDivisionError):
        launcher("p", driver.api)(1, meta.address, 1)
    assert driver.calls == []


def test_an_error_of_the_driver_is_raised(driver):
    driver.answer = OUT_OF_RESOURCES
    meta = driver.meta(range(1), [0])
    with pytest.raises(RuntimeError, match=f"{driver.api} error {OUT_OF_RESOURCES}"):
        launcher("p", driver.api)(1, meta.address, 1)


@pytest.mark.parametrize("arguments", [(), (1,), (1, "2", 3), ("1", 2, 3), (1, 2, 3, 4)])
def test_wrong_arguments_reach_no_driver(arguments, driver):
    meta = driver.meta(range(3), [0, 0, 0])
    with pytest.raises(TypeError):
        launcher("ppf", driver.api)(*arguments, meta.address, 1)
    assert driver.calls == []
