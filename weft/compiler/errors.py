"""The errors of PyTorch's compiler, which programs catch."""

from __future__ import annotations

from ..compat.missing import module_getattr


class TorchDynamoException(RuntimeError):
    """The base of the errors of PyTorch's compiler."""


class InternalTorchDynamoError(TorchDynamoException):
    """The compiler itself failed."""


class ResetRequired(TorchDynamoException):
    """The compiler must be reset first."""


class RestartAnalysis(TorchDynamoException):
    """Tracing begins again."""


class SkipFrame(TorchDynamoException):
    """A function is not compiled."""


class TorchRuntimeError(TorchDynamoException):
    """An operation failed while it was traced."""


class InvalidBackend(TorchDynamoException):
    """The name of a backend is unknown."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends."
        )


class BackendCompilerFailed(TorchDynamoException):
    """A backend raised an error."""


class Unsupported(TorchDynamoException):
    """A program contains an operation that the compiler cannot trace."""

    def __init__(self, msg: str = "", *, case_name: str | None = None, gb_type: str | None = None) -> None:
        super().__init__(msg)
        self.msg = msg


class UserError(TorchDynamoException):
    """A program uses the compiler wrongly."""


class UncapturedHigherOrderOpError(TorchDynamoException):
    """An operator got a function that it cannot take."""


class ArgsMismatchError(Unsupported):
    """A call does not fit the function."""


class CondOpArgsMismatchError(ArgsMismatchError):
    """The branches of `cond` do not fit its operands."""


class RecompileError(TorchDynamoException):
    """A function was compiled again where that is forbidden."""


class RecompileLimitExceeded(Unsupported):
    """A function was compiled too often."""


class FailOnRecompileLimitHit(Exception):
    """A function was compiled too often, and that is an error."""


__getattr__ = module_getattr(__name__)
