"""Pinocchio's loop-constrained articulated-body algorithm at the exact state, inverted by unit efforts.

The algorithm gives the accelerations of the closed loop under given efforts, without a mass matrix. They are affine in
the efforts: a simulation without efforts, and with each actuator alone, gives the map that is solved for the efforts
that accelerate the drives as prescribed.
"""

from typing import Any

import numpy as np
import pinocchio as pin

from loopcheck.engines.equations import STATE, state_in_words
from loopcheck.engines.pinocchio._equations import PinocchioEquations, equations
from loopcheck.engines.pinocchio._simulation import least_mobility, want_rigid
from loopcheck.engines.pinocchio._tree import guarded, load_forces
from loopcheck.engines.projection import RANK_TOLERANCE, loop_motions
from loopcheck.robots.arrays import Array, Efforts, JointAccelerations, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation, EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

MU = 0.1
"""Regularization of a proximal iteration, relative to the least mobility of the loops in the initial state [-]."""
ACCURACY = 1e-14
"""Residual at which the proximal iterations stop, absolute and relative."""
LIMIT = 4000
"""Most proximal iterations; a few dozen suffice unless the loops form a long chain."""


class PinocchioLcaba(Source):
    """Efforts that give the drives their accelerations by Pinocchio's loop-constrained articulated-body algorithm."""

    name = "pinocchio/lcaba"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        want_rigid(mechanism, ())
        with guarded(self.name):
            terms, gap, efforts = equations(mechanism), Deviation(), []
            mu = MU * least_mobility(terms.tree, terms.loops, terms.tree.positions(motion.q[0]))
            proximal = pin.ProximalSettings(ACCURACY, ACCURACY, mu, LIMIT)
            W, scale = mechanism.rates_of(mechanism.drives), mechanism.effort_scales
            for q, qd, qdd in zip(motion.q, motion.qd, motion.qdd, strict=True):
                gap = gap.or_worse(terms.opening(q))
                v = loop_motions(terms.resolved_jacobian(q), W).velocities(qd)
                bias, *columns = (_accelerations(terms, proximal, q, v, tau) for tau in _tried(scale))
                A = W @ (np.transpose(columns) - bias[:, None])
                size = np.linalg.norm(A, axis=1)
                y = np.linalg.lstsq(A / size[:, None], W @ (qdd - bias) / size, rcond=RANK_TOLERANCE)[0]
                efforts.append(scale * y)
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in mechanism.actuators),
            t=motion.t,
            effort=np.array(efforts),
            closure_drift=gap,
            own_rows=True,
            settings={
                "solver": f"lcaba, mu {MU:g} of the smallest mobility in the initial state, proximal iterations to "
                f"{ACCURACY:g}, at most {LIMIT}, no Baumgarte feedback",
                "loops": "a RigidConstraintModel per closure, 3D or 6D",
                "state": STATE,
                "efforts": "inverse of the accelerations of the drives under unit efforts, of least norm",
                "loads": "springs, dampers, external wrenches and gravity compensation as efforts on the joints",
            },
            note=state_in_words(mechanism),
        )


def _tried(scale: Array) -> Array:
    """No effort, then each actuator alone with its scale [N or N m], shape (1 + na, na)."""
    return np.vstack([np.zeros(len(scale)), np.diag(scale)])


def _accelerations(
    terms: PinocchioEquations, proximal: Any, q: JointPositions, qd: JointVelocities, effort: Efforts
) -> JointAccelerations:
    """Accelerations of the closed loop under efforts of the actuators.

    Each call gets new data (known issue pinocchio-lcaba-second-call).
    """
    tree = terms.tree
    models, datas = terms.loops.models, terms.loops.datas
    data, force = tree.model.createData(), load_forces(tree, q, qd) + terms.mechanism.selection.T @ effort
    pin.computeJointMinimalOrdering(tree.model, data, models)
    return np.array(pin.lcaba(tree.model, data, tree.positions(q), qd, force, models, datas, proximal))
