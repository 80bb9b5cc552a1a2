"""Efforts from the engine's matrices, projected on the motions that keep its loops closed."""

from loopcheck.engines.equations import Kkt
from loopcheck.engines.mujoco.equations import MujocoEquations
from loopcheck.engines.mujoco.model import guarded

KKT = Kkt(
    name="mujoco/kkt",
    equations=MujocoEquations,
    guarded=guarded,
    settings={
        "J̇q̇": "mj_objectAcceleration of the ends, plus the curvature of polynomials (missing in MuJoCo)",
    },
)
