"""Newton's mass matrix, bias and Jacobians of the loops' points at the exact state; no solver takes part."""

from engines.equations import kkt_history
from engines.newton._equations import equations
from engines.newton._model import guarded
from engines.silence import silenced
from robots.efforts import EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case

SETTINGS = {
    "precision": "single: Newton has no other",
    "tree": "eval_inverse_dynamics_passive at the exact state",
    "springs and dampers": "written here from Newton's own values",
    "loop Jacobian": "eval_jacobian of both ends of each closure",
    "J̇q̇": "J q̇ differenced along q̇, to 0.1 rad or m on a side",
}


class NewtonKktSingle(Source):
    """Efforts from Newton's matrices in single precision, projected on the motions that keep its loops closed."""

    name = "newton/kkt_single"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        with guarded(self.name), silenced():
            return kkt_history(self.name, equations(case.mechanism), motion, SETTINGS)
