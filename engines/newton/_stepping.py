"""Stepping of Newton: its solver, its step, and its number of iterations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopcheck.engines.newton._newton import newton, warp

STEP = 2e-3
"""Step that its examples come near to: 60 to 100 Hz in 4 to 10 sub-steps [s]."""
MAXIMAL = frozenset({"kamino"})
"""Solvers with the states of bodies as state."""
DESCRIPTIONS: Mapping[str, str] = {
    "kamino": "SolverKamino with default settings: PADMM to 1e-6, at most {iterations} iterations",
    "mujoco": "SolverMuJoCo as it comes, {library}: implicitfast, loops as soft as by default",
    "mujoco_warp": "SolverMuJoCo as it comes, {library}: implicitfast, loops as soft as by default",
    "steel": "SolverSteel as it comes: projected Gauss-Seidel, {iterations} iterations, regularization 1e-6, "
    "Baumgarte 0.2",
}
"""Description of each solver."""
ITERATIONS: Mapping[str, int] = {"kamino": 200, "steel": 12}
"""Default iterations of the solvers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepping:
    """A solver, and how it steps."""

    solver: str
    """Its name; `mujoco` is MuJoCo's C library on machines without a GPU, `mujoco_warp` never."""
    step: float = STEP
    """Length of a step [s]."""
    iterations: int = 0
    """Of Kamino or Steel in a step, at most [-]; 0 for their default."""

    @property
    def most_iterations(self) -> int:
        """Of its solver in a step; 0 if given by the model [-]."""
        return self.iterations or ITERATIONS.get(self.solver, 0)

    @property
    def description(self) -> str:
        """Description in words."""
        library = "by MuJoCo's C library" if self.is_library else "by MuJoCo Warp"
        return DESCRIPTIONS[self.solver].format(library=library, iterations=self.most_iterations)

    @property
    def is_library(self) -> bool:
        """Whether MuJoCo's C library steps."""
        return self.solver == "mujoco" and not warp.get_device().is_cuda

    def made(self, model: Any) -> Any:
        """The solver of a model, with its own settings but these.

        Args:
            model: Newton's `Model`.
        """
        solvers = newton.solvers
        match self.solver:
            case "kamino":
                config = solvers.SolverKamino.Config.from_model(model)
                config.padmm.max_iterations = self.most_iterations
                return solvers.SolverKamino(model, config=config)
            case "steel":
                return solvers.SolverSteel(model, iterations=self.most_iterations)
            case _:
                return solvers.SolverMuJoCo(model, use_mujoco_cpu=self.is_library)

    def iterations_of(self, solver: Any) -> float:
        """Number of iterations of a solver in its last step [-]; NaN for Steel, which has only fast sweeps.

        Args:
            solver: Result of `made`.
        """
        match self.solver:
            case "kamino":
                return float(solver._solver_kamino.solver_status.numpy()["iterations"].max())
            case "steel":
                return np.nan
            case _:
                made = solver.mj_data.solver_niter if self.is_library else solver.mjw_data.solver_niter.numpy()
                return float(max(made.max(), 1))
