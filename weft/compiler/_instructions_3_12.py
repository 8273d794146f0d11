"""The instructions that CPython 3.12 added or changed.

Comprehensions over lists, dictionaries and sets have no frame of their own any more. The variables of a comprehension are those of the
function around it, which gets its values back afterwards.
"""

from __future__ import annotations

import dis
import functools
import operator

from ._instructions import apply, handles, list_to_tuple, number, popped, slice_of
from ._interpreter import _NULL, HANDLERS, Frame, Interpreter
from ._tape import Unsupported

handles = functools.partial(handles, since=(3, 12))

for _new, _old in (
    ("LOAD_FAST_CHECK", "LOAD_FAST"),
    ("POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_FALSE"),
    ("POP_JUMP_IF_TRUE", "POP_JUMP_FORWARD_IF_TRUE"),
    ("POP_JUMP_IF_NONE", "POP_JUMP_FORWARD_IF_NONE"),
    ("POP_JUMP_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE"),
):
    handles(_new)(HANDLERS[_old])


@handles("LOAD_FAST_AND_CLEAR")
def _load_fast_and_clear(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(frame.variables[number(it)])  # NULL, too: STORE_FAST puts it back
    frame.variables[number(it)] = _NULL


@handles("LOAD_ATTR")
def _load_attr(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    found = run.attribute(frame.stack.pop(), it.argval)
    frame.stack += [_NULL, found] if number(it) & 1 else [found]  # the first for a call


@handles("LOAD_SUPER_ATTR")
def _load_super_attr(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    raise Unsupported("super() is called")


@handles("END_FOR")
def _end_for(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    pass  # FOR_ITER has taken the iterator off the stack at its end


@handles("BINARY_SLICE")
def _binary_slice(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    owner, *parts = popped(frame, 3)
    frame.stack.append(run.subscript(owner, slice_of(parts)))


@handles("STORE_SLICE")
def _store_slice(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    value, owner, *parts = popped(frame, 4)
    run.set_item(owner, slice_of(parts), value)


@handles("CALL_INTRINSIC_1")
def _call_intrinsic(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    if it.argrepr == "INTRINSIC_LIST_TO_TUPLE":
        list_to_tuple(run, frame, it)
    elif it.argrepr == "INTRINSIC_UNARY_POSITIVE":
        apply(run, frame, operator.pos)
    else:
        raise Unsupported(f"the instruction {it.argrepr} is used")
