"""Pipes that decode the contents of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe, lengths
from ..utils.decoder import Decoder, basichandlers, extension_extract_fn, imagehandler

__all__ = ["RoutedDecoderIterDataPipe"]


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe[tuple[str, Any]]):
    """(path, decoded content) of (path, open file): the first handler that knows the extension decodes it."""

    def __init__(self, datapipe: Any, *handlers: Callable, key_fn: Callable = extension_extract_fn) -> None:
        super().__init__()
        self.datapipe = datapipe
        chosen = handlers or (basichandlers, imagehandler("torch" + "rgb"))
        self.decoder = Decoder(*chosen, key_fn=key_fn)

    def add_handler(self, *handler: Callable) -> None:
        """Append handlers."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for path, data in self.datapipe:
            yield path, self.decoder((path, data))[path]

    def __len__(self) -> int:
        return lengths(self, [self.datapipe])[0]
