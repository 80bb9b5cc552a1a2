"""Terms of a model file in any release of Pinocchio from 2.6 on.

Runs in environments of other releases with numpy and Pinocchio alone: nothing of loopcheck may be imported.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pinocchio as pin

FORMATS = ("URDF", "MJCF")
STEP = 0.01
"""Time over which positions are integrated [s]."""
MOST = 3.0
"""Largest position of a joint without a limit [rad or m]."""
FIELDS = "armature damping friction rotorInertia rotorGearRatio lowerPositionLimit upperPositionLimit effortLimit"


def read(path: str) -> Any:
    """The model with a fixed base unless the file has a free one; raises the error of Pinocchio."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 -- releases accept texts only
        is_mjcf = "<mujoco" in file.read().split("<robot")[0]
    return pin.buildModelFromMJCF(path) if is_mjcf else pin.buildModelFromUrdf(path)


def sizes(model: Any) -> tuple[int, ...]:
    """Lengths of the arrays of a state: positions, rates."""
    return int(model.nq), int(model.nv)


def states(model: Any, count: int, rng: Any) -> Iterator[list[Any]]:
    """Positions and rates within the limits of the joints."""
    low, high = np.maximum(model.lowerPositionLimit, -MOST), np.minimum(model.upperPositionLimit, MOST)
    for _ in range(count):
        q = pin.integrate(model, pin.neutral(model), 0.3 * rng.normal(size=model.nv))
        for joint in list(model.joints)[1:]:
            if joint.nq == joint.nv == 1 and low[joint.idx_q] < high[joint.idx_q]:
                q[joint.idx_q] = np.clip(q[joint.idx_q], low[joint.idx_q], high[joint.idx_q])
        yield [q, rng.normal(size=model.nv)]


def terms(model: Any, state: Sequence[Any]) -> Mapping[str, tuple[Any, Sequence[str]]]:
    """Terms of the equations of motion at a state, in the order in which they follow from each other."""
    (q, v), data, dofs = state, model.createData(), _dofs(model)
    joints = list(model.names)[1:]
    pin.forwardKinematics(model, data, q, v)
    places = [placement.homogeneous[:3].ravel() for placement in list(data.oMi)[1:]]
    M = np.array(pin.crba(model, data, q))
    M = np.triu(M) + np.triu(M, 1).T
    return {
        "places": (np.array(places), joints),
        "M": (M, dofs),
        "gravity": (np.array(pin.computeGeneralizedGravity(model, model.createData(), q)), dofs),
        "bias": (np.array(pin.nonLinearEffects(model, model.createData(), q, v)), dofs),
        "qacc": (np.array(pin.aba(model, model.createData(), q, v, np.zeros(model.nv))), dofs),
        "step": (np.array(pin.integrate(model, q, STEP * v)), ["positions"]),
    }


def fields(model: Any) -> Iterator[tuple[str, Any]]:
    """Numbers of the model."""
    yield "inertias", np.array([inertia.toDynamicParameters() for inertia in model.inertias])
    yield "jointPlacements", np.array([placement.homogeneous for placement in model.jointPlacements])
    for name in FIELDS.split():
        with contextlib.suppress(AttributeError):
            yield name, np.array(getattr(model, name))


def _dofs(model: Any) -> list[str]:
    names: list[str] = []
    for name, joint in zip(list(model.names)[1:], list(model.joints)[1:], strict=True):
        names += [str(name)] if joint.nv == 1 else [f"{name}[{k}]" for k in range(joint.nv)]
    return names
