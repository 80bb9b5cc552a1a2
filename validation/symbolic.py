"""`from loopcheck import symbolic`: the closed-loop equations of a robot as CasADi functions, for optimizers.

A loop is closed by Newton steps on the passive joints. From closed positions, k steps give derivatives along the drives
exactly to the order 2ᵏ − 1: each step doubles the number of correct terms of their Taylor series.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from loopcheck.analytic.batch.expressions import Op
from loopcheck.analytic.batch.tape import ARITHMETIC, Tape
from loopcheck.analytic.batch.trace import trace
from loopcheck.analytic.motion.start import closed_pose
from loopcheck.robots.arrays import Array, frozen
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.validation.common.targets import case_of

STEPS = 2
"""Newton steps of the efforts: exact Jacobians and Hessians along the drives [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbolic:
    """The equations of a robot with n drives and nq joint positions."""

    drives: tuple[str, ...]
    """Names of the drives, in the order of d."""
    q: Array
    """A closed pose to start from [m or rad], shape (nq,)."""
    close: Any
    """CasADi function (q, d) -> joint positions after a Newton step on the loops, drives at d."""
    efforts: Any
    """CasADi function (q, d, dd, ddd) -> efforts of the actuators [N or N m], from positions near those at d."""


def symbolic(
    target: str | Path,
    q: Array | None = None,
    *,
    mode: str = "",
    configuration: str = "",
    actuated: str = "",
    steps: int = STEPS,
) -> Symbolic:
    """The inverse dynamics of a robot with closed loops as CasADi functions, with exact Jacobians and Hessians.

    Args:
        target: Name of a catalogue robot, path of a model file, or folder with a `robot.toml`.
        q: A closed pose at which pivots are chosen [m or rad], shape (nq,); by default near the keyframe of the mode.
        mode: Keyframe; by default the first.
        configuration: Direction of gravity; by default as in the file.
        actuated: Actuated joints, for example J1,J2, instead of the actuators of the file.
        steps: Newton steps on the loops within `efforts`.

    Raises:
        NotRepresentableError: If CasADi is not installed, or cannot be loaded beside OpenSim.
        HarnessError: If the target is bad, the pose is singular or of the wrong shape, or the equations of an element
            are not traced, as in `inverse_dynamics`.
    """
    try:
        import casadi as ca
    except ModuleNotFoundError as error:
        raise NotRepresentableError("symbolic needs CasADi: pip install 'loopcheck[symbolic]'") from error
    except ImportError as error:
        raise NotRepresentableError(
            f"symbolic needs CasADi, which cannot be loaded here: {error}. OpenSim brings a CasADi of its own: use "
            "each in a process of its own"
        ) from error
    case = case_of(target, mode=mode, configuration=configuration, actuated=actuated)
    mechanism = case.mechanism
    pose = closed_pose(mechanism, case.guess) if q is None else frozen(q, (mechanism.nq,), name="q")
    traced, nq, n = trace(mechanism, pose), mechanism.nq, len(mechanism.drives)
    newton, tape = _function(ca, traced.newton, nq + n), _function(ca, traced.efforts, nq + 3 * n)
    near, rates = ca.SX.sym("q", nq), [ca.SX.sym(name, n) for name in ("d", "dd", "ddd")]
    moved = near
    for _ in range(steps):
        moved = newton(ca.vertcat(moved, rates[0]))[:nq]
    effort = tape(ca.vertcat(moved, *rates))[nq : nq + mechanism.na]
    closer = newton(ca.vertcat(near, rates[0]))[:nq]
    return Symbolic(
        drives=tuple(drive.name for drive in mechanism.drives),
        q=np.array(pose),
        close=ca.Function("close", [near, rates[0]], [closer], ["q", "d"], ["closer"]),
        efforts=ca.Function("efforts", [near, *rates], [effort], ["q", "d", "dd", "ddd"], ["effort"], {"cse": True}),
    )


def _function(ca: Any, tape: Tape, inputs: int) -> Any:
    """The outputs of a tape as a function of its inputs."""
    rules: Mapping[int, Callable[[Any, Any, float], Any]] = {
        **ARITHMETIC,
        Op.ABS: lambda x, y, k: ca.fabs(x),
        Op.SQRT: lambda x, y, k: ca.sqrt(x),
        Op.SIN: lambda x, y, k: ca.sin(x),
        Op.COS: lambda x, y, k: ca.cos(x),
        Op.MAX: lambda x, y, k: ca.fmax(x, y),
        Op.MIN: lambda x, y, k: ca.fmin(x, y),
        Op.NUMBER: lambda x, y, k: ca.SX(k),
    }
    x = ca.SX.sym("x", inputs)
    return ca.Function("tape", [x], [ca.vertcat(*tape.run(rules, ca.vertsplit(x)))])
