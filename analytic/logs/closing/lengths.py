"""Lengths of spatial tendons in a log of the joints of a file: they follow from the poses."""

from dataclasses import replace
from typing import Any

import numpy as np

from loopcheck.analytic.kinematics.closures import closure_of_rows
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.log import Log
from loopcheck.robots.mechanism import WORLD, JointKind, Mechanism, PathClosure


def with_lengths(mechanism: Mechanism, log: Log) -> Log:
    """The log with the lengths of tendons that are coordinates, if it has the positions of all joints of bodies.

    Rates and accelerations of the lengths are added where those of the joints are logged.
    """
    tree = {joint.name for joint in mechanism.joints if joint.body != WORLD}
    lengths = [joint.name for joint in mechanism.joints if joint.body == WORLD and joint.name not in log.joints]
    if not lengths or not tree <= {*log.joints}:
        return log
    q = np.zeros((len(log.t), mechanism.nq))  # the closures are then open by the lengths
    rates = {name: np.zeros((len(log.t), mechanism.nv)) for name in ("qd", "qdd") if getattr(log, name) is not None}
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        if joint.name in tree:
            of_log = log.columns_of(joint.name)
            q[:, columns] = log.q[:, of_log[0]]
            for name, values in rates.items():
                values[:, dofs] = getattr(log, name)[:, of_log[1]]
    qd = rates.get("qd", np.zeros((len(log.t), mechanism.nv)))
    state, rows = State(mechanism=mechanism, q=q, qd=qd), _rows(mechanism, lengths)
    T = state.every_Phi[:, rows]
    added = {name: (T @ values[..., None])[..., 0] for name, values in rates.items()}
    if "qdd" in added:
        added["qdd"] = added["qdd"] + (state.every_Phi_dot[:, rows] @ qd[..., None])[..., 0]
    motion = {"q": state.gap[:, rows], **added}
    slides: list[JointKind] = ["slide"] * len(lengths)
    longer: dict[str, Any] = {
        name: np.concatenate([getattr(log, name), values], axis=1) for name, values in motion.items()
    }
    return replace(
        log,
        joints=(*log.joints, *lengths),
        kinds=(*log.kinds, *slides),
        errors={name: np.append(of, np.zeros(len(lengths) * (name in motion))) for name, of in log.errors.items()},
        **longer,
    )


def _rows(mechanism: Mechanism, lengths: list[str]) -> list[int]:
    """Rows of Φ that tie the slides of these names to the lengths of their paths, in this order."""
    of_slides = {
        mechanism.joints[closure.slide].name: k
        for k, closure in enumerate(mechanism.closures)
        if isinstance(closure, PathClosure) and closure.slide is not None
    }
    of_rows = closure_of_rows(mechanism)
    return [of_rows.index(of_slides[name]) for name in lengths]
