"""Pickles that attack are refused by name; nothing they contain is run, and they get no more memory than they have bytes."""

import collections
import io
import pickle
import time

import pytest

import weft
from weft.serialization import rebuild
from weft.serialization.unpickler import Unpickler, unsafe_globals


def loaded(pickled: bytes):
    return Unpickler(io.BytesIO(pickled)).load()


def refusal(pickled: bytes) -> str:
    start = time.process_time()
    with pytest.raises((pickle.UnpicklingError, RuntimeError)) as caught:
        loaded(pickled)
    assert time.process_time() - start < 5
    return str(caught.value)


def name(full: str) -> bytes:
    module, _, own = full.rpartition(".")
    return f"c{module}\n{own}\n".encode()


def text(value: str) -> bytes:
    return b"X" + len(value).to_bytes(4, "little") + value.encode()


def call(full: str, *arguments: bytes) -> bytes:
    return name(full) + b"(" + b"".join(arguments) + b"tR"


PROTO, STOP = b"\x80\x02", b"."

# ---- Code ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["os", "posix", "nt", "sys"])
def test_modules_that_nobody_can_allow(module):
    class Loophole:
        __module__ = module
        __qualname__ = "system"

    with weft.serialization.safe_globals([Loophole]):
        assert refusal(PROTO + call(f"{module}.system", text("id")) + STOP) == (
            f"Trying to load unsupported GLOBAL {module}.system whose module {module} is blocked."
        )


ATTACKS = """
builtins.eval builtins.exec builtins.getattr builtins.__import__ builtins.compile builtins.open builtins.type
builtins.object builtins.print builtins.bytes builtins.str builtins.list builtins.dict builtins.map
subprocess.Popen subprocess.check_output shutil.rmtree socket.create_connection importlib.import_module
runpy.run_path code.interact pickle.loads _pickle.loads marshal.loads types.FunctionType types.CodeType
operator.attrgetter operator.methodcaller functools.partial functools.reduce itertools.starmap copyreg._reconstructor
collections.defaultdict collections.namedtuple webbrowser.open ctypes.CDLL timeit.timeit asyncio.run pty.spawn
numpy.load numpy.ndarray numpy._core.multiarray._reconstruct weft.load weft.save weft.serialization.loading.load
torch.load torch.save torch.hub.load torch.jit.load torch.nn.Linear torch.nn.modules.linear.Linear torch._utils._import_dotted_name
torch.serialization.os torch.sys torch.os.system torch.ops.load_library torch.utils.collect_env.run torch.storage.os
""".split()


@pytest.mark.parametrize("attack", ATTACKS)
def test_other_names_are_refused_and_say_how_to_allow_them(attack):
    advised = attack.removeprefix("builtins.")
    message = refusal(PROTO + call(attack, text("id")) + STOP)
    assert f"GLOBAL {advised} was not an allowed global by default" in message
    assert f"add_safe_globals([{advised}])" in message
    module, _, own = attack.rpartition(".")
    assert unsafe_globals(io.BytesIO(PROTO + name(attack) + STOP)) == [attack]


def test_names_of_python_2_are_no_way_around():
    assert "GLOBAL eval was not" in refusal(PROTO + b"c__builtin__\neval\n(" + text("1") + b"tR.")


def test_nested_attribute_paths_are_no_way_around():
    assert "was not an allowed global" in refusal(PROTO + b"ctorch\nTensor.__init__.__globals__\n.")
    assert "was not an allowed global" in refusal(PROTO + b"ccollections\nOrderedDict.__class__\n.")


class Attack:
    ran = False

    def __reduce__(self):
        return setattr, (Attack, "ran", True)


