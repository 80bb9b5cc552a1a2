"""Terms of a URDF in any release of DART from 6.16 on; runs with numpy and DART alone, without loopcheck."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dartpy
import numpy as np

FORMATS = ("URDF",)
MOST = 3.0  # largest position of a joint without a limit [rad or m]
_KEPT: list[Any] = []  # dofs, which releases before 6.20 free with their last name in Python


def read(path: str) -> tuple[Any, Any, Any]:
    """A world, the robot in it, and its dofs."""
    skeleton = getattr(dartpy, "utils", dartpy).DartLoader().parseSkeleton(path)
    if skeleton is None:
        raise ValueError("DART's loader returns no skeleton")
    world = getattr(dartpy, "simulation", dartpy).World()
    world.addSkeleton(skeleton)
    _KEPT.append(skeleton.getDofs())
    return world, skeleton, _KEPT[-1]


def sizes(model: tuple[Any, Any, Any]) -> tuple[int, ...]:
    """Lengths of the arrays of a state: positions, rates."""
    return (model[1].getNumDofs(),) * 2


def states(model: tuple[Any, Any, Any], count: int, rng: Any) -> Iterator[list[Any]]:
    """Positions and rates within the limits of the joints."""
    low = np.maximum(model[1].getPositionLowerLimits(), -MOST)
    high = np.minimum(model[1].getPositionUpperLimits(), MOST)
    for _ in range(count):
        yield [np.clip(0.3 * rng.normal(size=len(low)), low, high), rng.normal(size=len(low))]


def terms(model: tuple[Any, Any, Any], state: Sequence[Any]) -> Mapping[str, tuple[Any, Sequence[str]]]:
    """Terms of the equations of motion at a state, and one step of the world, in the order of their dependence."""
    (world, skeleton, of_robot), (q, v) = model, state
    skeleton.setPositions(q)
    skeleton.setVelocities(v)
    dofs, bodies = [dof.getName() for dof in of_robot], skeleton.getBodyNodes()
    places = [np.array((_T := body.getTransform()).matrix())[:3].ravel() for body in bodies]  # `_T` owns it
    found = {
        "places": (np.array(places), [body.getName() for body in bodies]),
        "M": (np.array(skeleton.getMassMatrix()), dofs),
        "gravity": (np.array(skeleton.getGravityForces()), dofs),
        "bias": (np.array(skeleton.getCoriolisAndGravityForces()), dofs),
    }
    skeleton.computeForwardDynamics()
    found["qacc"] = (np.array(skeleton.getAccelerations()), dofs)
    world.step()
    found["step"] = (np.concatenate([skeleton.getPositions(), skeleton.getVelocities()]), [*dofs, *dofs])
    return found


def fields(model: tuple[Any, Any, Any]) -> Iterator[tuple[str, Any]]:
    """Numbers of the skeleton."""
    yield "mass", np.array([body.getMass() for body in model[1].getBodyNodes()])
    for name in ("getDampingCoefficient", "getSpringStiffness", "getCoulombFriction"):
        yield name[3:], np.array([getattr(dof, name)() for dof in model[2]])
