"""What can go wrong when a program is exported to ONNX."""

from ..compat.missing import module_getattr

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """A doubt about an exported program."""


class OnnxExporterError(RuntimeError):
    """A program that cannot be exported."""


class UnsupportedOperatorError(OnnxExporterError):
    """A function that has no translation to ONNX."""


__getattr__ = module_getattr(__name__)