@pytest.mark.parametrize("zipped", [True, False])
def test_an_attack_in_a_file_does_not_run(zipped, monkeypatch):
    monkeypatch.setattr(Attack, "ran", False)
    file = io.BytesIO()
    weft.save({"weight": weft.ones(2), "x": Attack()}, file, _use_new_zipfile_serialization=zipped)
    with pytest.raises(
        pickle.UnpicklingError, match="Weights only load failed(.|\n)*GLOBAL setattr was not an allowed"
    ):
        weft.load(io.BytesIO(file.getvalue()))
    assert not Attack.ran
    with pytest.warns(UserWarning, match="runs whatever code the file contains"):
        weft.load(io.BytesIO(file.getvalue()), weights_only=False)
    assert Attack.ran


# ---- What allowed names can be made to do ------------------------------------------------------------------------------

REFUSED_CALLS = {
    "a gigabyte": (call("builtins.bytearray", b"J\x00\x00\x00\x40"), "content must be bytes"),
    "another codec": (call("_codecs.encode", text("x"), text("zip")), "encoded as latin1"),
    "a codec to import": (call("_codecs.encode", text("x"), text("os.path")), "encoded as latin1"),
    "an endless iterable": (call("builtins.set", name("torch.Tensor")), "members must be list or tuple"),
    "no pairs": (call("collections.OrderedDict", text("ab")), "items must be list or tuple"),
    "a tensor of any size": (call("torch.Tensor", b"J\x00\x00\x00\x7f"), "unrecognized function"),
    "a parameter": (call("torch.nn.parameter.Parameter", b"K\x05"), "unrecognized function"),
    "a dtype": (call("torch.float32"), "unrecognized function"),
    "a storage": (call("torch.FloatStorage", b"J\x00\x00\x00\x7f"), "unrecognized function"),
    "a device": (call("torch.device", text("nowhere")), "device type at start of device string"),
    "a size": (call("torch.Size", b"(" + text("x") + b"t"), "sizes must be integers"),
    "a huge size": (call("torch.Size", b"\x8a\x10" + b"\x7f" * 16 + b"\x85"), "sizes must be integers"),
    "no layout": (
        call("torch.serialization._get_layout", text("torch.annotations")),
        "the layout must be layout",
    ),
    "a number": (b"K\x01)R", "unrecognized function an object of <class 'int'>"),
    "a method": (text("x") + b")R", "unrecognized function"),
    "a new object": (name("torch.device") + b"K\x01\x81", "arguments of type int"),
    "a new module": (name("torch._utils._rebuild_tensor_v2") + b")\x81", "TypeError"),
}


@pytest.mark.parametrize("attack", REFUSED_CALLS)
def test_arguments_are_checked(attack):
    pickled, message = REFUSED_CALLS[attack]
    assert message in refusal(PROTO + pickled + STOP)


def test_state_goes_to_no_other_objects():
    state = b"}" + text("a") + b"K\x01s"
    for target in (b"]", b"}", text("x"), name("torch.Tensor"), name("torch.float32"), call("torch.Size")):
        assert "Can only build" in refusal(PROTO + target + state + b"b.")
    assert vars(loaded(PROTO + call("collections.OrderedDict") + state + b"b.")) == {"a": 1}


def test_items_go_to_no_other_objects():
    assert "Can only append" in refusal(PROTO + b"}K\x01a.")
    assert "Can only SETITEMS" in refusal(PROTO + b"]K\x01K\x02s.")
    assert "Can only SETITEMS" in refusal(PROTO + name("torch.Tensor") + b"K\x01K\x02s.")


def test_a_tensor_gets_no_attributes_that_weft_relies_on():
    tensor = call(
        "torch._utils._rebuild_meta_tensor_no_storage",
        name("torch.float32"),
        b"K\x02\x85",
        b"K\x01\x85",
        b"\x89",
    )
    arguments = tensor[tensor.index(b"(") : -1]
    for attribute in (
        "spec",
        "_storage",
        "_byte_offset",
        "_autograd",
        "__class__",
        "_views",
        "_grad",
        "grad",
        "data",
        "requires_grad",
    ):
        state = b"}" + text(attribute) + b"K\x01s"
        pickled = name("torch._tensor._rebuild_from_type_v2") + b"("
        pickled += (
            name("torch._utils._rebuild_meta_tensor_no_storage")
            + name("torch.Tensor")
            + arguments
            + state
            + b"tR"
        )
        assert "no attribute for users" in refusal(PROTO + pickled + STOP)


