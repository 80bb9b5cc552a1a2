"""Reads a model in a process of its own first: MuJoCo's parser can crash, hang or fill the memory on a hostile file."""

import multiprocessing
import os
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest.mock import patch

from loopcheck.robots.errors import HarnessError, MechanismError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.processes import end_with_parent, exit_reason, limit_resource, main_left_out

SECONDS = 60.0
"""Time limit of a test reading [s]; a real robot with all its meshes takes a few seconds."""
MEMORY = 8 << 30
"""Address space of a test reading [byte]."""


def want_readable(path: Path, actuated: tuple[str, ...] = (), context: Any = None) -> None:
    """Check that a model can be read, without harm to this process.

    Args:
        path: The MJCF.
        actuated: Joints that get a motor each, instead of the actuators of the MJCF.
        context: Start method of the reading process, as in `multiprocessing`; by default a new interpreter, which takes
            as long as its imports.

    Raises:
        MechanismError: If the model is refused, or MuJoCo's compiler crashes, hangs or runs out of memory on it.
    """
    context = context or multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    reader = context.Process(target=_read, args=(path, actuated, sender), daemon=True)
    with (
        main_left_out(),
        patch.dict(os.environ, MUJOCO_GL="disable"),
    ):  # a reader draws nothing, and OpenGL loads slowly
        reader.start()
    sender.close()  # so that a crash of the reader ends the pipe
    try:
        if not receiver.poll(SECONDS):
            raise MechanismError(f"{path}: MuJoCo's compiler exceeded the time limit of {SECONDS:g} s")
        refusal = receiver.recv()
    except EOFError as error:
        reader.join()
        raise MechanismError(f"{path}: MuJoCo's compiler crashed: {exit_reason(reader.exitcode)}") from error
    finally:
        reader.kill()
        reader.join()
        receiver.close()
    if refusal is not None:
        raise refusal


def _read(path: Path, actuated: tuple[str, ...], sender: Connection) -> None:
    end_with_parent()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # what a crash prints is not for the user, and /dev/stdin is not a model
        os.dup2(nothing, stream)
    limit = MEMORY
    if sys.platform != "win32":
        limit = limit_resource("RLIMIT_AS", MEMORY)
        limit_resource("RLIMIT_CORE", 0)
    try:
        read_mechanism(ModelFile(path=path, actuated=actuated))
    except HarnessError as error:
        sender.send(error)
    except MemoryError:
        sender.send(MechanismError(f"{path}: MuJoCo's compiler exceeded the memory limit of {limit / 2**30:.3g} GiB"))
    else:
        sender.send(None)
