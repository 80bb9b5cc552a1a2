"""How Newton steps: by which of its solvers, how far at once, and with how many iterations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.newton._newton import newton, warp

STEP = 2e-3
"""Step that its examples come near to: 60 to 100 Hz in 4 to 10 sub-steps [s]."""
MAXIMAL = frozenset({"kamino"})
"""Solvers whose state is that of the bodies."""
SETTINGS: Mapping[str, str] = {
    "kamino": "SolverKamino as it comes: PADMM to 1e-6, {iterations} iterations at most",
    "mujoco": "SolverMuJoCo as it comes, {library}: implicitfast, loops as soft as by default",
    "mujoco_warp": "SolverMuJoCo as it comes, {library}: implicitfast, loops as soft as by default",
    "steel": "SolverSteel as it comes: projected Gauss-Seidel, {iterations} iterations, regularization 1e-6, "
    "Baumgarte 0.2",
}
"""What the solvers are, in words."""
ITERATIONS: Mapping[str, int] = {"kamino": 200, "steel": 12}
"""Of the solvers as they come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepping:
    """A solver, and how it steps."""

    solver: str
    """Its name; `mujoco` is MuJoCo's C library where there is no GPU, `mujoco_warp` never."""
    step: float = STEP
    """How long a step is [s]."""
    iterations: int = 0
    """Of Kamino or Steel in a step, at most [-]; 0 for as many as they come with."""

    @property
    def most_iterations(self) -> int:
        """Of its solver in a step; 0 where it is told by the model [-]."""
        return self.iterations or ITERATIONS.get(self.solver, 0)

    @property
    def description(self) -> str:
        """What it is, in words."""
        library = "by MuJoCo's C library" if self.is_library else "by MuJoCo Warp"
        return SETTINGS[self.solver].format(library=library, iterations=self.most_iterations)

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
        """How many iterations a solver made in its last step [-]; NaN for Steel, whose sweeps take no time to speak of.

        Args:
            solver: As `made` makes it.
        """
        match self.solver:
            case "kamino":
                return float(solver._solver_kamino.solver_status.numpy()["iterations"].max())
            case "steel":
                return np.nan
            case _:
                made = solver.mj_data.solver_niter if self.is_library else solver.mjw_data.solver_niter.numpy()
                return float(max(made.max(), 1))
