"""Pinocchio 4.1.0: a 3D constraint between two bodies spoils the derivative of accelerations along the first dof."""

import numpy as np
import pinocchio as pin


def error(slide_first: bool) -> float:
    """Largest error of the derivative along the three hinges of an open loop, relative to its largest entry."""
    model, here = pin.Model(), pin.SE3.Identity()
    if slide_first:  # a body of its own, which takes the place of the first dof
        model.appendBodyToJoint(model.addJoint(0, pin.JointModelPZ(), here, "slide"), pin.Inertia.Identity(), here)
    ids = {0: 0}
    for k, (parent, x) in enumerate([(0, 0.0), (1, 0.2), (0, 0.3)], 1):  # crank, rod, rocker
        ids[k] = model.addJoint(ids[parent], pin.JointModelRZ(), pin.SE3(np.eye(3), np.array([x, 0, 0])), f"{k}")
        model.appendBodyToJoint(ids[k], pin.Inertia(1.0, np.array([0.1, 0.02, 0.0]), 0.1 * np.eye(3)), here)
    rod, rocker = (pin.SE3(np.eye(3), np.array([x, 0, 0])) for x in (0.25, 0.2))
    pins, kind = pin.StdVec_RigidConstraintModel(), pin.ContactType.CONTACT_3D
    pins.append(pin.RigidConstraintModel(kind, model, ids[2], rod, ids[3], rocker, pin.ReferenceFrame.LOCAL))
    q, v, tau = np.linspace(0.3, 1.1, model.nv), np.zeros(model.nv), np.linspace(-1, 1, model.nv)

    def solve(q: np.ndarray) -> tuple:
        data, datas, proximal = (
            model.createData(),
            pin.StdVec_RigidConstraintData(),
            pin.ProximalSettings(0, 0, 1e-8, 20),
        )
        datas.append(pins[0].createData())
        pin.initConstraintDynamics(model, data, pins, datas)
        return pin.constraintDynamics(model, data, q, v, tau, pins, datas, proximal).copy(), data, datas, proximal

    _, *rest = solve(q)
    of_q = pin.computeConstraintDynamicsDerivatives(model, rest[0], pins, *rest[1:])[0][-3:, -3:]
    steps = 1e-6 * np.eye(model.nv)[-3:]
    wanted = np.array([(solve(q + step)[0] - solve(q - step)[0]) / 2e-6 for step in steps]).T[-3:]
    return float(abs(of_q - wanted).max() / abs(wanted).max())


print(f"relative error with another joint first: {error(True):.1e}")
print(f"relative error with the crank first: {error(False):.4g}")
