"""Path tracking compiled to machine code by LLVM: the same as `tracking.track`, without an interpreter."""

import ctypes
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from loopcheck.analytic.batch import cache as stored
from loopcheck.analytic.batch.kernel import function, map_function
from loopcheck.analytic.batch.tape import Tape
from loopcheck.analytic.batch.tracking import WEIGHTS, Columns
from loopcheck.robots.arrays import Array
from loopcheck.robots.motion import Drive

OPTIMIZATION = 2
"""Level of LLVM's code generator [-]; optimization passes before it bring no speed."""
SOURCES = ("compiled.py", "expressions.py", "kernel.py", "llvm.py", "tape.py", "tracking.py")
"""Sources that determine the machine code."""
KEPT = 64
"""Functions that are kept in memory [-]."""
BLOCK = 2048
"""Samples whose inputs are put side by side at once: few enough for a cache [-]."""
PAGE = 512
"""Numbers of a page of memory; columns a whole number of pages apart would share the same lines of a cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """Tapes to be compiled; two of the same key are the same."""

    key: str
    """Hash of the tapes, the compiler, its processor and these sources."""

    @property
    def is_compiled(self) -> bool:
        """Whether its machine code is in the cache."""
        return stored.read(self.key) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Module):
    """The path tracking of a mechanism."""

    newton: Tape = field(compare=False)
    efforts: Tape = field(compare=False)
    columns: Columns = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapJob(Module):
    """A tape for independent samples."""

    tape: Tape = field(compare=False)
    inputs: int = field(compare=False)


def job(newton: Tape, efforts: Tape, columns: Columns) -> Job:
    """Module to compile, for arrays with so many columns."""
    return Job(key=_key(newton, efforts, arrays=columns), newton=newton, efforts=efforts, columns=columns)


def map_job(tape: Tape, inputs: int) -> MapJob:
    """Module to compile, for a tape with so many inputs."""
    return MapJob(key=_key(tape, arrays=inputs), tape=tape, inputs=inputs)


def _key(*tapes: Tape, arrays: object) -> str:
    content = hashlib.sha256(_surroundings())
    for tape in tapes:
        for part in (tape.code, tape.constants, tape.outputs):
            content.update(np.ascontiguousarray(part).tobytes())
    content.update(repr((arrays, lanes_of_a_vector())).encode())
    return content.hexdigest()


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
        q, qd, qdd, out = [_address(x) for x in (*drive, records)]
        lanes, samples, _ = records.shape
        places = (q, qd, qdd, *drive.q.strides[:2], out, *records.strides[:2])
        self.call(tolerance, _WEIGHTS, *places, lanes, samples)


def _address(x: Array) -> int:
    """Address of the first number; for arrays that may be written, in 0.4 of the time of `x.ctypes`.

    Args:
        x: Array [any unit], shape (any,).
    """
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(x.data))
    except (TypeError, ValueError):  # read-only, with gaps or empty
        return int(x.ctypes.data)


_WEIGHTS = WEIGHTS.ctypes.data


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """A compiled tape."""

    call: Any
    """By its address."""
    engine: Any
    """Holds the machine code."""
    outputs: int
    width: int
    """Samples of a vector [-]."""

    def __call__(self, inputs: list[Array]) -> Array:
        """Outputs of the tape.

        Args:
            inputs: Inputs of the tape, in parts [any unit], each of shape (nt, part).

        Returns:
            Outputs [any unit], shape (outputs, nt); samples lie side by side.
        """
        width, nt = self.width, len(inputs[0])
        size = -(-nt // width) * width
        found = np.empty((self.outputs, size + width * (size % PAGE == 0)))
        given = np.empty((sum(x.shape[1] for x in inputs), min(size, BLOCK) + width))
        for start in range(0, nt, BLOCK):
            parts = [x[start : start + BLOCK].T for x in inputs]
            n = parts[0].shape[1]
            np.concatenate(parts, out=given[:, :n])
            given[:, n:] = given[:, n - 1 : n]
            places = given.ctypes.data, found[:, start:].ctypes.data, given.strides[0], found.strides[0]
            self.call(*places, -(-n // width))
        return found[:, :nt]


@lru_cache(KEPT)
def load(job: Job) -> Function:
    """The function of a mechanism, from the cache or compiled."""
    engine = _engine(job, lambda: function(job.newton, job.efforts, job.columns, lanes_of_a_vector()))
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    kinds = (ctypes.c_double, *[pointer] * 4, number, number, pointer, *[number] * 4)
    return Function(call=ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address("track")), engine=engine)


@lru_cache(KEPT)
def load_map(job: MapJob) -> Map:
    """The function of a tape, from the cache or compiled."""
    width = lanes_of_a_vector()
    engine = _engine(job, lambda: map_function(job.tape, job.inputs, width))
    kinds = (*[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3)
    call = ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address("map"))
    return Map(call=call, engine=engine, outputs=len(job.tape.outputs), width=width)


def _engine(module: Module, write: Callable[[], str]) -> Any:
    """Machine code of a module, from the cache or compiled."""
    import llvmlite.binding as llvm

    code = stored.read(module.key)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = _processor()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=name, features=features, opt=OPTIMIZATION, jit=True
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly("" if code else write()), target)
    engine.set_object_cache(lambda _, compiled: stored.write(module.key, compiled), lambda _: code)
    engine.finalize_object()
    return engine
