"""The stack of C++ beneath this call."""


def get_cpp_backtrace(frames_to_skip: int = 0, maximum_number_of_frames: int = 64) -> str:
    """Return an empty text: no C++ of weft is beneath a call."""
    return ""
