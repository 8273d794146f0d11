"""Formats whose library is not installed."""

SCRIPT = """
import sys
for name in ("h5py", "safetensors", "PIL"):
    sys.modules[name] = None  # as if it were not installed

import weft
for call in (
    lambda: weft.io.load_hdf5("t.h5"),
    lambda: weft.io.save_hdf5({}, "t.h5"),
    lambda: weft.io.load_image("t.png"),
    lambda: weft.io.save_image(weft.ones(1), "t.png"),
):
    try:
        call()
    except ImportError as error:
        print(error)
weft.io.safetensors.save_file({"a": weft.ones(1)}, "t.safetensors")
print(weft.io.safetensors.load_file("t.safetensors"))
"""


def test_a_missing_library_names_its_extra(run):
    done = run("-c", SCRIPT)
    hdf5 = "this needs h5py, which is not installed: pip install 'weft[hdf5]'"
    images = "this needs pillow, which is not installed: pip install 'weft[images]'"
    expected = [hdf5, hdf5, images, images, "{'a': tensor([1.])}"]
    assert done.stdout.splitlines() == expected, done.stderr


def test_importing_weft_imports_none_of_it(run):
    done = run(
        "-c", "import weft, sys; print(sorted({'h5py', 'PIL', 'safetensors', 'weft.io'} & set(sys.modules)))"
    )
    assert done.stdout == "[]\n", done.stderr
