"""Newton 1.8.0, SolverSteel and SolverKamino: the spring of a joint (`stiffness`, `rest_q`) is ignored silently."""

import warnings

import warp as wp

wp.config.quiet = True
import newton  # noqa: E402

INERTIA, STIFFNESS, REST, STEP = 0.02, 10.0, 0.5, 1e-3


def left_of_spring(name: str) -> float:
    """Velocity that a solver gives a rod in a step over that of the moment of its spring [-]."""
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    moment = wp.mat33(INERTIA, 0, 0, 0, INERTIA, 0, 0, 0, INERTIA)
    link = builder.add_link(mass=1.0, inertia=moment, lock_inertia=True)
    axis = newton.ModelBuilder.JointDofConfig(axis=(0.0, 1.0, 0.0), stiffness=STIFFNESS, rest_q=REST)
    builder.add_articulation([builder.add_joint_revolute(-1, link, axis=axis)])
    model = builder.finalize(device="cpu")
    before, after = model.state(), model.state()
    newton.eval_fk(model, model.joint_q, model.joint_qd, before)
    getattr(newton.solvers, name)(model).step(before, after, model.control(), None, STEP)
    newton.eval_ik(model, after, after.joint_q, after.joint_qd)
    return float(after.joint_qd.numpy()[0]) / (STIFFNESS * REST * STEP / INERTIA)


with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    parts = {
        name: left_of_spring(name) for name in ("SolverMuJoCo", "SolverFeatherstone", "SolverKamino", "SolverSteel")
    }
print(f"warnings that name a spring: {sum('stiffness' in str(warning.message) for warning in told)}")
for solver, part in parts.items():
    print(f"{solver}, part of the spring's force that acts [-]: {part:.2f}")
