"""Path tracking compiled to machine code by LLVM: the same as `tracking.track`, without an interpreter."""

import ctypes
import hashlib
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from loopcheck.analytic.batch import cache as stored
from loopcheck.analytic.batch.kernel import function
from loopcheck.analytic.batch.tape import Tape
from loopcheck.analytic.batch.tracking import WEIGHTS, Columns
from loopcheck.robots.arrays import Array
from loopcheck.robots.motion import Drive

OPTIMIZATION = 2
"""Level of LLVM's code generator [-]; optimization passes before it bring no speed."""
SOURCES = ("compiled.py", "kernel.py", "llvm.py", "tape.py", "tracking.py")
"""Sources that determine the machine code."""
KEPT = 64
"""Functions that are kept in memory [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The tapes of a mechanism to be compiled; two of the same key are the same."""

    key: str
    """Hash of the tapes, the compiler, its processor and these sources."""
    newton: Tape = field(compare=False)
    efforts: Tape = field(compare=False)
    columns: Columns = field(compare=False)

    @property
    def is_compiled(self) -> bool:
        """Whether its machine code is in the cache."""
        return stored.read(self.key) is not None


def job(newton: Tape, efforts: Tape, columns: Columns) -> Job:
    """Module to compile, for arrays with so many columns."""
    content = hashlib.sha256(_surroundings())
    for tape in (newton, efforts):
        for part in (tape.code, tape.constants, tape.outputs):
            content.update(np.ascontiguousarray(part).tobytes())
    content.update(repr((columns, lanes_of_a_vector())).encode())
    return Job(key=content.hexdigest(), newton=newton, efforts=efforts, columns=columns)


@cache
def _surroundings() -> bytes:
    import llvmlite

    sources = b"".join((Path(__file__).parent / name).read_bytes() for name in SOURCES)
    return f"{llvmlite.__version__} {_processor()}".encode() + sources


@cache
def _processor() -> tuple[str, str]:
    """Name and features of the processor."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def lanes_of_a_vector() -> int:
    """Numbers of double precision in a register of the processor."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return 8 if features.get("avx512f") else 4 if features.get("avx2") else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """The compiled `tracking.track` of a mechanism."""

    call: Any
    """By its address."""
    engine: Any
    """Holds the machine code."""

    def __call__(self, tolerance: float, drive: Drive, records: Array) -> None:
        """See `tracking.track`; columns must be contiguous, and the arrays of the drives must have equal strides.

        Args:
            tolerance: Largest closure residual, relative to the largest position if that is more than 1 [-].
            drive: Motion of the drives [m or rad, per s, per s²], each of shape (lanes, samples, drives).
            records: To be filled in [m or rad, N or N m, -], shape (lanes, samples, columns).
        """
        q, qd, qdd = (x.ctypes.data for x in drive)
        lanes, samples, _ = records.shape
        places = (q, qd, qdd, *drive.q.strides[:2], records.ctypes.data, *records.strides[:2])
        self.call(tolerance, _WEIGHTS, *places, lanes, samples)


_WEIGHTS = WEIGHTS.ctypes.data


@lru_cache(KEPT)
def load(job: Job) -> Function:
    """The function of a mechanism, from the cache or compiled."""
    import llvmlite.binding as llvm

    code = stored.read(job.key)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = _processor()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=name, features=features, opt=OPTIMIZATION, jit=True
    )
    text = "" if code else function(job.newton, job.efforts, job.columns, lanes_of_a_vector())
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), target)
    engine.set_object_cache(lambda _, compiled: stored.write(job.key, compiled), lambda _: code)
    engine.finalize_object()
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    kinds = (ctypes.c_double, *[pointer] * 4, number, number, pointer, *[number] * 4)
    return Function(call=ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address("track")), engine=engine)
