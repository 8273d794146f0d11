"""The exceptions of torch.distributed."""


class DistError(RuntimeError):
    """An error of torch.distributed."""


class DistBackendError(DistError):
    """A backend could not carry out a collective."""


class DistNetworkError(DistError):
    """A connection could not be made."""


class DistStoreError(DistError):
    """A store could not answer, in most cases within its timeout."""


class QueueEmptyError(DistStoreError):
    """A queue of a store has no element, and the caller does not wait for one."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = __name__.rpartition(".")[0]