# ---- Memory and time -------------------------------------------------------------------------------------------------


def test_deep_nesting():
    assert "containers within each other" in refusal(PROTO + b"(" * 100_000 + STOP)
    assert "tuples within each other" in refusal(PROTO + b")" + b"\x85" * 100_000 + STOP)
    # The depth does no harm, because nothing here goes through the lists by recursion.
    deep = loaded(PROTO + b"]" * 100_000 + b"a" * 99_999 + STOP)
    assert type(deep) is list


def laughs(levels: int) -> bytes:
    """A tuple of a tuple of ... that is twice as large with each level, of two bytes each."""
    return b"K\x01\x85" + b"".join(b"q" + bytes([k]) + b"h" + bytes([k]) + b"\x86" for k in range(levels))


def test_keys_made_of_too_many_objects():
    assert loaded(PROTO + b"}" + laughs(5) + b"Ns" + STOP)
    for attack in (b"}" + laughs(12) + b"Ns", call("builtins.set", b"](" + laughs(12) + b"e")):
        assert "made of more than 1000 objects" in refusal(PROTO + attack + STOP)


def test_shared_tuples_whose_hash_takes_for_ever():
    pair = b"](](" + laughs(90) + b"Nee"
    for attack in (
        b"}" + laughs(90) + b"Ns",
        call("builtins.set", b"](" + laughs(90) + b"e"),
        call("collections.OrderedDict", pair),
    ):
        assert "made of more than 1000 objects" in refusal(PROTO + attack + STOP)
    assert loaded(PROTO + laughs(90) + STOP)  # it only must not be hashed, compared or printed
    for attack in (
        laughs(90) + b")R",
        b"]" + laughs(90) + b"b",
        call("torch.Size", laughs(90)),
        laughs(90) + b"Q",
    ):
        refusal(PROTO + attack + STOP)  # messages print nothing of it


def test_calls_that_make_much_of_little():
    many = b"](" + b"K\x01" * 1000 + b"eq\x01"
    repeated = b"](" + (name("builtins.set") + b"h\x01\x85R") * 1000 + b"e"
    assert "more objects than the pickle has bytes" in refusal(PROTO + many + repeated + STOP)
    long = text("x" * 10_000) + b"q\x01"
    repeated = b"](" + call("_codecs.encode", b"h\x01", text("latin1")) * 1000 + b"e"
    assert "more objects than the pickle has bytes" in refusal(PROTO + long + repeated + STOP)


def number(value: int) -> bytes:
    content = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(content)]) + content


def test_keys_that_all_have_the_same_hash():
    alike = [k * (2**61 - 1) for k in range(2, 50_000)]
    assert len({hash(each) for each in alike}) == 1
    numbers = [number(each) for each in alike]
    for attack in (
        b"}(" + b"".join(each + b"N" for each in numbers) + b"u",
        b"}" + b"".join(each + b"Ns" for each in numbers),
        call("builtins.set", b"](" + b"".join(numbers) + b"e"),
        call("collections.OrderedDict", b"](" + b"".join(each + b"N\x86" for each in numbers) + b"e"),
    ):
        assert "have the same hash" in refusal(PROTO + attack + STOP)
    for honest in (
        {k * 10**20: k / 3 for k in range(1000)},
        {k / 7: None for k in range(1000)},
        {(k, (k + 1, "a")): k for k in range(1000)},
        [{(0, 1): k, 0.5: k, None: k} for k in range(1000)],
    ):
        assert loaded(pickle.dumps(honest, 2)) == honest


def test_a_million_dims():
    huge = b"(" + number(2**63 - 1) * 100_000 + b"t"
    for attack in (
        call("torch.Size", huge),
        call("torch._utils._rebuild_meta_tensor_no_storage", name("torch.float32"), huge, huge, b"\x89"),
    ):
        assert "more than 1000 dims" in refusal(PROTO + attack + STOP)


