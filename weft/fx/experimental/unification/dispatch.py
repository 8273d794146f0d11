"""`dispatch` with a namespace of its own."""

from functools import partial

from .multipledispatch import dispatch as _dispatch

namespace: dict = {}
dispatch = partial(_dispatch, namespace=namespace)
