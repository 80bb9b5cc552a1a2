"""Tapes compiled to machine code by LLVM: the same as `interpreter.follow`, without an interpreter."""

import ctypes
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from analytic.batch import cache as stored
from analytic.batch.llvm import function
from analytic.batch.tape import Tape
from robots.arrays import Array

OPTIMIZATION = 2
"""Level of LLVM's code generator [-]; passes over the representation before it find nothing that is not slower."""
KEPT = 64
"""Functions that are kept in memory [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A tape to be compiled; two of the same key are the same."""

    key: str
    """Of the tape, the compiler, its processor and these sources."""
    tape: Tape = field(compare=False)
    takes: tuple[int, ...] = field(compare=False)
    """Columns of each array that it takes [-]."""
    gives: tuple[int, ...] = field(compare=False)
    """Columns of each array that it gives [-]."""

    @property
    def is_compiled(self) -> bool:
        """Whether its machine code is in the cache."""
        return stored.read(self.key) is not None


def job(tape: Tape, takes: Sequence[int], gives: Sequence[int]) -> Job:
    """What to compile for arrays with so many columns."""
    content = hashlib.sha256(_surroundings())
    for part in (tape.code, tape.constants, tape.outputs):
        content.update(np.ascontiguousarray(part).tobytes())
    content.update(repr((tuple(takes), tuple(gives), lanes_of_a_vector())).encode())
    return Job(key=content.hexdigest(), tape=tape, takes=tuple(takes), gives=tuple(gives))


@cache
def _surroundings() -> bytes:
    sources = b"".join((Path(__file__).parent / name).read_bytes() for name in ("llvm.py", "compiled.py", "tape.py"))
    return f"{llvmlite.__version__} {_processor()}".encode() + sources


@cache
def _processor() -> tuple[str, str]:
    """Name and features of the processor."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def lanes_of_a_vector() -> int:
    """Numbers of double precision in a register of the processor."""
    features = llvm.get_host_cpu_features()
    return 8 if features.get("avx512f") else 4 if features.get("avx2") else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """The compiled `follow` of a tape."""

    call: Any
    """By its address."""
    engine: Any
    """Holds the machine code."""

    def __call__(self, weights: Array, takes: Sequence[Array], gives: Sequence[Array]) -> None:
        """See `interpreter.follow`; columns must lie side by side.

        Args:
            weights: Of the positions before, newest first [-], shape (HISTORY,).
            takes: Positions before [m or rad], shape (lanes, HISTORY, nq), and what else the tape takes [any unit],
                shape (lanes, samples, columns).
            gives: To be filled in, shape (lanes, samples, columns) [any unit].
        """
        arrays = (*takes, *gives)
        table = np.array([(a.__array_interface__["data"][0], *a.strides[:2]) for a in arrays], dtype=np.int64)
        lanes, samples, _ = gives[0].shape
        self.call(weights.ctypes.data, samples, lanes, table.ctypes.data)


@lru_cache(KEPT)
def load(job: Job) -> Function:
    """The function of a tape, from the cache or compiled."""
    code = stored.read(job.key)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = _processor()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=name, features=features, opt=OPTIMIZATION, jit=True
    )
    text = "" if code else function(job.tape, job.takes, job.gives, lanes_of_a_vector())
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), target)
    engine.set_object_cache(lambda _, compiled: stored.write(job.key, compiled), lambda _: code)
    engine.finalize_object()
    kinds = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    return Function(call=ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address("follow")), engine=engine)