def test_lengths_beyond_the_end():
    for pickled in (
        b"X\xff\xff\xff\xffabc",
        b"X\x04\x00\x00\x00abc",
        b"\x8a\xffabc",
        b"J\x01",
        b"U\xffabc",
        b"",
        b"(",
    ):
        with pytest.raises(EOFError):
            loaded(PROTO + pickled)


def test_the_memo():
    assert "recalls object 7, which it did not memorise" in refusal(PROTO + b"h\x07.")
    assert loaded(PROTO + b"K\x05r\xff\xff\xff\xff0j\xff\xff\xff\xff."[:-7] + b"j\xff\xff\xff\xff.") == 5
    assert "more from its stack" in refusal(PROTO + STOP)
    assert "mark that it did not set" in refusal(PROTO + b"t.")


# ---- Instructions ----------------------------------------------------------------------------------------------------


def test_values():
    values = [
        None,
        True,
        False,
        0,
        255,
        256,
        -1,
        2**31 - 1,
        -(2**31),
        2**64,
        -(2**200),
        1.5,
        "ü",
        (),
        (1,),
        (1, 2),
        (1, 2, 3),
    ]
    values += [
        (1, 2, 3, 4),
        [1],
        [1, 2],
        {1: 2},
        {1: 2, 3: 4},
        {1, 2},
        1j,
        b"ab",
        bytearray(b"ab"),
        collections.Counter("ab"),
    ]
    for protocol in (2, 3):
        for value in values:
            # Bytes have instructions of their own in protocol 3.
            if protocol == 2 or not isinstance(value, (bytes, bytearray)):
                assert loaded(pickle.dumps(value, protocol)) == value


def test_shared_and_recursive_objects():
    shared = [1]
    first, second = loaded(pickle.dumps([shared, shared], 2))
    assert first is second
    shared.append(shared)
    found = loaded(pickle.dumps(shared, 2))
    assert found[1] is found


@pytest.mark.parametrize("protocol", [0, 4, 5])
def test_other_protocols(protocol):
    assert refusal(pickle.dumps([1, "a"], protocol))


@pytest.mark.parametrize(
    "instruction", [b"i", b"o", b"I1\n", b"\x82\x01", b"\x92", b"\x93", b"\x95", b"\x96", b"P1\n", b"0"]
)
def test_instructions_that_weights_do_not_need(instruction):
    message = refusal(PROTO + b"K\x01" + instruction + STOP)
    assert f"Unsupported operand {instruction[0]} " in message


def test_damage_names_instruction_and_place():
    assert refusal(PROTO + b"}]K\x01s.").startswith(
        "instruction SETITEM before byte 7 of the pickle failed: TypeError"
    )


# ---- Permission ------------------------------------------------------------------------------------------------------


class Point:
    def __init__(self):
        self.x = 0


class Slotted:
    __slots__ = ("x",)


class Stateful(dict):
    def __setstate__(self, state):
        raise ValueError("my own error")


def test_allowed_classes():
    point = Point()
    point.x = 5
    content = pickle.dumps([point, collections.defaultdict(list, a=[1])], 2)
    assert "tests" in refusal(content) or "Point" in refusal(content)
    with weft.serialization.safe_globals([Point, collections.defaultdict, list]):
        found, items = loaded(content)
    assert found.x == 5 and items == {"a": [1]}
    assert weft.serialization.get_safe_globals() == []


def test_allowed_under_another_name():
    content = PROTO + b"cold.place\nThing\n)\x81}" + text("x") + b"K\x07sb."
    assert "GLOBAL old.place.Thing was not" in refusal(content)
    with weft.serialization.safe_globals([(Point, "old.place.Thing")]):
        assert loaded(content).x == 7


