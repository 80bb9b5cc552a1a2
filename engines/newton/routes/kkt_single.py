"""Newton's mass matrix, bias and Jacobians of the loops' points at the exact state; no solver takes part."""

from loopcheck.engines.boundary import silenced
from loopcheck.engines.equations import kkt_history
from loopcheck.engines.newton._equations import equations
from loopcheck.engines.newton._model import guarded
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

SETTINGS = {
    "precision": "single (the only precision of Newton)",
    "tree": "eval_inverse_dynamics_passive at the exact state",
    "springs and dampers": "computed by loopcheck from Newton's values",
    "loop Jacobian": "eval_jacobian of both ends of each closure",
    "J̇q̇": "finite difference of J q̇ along q̇, 0.1 rad or m to each side",
}


class NewtonKktSingle(Source):
    """Efforts from Newton's matrices in single precision, projected on the motions that keep its loops closed."""

    name = "newton/kkt_single"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        with guarded(self.name), silenced():
            return kkt_history(self.name, equations(case.mechanism), motion, SETTINGS)
