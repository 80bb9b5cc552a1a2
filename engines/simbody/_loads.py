"""Springs, dampers, external wrenches and held weights as forces of OpenSim."""

from collections.abc import Iterator, Sequence
from typing import Any

from loopcheck.engines.loads import wrenches
from loopcheck.engines.simbody._opensim import opensim, vec3
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import WORLD, Mechanism, PointSpring, Tendon, Wrench


def add_loads(model: Any, mechanism: Mechanism, bodies: Sequence[Any], joints: Sequence[Any]) -> None:
    """Add all forces of a mechanism.

    Args:
        model: OpenSim's model.
        bodies: OpenSim's body of each body.
        joints: OpenSim's joint of each joint.
    """
    forces = [
        *_joint_springs(mechanism, joints),
        *(_tendon(mechanism, tendon, joints) for tendon in mechanism.tendons if tendon.stiffness or tendon.damping),
        *(_point_spring(spring, model, bodies) for spring in mechanism.point_springs),
        *(_wrench(wrench, bodies[wrench.body]) for wrench in wrenches(mechanism)),
    ]
    for k, force in enumerate(forces):
        force.setName(f"force{k}")
        model.addForce(force)


def add_efforts(model: Any, mechanism: Mechanism, joints: Sequence[Any], efforts: Array) -> None:
    """Add constant forces on coordinates.

    Args:
        model: OpenSim's model.
        joints: OpenSim's joint of each joint.
        efforts: The forces, zero on balls and free joints [N or N m], shape (nv,), or (0,) if there are none.
    """
    of_joints = zip(joints, mechanism.dof_slices, strict=True)
    for joint, effort in [(joint, float(effort)) for joint, dofs in of_joints for effort in efforts[dofs] if effort]:
        force = opensim.ExpressionBasedCoordinateForce(joint.getCoordinate().getName(), repr(effort))
        force.setName(f"effort_{joint.getName()}")
        model.addForce(force)


def add_actuator(model: Any, joint: Any) -> Any:
    """Add an actuator on the coordinate of OpenSim's joint."""
    actuator = opensim.CoordinateActuator(joint.getCoordinate().getName())
    actuator.setName(f"actuator_{joint.getName()}")
    model.addForce(actuator)
    return actuator


def _joint_springs(mechanism: Mechanism, joints: Sequence[Any]) -> Iterator[Any]:
    for j, joint in enumerate(mechanism.joints):
        if not joint.stiffness and not joint.damping:
            continue
        force = opensim.SpringGeneralizedForce(joints[j].getCoordinate().getName())
        force.setStiffness(joint.stiffness)
        force.setViscosity(joint.damping)
        force.setRestLength(float(joint.spring_reference[0] - joint.rest_position[0]))
        yield force


def _tendon(mechanism: Mechanism, tendon: Tendon, joints: Sequence[Any]) -> Any:
    """A force along a path with a sum of coordinates as length; OpenSim's coordinates are zero at the references."""
    weights: dict[int, float] = {}
    for j, weight in zip(tendon.length.joints, tendon.length.weights, strict=True):
        weights[j] = weights.get(j, 0.0) + float(weight)
    at_zero = float(mechanism.values_of((tendon.length,), mechanism.rest_position[None])[0, 0])
    path, names, coefficients = opensim.FunctionBasedPath(), opensim.StdVectorString(), opensim.ArrayDouble()
    for j, weight in weights.items():
        names.append(joints[j].getAbsolutePathString() + "/" + joints[j].getCoordinate().getName())
        coefficients.append(weight)
    coefficients.append(at_zero)
    path.setCoordinatePaths(names)
    path.setLengthFunction(opensim.LinearFunction(coefficients))
    force = opensim.ExpressionBasedPathForce()
    force.set_path(path)
    force.setRestingLength(0.0)
    force.setClampStretch(False)
    force.setExpression(_pull(tendon.stiffness, tendon.damping, tendon.rest, ("s", "ldot")))
    return force


def _point_spring(spring: PointSpring, model: Any, bodies: Sequence[Any]) -> Any:
    """A positive OpenSim force pulls the points together."""
    ends = []
    for body, point in spring.ends:
        frame = model.getGround() if body == WORLD else bodies[body]
        ends += [frame.getAbsolutePathString(), vec3(point)]
    pull = _pull(spring.stiffness, spring.damping, spring.rest, ("d", "ddot"))
    return opensim.ExpressionBasedPointToPointForce(*ends, pull)


def _pull(stiffness: float, damping: float, rest: Sequence[float] | Array, names: tuple[str, str]) -> str:
    """The pull of a spring that is slack between two lengths, and of a damper, in the words of OpenSim's parser."""
    length, rate = names
    low, high = (float(x) for x in rest)
    slack = f"min(max({length},{low!r}),{high!r})" if low < high else f"({low!r})"
    return f"{float(stiffness)!r}*({length}-{slack})+{float(damping)!r}*{rate}"


def _wrench(wrench: Wrench, body: Any) -> Any:
    force = opensim.PrescribedForce("load", body)
    force.setPointIsInGlobalFrame(False)
    force.setForceIsInGlobalFrame(True)
    force.setPointFunctions(*_constants(wrench.point))
    force.setForceFunctions(*_constants(wrench.force))
    force.setTorqueFunctions(*_constants(wrench.moment))
    return force


def _constants(values: Array) -> list[Any]:
    return [opensim.Constant(float(x)) for x in values]
