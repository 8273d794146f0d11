"""Backward rules: functions from the cotangent of the result of an op to the cotangents of its inputs."""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple


class Needs(NamedTuple):
    """The values that the rules of some inputs use, and that a node must save."""

    out: bool  # the result
    inputs: tuple[int, ...]  # positions


_UNKNOWN = object()


class Derivative:
    """The derivative of an op.

    It has either one rule per input, `rule(ct, out, *inputs, *static)`, which returns the cotangent of this input, or one
    `joint` rule, which returns a sequence with the cotangents of all inputs. `ct` is the cotangent of the result. For ops with
    several results `ct` and `out` are tuples, and `ct` contains None for unused results. A rule may return a cotangent with
    the broadcast shape, with a wider dtype, or a complex one for a real input; the engine reduces and converts it. None means
    a cotangent of zero.

    A node saves the values that the rule mentions. The rule gets None for the others. Keyword-only parameters of a rule
    request metadata: `specs` (of the inputs), `spec` (of the result, or a tuple of specs), `static` (the static arguments as
    a tuple) and, for a joint rule, `wanted` (which inputs need a cotangent).

    Of several results a node saves the ones whose positions are in `results`. The default is the positions that appear in the
    rules as constants (`out[1]`), or else all.

    `round_once`: a rule that runs as one kernel rounds to bfloat16 and float16 once, and not after each operation. It is set
    where PyTorch has a kernel for the rule.

    `seed`: the value of the dummy cotangent on which forward mode records the rule (`autograd/forward.py`). It is 0 for
    rules that raise an error for some cotangents.
    """

    __slots__ = ("rules", "joint", "_results", "round_once", "seed", "fused", "needed", "forms")

    def __init__(
        self,
        *rules: Callable | None,
        joint: Callable | None = None,
        results: tuple[int, ...] | None = None,
        round_once: bool = False,
        seed: int = 1,
    ):
        self.rules = rules
        self.joint = joint
        self._results: Any = _UNKNOWN if results is None else results
        self.round_once = round_once
        self.seed = seed
        self.fused: dict[int, Callable] = {}  # by position: rules as kernels, see `families/fusing.py`
        self.needed: dict[tuple[int, int], Needs] = {}  # by (`wanted`, 2 ** number of inputs)
        self.forms: dict[tuple, Any] = {}  # what `autograd/recorders.py` found out about nodes of one form

    @property
    def results(self) -> tuple[int, ...] | None:
        """The positions of the results to save; None for all. The rules are read when this is first asked for, because reading all
        of them would take a tenth of the time of the import.
        """
        if self._results is _UNKNOWN:
            self._results = _used_results([self.joint] if self.joint else self.rules)
        return self._results

    def needs(self, wanted: int, n_inputs: int) -> Needs:
        """The values to save if the inputs whose bits are set in `wanted` need a cotangent."""
        needs = self.needed.get((wanted, 1 << n_inputs))
        if needs is None:
            needs = self.needed[wanted, 1 << n_inputs] = self._find(wanted, n_inputs)
        return needs

    def _find(self, wanted: int, n_inputs: int) -> Needs:
        rules = [self.joint] if self.joint else [r for k, r in enumerate(self.rules) if wanted >> k & 1]
        out, inputs = False, set()
        for rule in rules:
            if rule is None:
                continue
            mentions_out, positions = mentioned(rule, n_inputs)
            out |= mentions_out
            inputs |= positions
        return Needs(out, tuple(sorted(inputs)))


def mentioned(rule: Any, n_inputs: int) -> tuple[bool, set[int]]:
    """Whether a rule mentions the result, and which of the inputs."""
    code = rule.__code__
    positional = code.co_varnames[: code.co_argcount]
    names = loaded(code)
    inputs = {k for k, name in enumerate(positional[2 : 2 + n_inputs]) if name in names}
    if code.co_flags & 0x04:  # *inputs
        starred = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        if starred in names:
            inputs |= set(range(len(positional) - 2, n_inputs))
    return len(positional) > 1 and positional[1] in names, inputs


def _used_results(rules: Sequence[Callable | None]) -> tuple[int, ...] | None:
    """The positions of the results that rules use, if each use of `out` is `out[constant]`; else None."""
    used: set[int] = set()
    for rule in rules:
        code = getattr(rule, "__code__", None)
        if code is None or code.co_argcount < 2:
            continue
        positions = _subscripts(code, code.co_varnames[1])
        if positions is None:
            return None
        used |= positions
    return tuple(sorted(used)) or None


def _subscripts(code: CodeType, name: str) -> set[int] | None:
    """The constants that a local variable is subscripted with; None if it is used in any other way."""
    subscripts = set()
    if name in code.co_cellvars:
        return None
    instructions = list(dis.get_instructions(code))
    for position, each in enumerate(instructions):
        names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
        if name not in names or each.opname.startswith("STORE"):
            continue
        if names[-1] != name or names.count(name) > 1 or position + 2 >= len(instructions):
            return None
        key, operation = instructions[position + 1 : position + 3]
        is_subscript = operation.opname == "BINARY_SUBSCR" or operation.argrepr == "[]"
        if not (
            key.opname.startswith("LOAD") and type(key.argval) is int and key.argval >= 0 and is_subscript
        ):
            return None
        subscripts.add(key.argval)
    return subscripts


def loaded(code: CodeType) -> set[str]:
    """Names of the local variables that the code, or a function within it, reads."""
    names: set[str] = set()
    for each in dis.get_instructions(code):
        if each.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE", "STORE_FAST_LOAD")):
            names |= set(each.argval) if isinstance(each.argval, tuple) else {each.argval}
    return names


def keywords(rule: Any) -> tuple[str, ...]:
    """The keyword-only parameters of a rule."""
    code = rule.__code__
    return code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]


def as_derivative(stated: Any) -> Derivative | None:
    """A Derivative from the `derivative` of a row: a rule, a tuple of rules (one per input), a Derivative, or None."""
    if stated is None or isinstance(stated, Derivative):
        return stated
    rules = stated if isinstance(stated, tuple) else (stated,)
    assert all(rule is None or isinstance(rule, FunctionType) for rule in rules)
    return Derivative(*rules)


def round_once(*rules: Callable | None) -> Derivative:
    """A Derivative with rules for which PyTorch has kernels; see `round_once` of `Derivative`."""
    return Derivative(*rules, round_once=True)


def differentiate(op: Any, *rules: Callable | None, joint: Callable | None = None, seed: int = 1) -> None:
    """Set the derivative of an existing op; see `Derivative`."""
    op.derivative = Derivative(*rules, joint=joint, seed=seed)


# The derivative of ops that are not differentiable. Their results require no grad.
nondifferentiable = Derivative()
