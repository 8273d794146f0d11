"""What can go wrong when a program is exported to ONNX."""

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """A doubt about an exported program."""


class OnnxExporterError(RuntimeError):
    """A program that cannot be exported."""


class UnsupportedOperatorError(OnnxExporterError):
    """A function that has no translation to ONNX."""


class SymbolicValueError(OnnxExporterError):
    """A value of a graph of TorchScript that cannot be exported. weft has no TorchScript, so that nothing raises it."""

    def __init__(self, msg: str, value: object):
        super().__init__(f"{msg} [Caused by the value {value!r}]")
