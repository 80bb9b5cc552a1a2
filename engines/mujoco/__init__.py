"""MuJoCo, from the MJCF itself."""

from engines.contract import Audit, Causes, Engine, Faults, FreeMotion, Plant, Refinements, Renderer
from engines.tuning import Tuning


class Mujoco(Engine):
    """See `engines.contract.Engine`."""

    name = "mujoco"
    requires = "mujoco"
    extra = "mujoco"
    distribution = "mujoco"
    packages = frozenset({"mujoco"})
    lineage = "MuJoCo"
    shares = ("loads", "gravity")
    simulating = frozenset({"as_is", "forward"})
    advice = (
        "MuJoCo: hold each actuated joint by a joint equality and read its constraint force after mj_forward. "
        "Before each step set its constant to x - qpos0 + (B v + a) / (K imp), with x, v, a the motion wanted "
        "and K, B, imp those of its row in efc_KBIP. Targets that move: as its second joint take a hinge that "
        "turns at 1 rad/s with an armature of 1e16 (to whose inertia a tolerance is relative; 0 is not), and "
        "as its polynomial of the angle since the beginning of the step the p with K imp p + B dp/dt = K imp "
        "(x - qpos0) + B v + a at the beginning, in the middle and at the end. Multiply body_invweight0 and "
        "dof_invweight0 of the compiled model where the table says so. All equalities get the solref and "
        "solimp given."
    )

    def audit(self) -> Audit:
        """See `Engine.audit`."""
        from engines.mujoco import audit

        return audit

    def refinements(self) -> Refinements:
        """See `Engine.refinements`."""
        from engines.mujoco import refinements

        return refinements

    def faults(self) -> Faults:
        """See `Engine.faults`."""
        from engines.mujoco import faults

        return faults

    def free_motion(self) -> FreeMotion:
        """See `Engine.free_motion`."""
        from engines.mujoco import free_motion

        return free_motion

    def causes(self) -> Causes:
        """See `Engine.causes`."""
        from engines.mujoco import causes

        return causes

    def tuning(self) -> Tuning:
        """See `Engine.tuning`."""
        from engines.mujoco import tuning

        return tuning

    def plant(self) -> Plant:
        """See `Engine.plant`."""
        from engines.mujoco import plant

        return plant

    def renderer(self) -> Renderer:
        """See `Engine.renderer`."""
        from engines.mujoco import renderer

        return renderer


ENGINE = Mujoco()
