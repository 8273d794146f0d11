"""`torch.distributed.remote_device`: a device of a process, such as "rank:0/cpu"."""

from __future__ import annotations

from typing import Any

from ..core.device import device


class _remote_device:  # noqa: N801 (PyTorch's name)
    """A device of a process that is named by its rank ("rank:1/cpu") or as a worker of RPC ("trainer0/cpu"), or of this process ("cpu").

    A process without a device means "cpu".

    Raises: ValueError for text of another form, TypeError for what is neither text nor a device.

    >>> from weft.distributed import _remote_device
    >>> place = _remote_device("rank:1")
    >>> place, place.rank(), place.device(), _remote_device("trainer0/cpu").worker_name()
    (rank:1/cpu, 1, device(type='cpu'), 'trainer0')
    """

    def __init__(self, remote_device: Any) -> None:
        self._worker_name: str | None = None
        self._rank: int | None = None
        if isinstance(remote_device, device):
            self._device = remote_device
            return
        if not isinstance(remote_device, str):
            raise TypeError(f"Invalid type for remote_device: {type(remote_device)}")
        owner, slash, own = remote_device.partition("/")
        if not slash and _is_device(owner):
            owner, own = "", owner
        elif not owner or "/" in own:
            raise _malformed(remote_device)
        self._device = device(own if slash or not owner else "cpu")
        if owner:
            self._worker_name, self._rank = _worker_and_rank(owner, remote_device)

    def worker_name(self) -> str | None:
        """The name of the worker of RPC, None if the process has a rank or is this one."""
        return self._worker_name

    def rank(self) -> int | None:
        """The global rank of the process, None if it has a name or is this one."""
        return self._rank

    def device(self) -> device:
        """The device on that process."""
        return self._device

    def __repr__(self) -> str:
        owner = f"rank:{self._rank}" if self._worker_name is None else self._worker_name
        is_local = self._rank is None and self._worker_name is None
        return str(self._device) if is_local else f"{owner}/{self._device}"

    def _key(self) -> tuple[Any, ...]:
        return self._worker_name, self._rank, self._device

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _remote_device) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _is_device(text: str) -> bool:
    try:
        device(text)
    except RuntimeError:
        return False
    return True


def _worker_and_rank(owner: str, text: str) -> tuple[str | None, int | None]:
    kind, colon, number = owner.partition(":")
    if not colon:
        return owner, None
    if kind == "rank" and number.isdigit():
        return None, int(number)
    raise _malformed(text)


def _malformed(text: str) -> ValueError:
    return ValueError(
        f"Could not parse remote_device: {text}. The valid format is '<workername>/<device>' or 'rank:<rank>/<device>' or "
        "'<device>'"
    )