def test_errors_of_allowed_code_are_its_own():
    content = pickle.dumps(Stateful(), 2)[:-1] + b"}" + text("x") + b"K\x01sb."
    with weft.serialization.safe_globals([Stateful]), pytest.raises(ValueError, match="my own error"):
        loaded(content)


def test_slots():
    slotted = Slotted()
    slotted.x = 3
    with weft.serialization.safe_globals([Slotted]):
        assert loaded(pickle.dumps(slotted, 2)).x == 3


def test_what_can_be_allowed_is_checked():
    for wrong, error in (((Point,), ValueError), ((Point, 3), TypeError)):
        with weft.serialization.safe_globals([wrong]), pytest.raises(error, match="Expected"):
            loaded(PROTO + b"N.")


def test_absent_features_are_named():
    with pytest.raises(NotImplementedError, match="torch._utils._rebuild_device_tensor_from_numpy"):
        loaded(PROTO + name("torch._utils._rebuild_device_tensor_from_numpy") + STOP)


# Tensors that no file may ask for, and what is said about each: storage_offset, size, stride.
REFUSED_TENSORS = {
    "a negative size": ((0, (-1,), (1,)), "size must be integers from 0"),
    "negative sizes whose product is positive": ((0, (-2, -2), (2, 1)), "size must be integers from 0"),
    "a negative stride": ((3, (4,), (-1,)), "stride must be integers from 0"),
    "a negative offset": ((-1, (2,), (1,)), "storage_offset must be integers from 0"),
    "a size beyond 64 bits": ((0, (2**64 + 1,), (1,)), "size must be integers from 0"),
    "a size that is a bool": ((0, (True,), (1,)), "size must be integers from 0"),
    "a size that is a float": ((0, (2.0,), (1,)), "size must be integers from 0"),
    "more sizes than strides": ((0, (1, 1), (1,)), "2 dims has 1 strides"),
    "one element too many": ((0, (5,), (1,)), "storage"),
    "an offset behind the end": ((4, (1,), (1,)), "storage"),
    "a stride beyond the end": ((0, (2,), (4,)), "storage"),
    "a product beyond 64 bits": ((0, (2**62, 2**62), (1, 1)), "overflow"),
}


@pytest.mark.parametrize("version", [0, 2, 3])
@pytest.mark.parametrize("case", REFUSED_TENSORS)
def test_tensors_stay_within_their_storage(case, version):
    (offset, size, stride), message = REFUSED_TENSORS[case]
    storage = rebuild.TypedStorage([1.0, 2.0, 3.0, 4.0], dtype=weft.float32, _internal=True)
    make = (
        lambda *where: rebuild.rebuild_tensor(storage, *where),
        None,
        lambda *where: rebuild.rebuild_tensor_v2(storage, *where, False, collections.OrderedDict()),
        lambda *where: rebuild.rebuild_tensor_v3(
            storage, *where, False, collections.OrderedDict(), weft.float32
        ),
    )[version]
    assert make(1, (3,), (1,)).tolist() == [2, 3, 4]
    assert make(4, (0,), (1,)).tolist() == make(0, (2, 0), (9, 9)).flatten().tolist() == []
    with pytest.raises((ValueError, RuntimeError), match=message):
        make(offset, size, stride)


def test_sizes_of_tensors_without_memory_are_checked():
    assert rebuild.rebuild_meta_tensor(weft.float32, (2, 3), (3, 1), False).shape == (2, 3)
    for size, stride in (((-2, 3), (3, 1)), ((2, 3), (3, -1)), ((2, 3), (1,))):
        with pytest.raises(ValueError):
            rebuild.rebuild_meta_tensor(weft.float32, size, stride, False)


def test_tensors_of_subclasses_are_made_by_functions_that_make_tensors():
    for function in (weft.ones, weft.Size, getattr, rebuild.rebuild_parameter):
        with pytest.raises(TypeError, match="expected a function that rebuilds a tensor"):
            rebuild.rebuild_from_type(function, weft.Tensor, ((2,),), {})
