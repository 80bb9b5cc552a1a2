"""Trees that Newton's importers make of URDF, MJCF and USD; execnet runs this module in the Python of Newton.

Channel: receives the path of the model, whether inertias stay as they are in the file, names of joints, whether each
slides, and per state a list of their positions, counted from the pose of the file [rad or m], and of their
accelerations [rad/s² or m/s²]. Sends the efforts of these joints at rest [N or N m], a list per state, and the number
of kept loops; or the reason why there are none.
"""

from collections.abc import Iterator, Sequence
from typing import Any


def efforts(
    path: str, exact: bool, names: Sequence[str], slides: Sequence[bool], q: Any, qdd: Any
) -> tuple[list[list[float]], int]:
    """Efforts of the joints of the imported trees, and the number of loops."""
    import newton  # noqa: TID251
    import numpy as np
    import warp  # noqa: TID251

    builder = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(builder)  # closures of MJCF
    if path.endswith(".xml"):
        builder.add_mjcf(path, parse_meshes=False, parse_visuals=False)
    else:
        (builder.add_urdf if path.endswith(".urdf") else builder.add_usd)(path)
    if exact:
        builder.inertia_absolute_tolerance = 1e-30
        builder.inertia_relative_tolerance = builder.inertia_correction = 0.0
    model = builder.finalize(device="cpu")
    places = dict(_places(builder, names, slides))
    missing = [name for name in names if name not in places]
    if missing:
        raise ValueError(f"joint '{missing[0]}' is missing")
    coordinates, dofs = (np.array([places[name][k] for name in names]) for k in range(2))
    state, count, size = model.state(), model.articulation_count, model.max_dofs_per_articulation
    rest = np.array(builder.joint_q)
    starts = np.array(builder.joint_qd_start)[np.array(builder.articulation_start)]
    result = []
    for positions, rates in zip(np.array(q), np.array(qdd), strict=True):
        values, accelerations = rest.copy(), np.zeros(model.joint_dof_count + size)
        values[coordinates] += positions
        accelerations[dofs] = rates
        state.joint_q.assign(values.astype(np.float32))
        state.joint_qd.zero_()
        newton.eval_fk(model, state.joint_q, state.joint_qd, state)
        M = warp.zeros((count, size, size), dtype=float, device="cpu")
        weight = warp.zeros(model.joint_dof_count, dtype=float, device="cpu")
        newton.eval_inverse_dynamics_passive(model, state, mass_matrix=M, gravity_force=weight)
        tau = np.zeros(model.joint_dof_count + size)
        for start, inertia in zip(starts, M.numpy().astype(float), strict=True):
            tau[start : start + size] += inertia @ accelerations[start : start + size]
        tau[: model.joint_dof_count] += weight.numpy()
        stretch = values[coordinates] - model.joint_rest_q.numpy()[coordinates]
        result.append((tau[dofs] + model.joint_stiffness.numpy()[dofs] * stretch).tolist())
    kinds = builder.custom_attributes["mujoco:equality_constraint_target"].values or []
    outside = [articulation for articulation in builder.joint_articulation if articulation < 0]
    followers = [leader for leader in builder.joint_mimic_joint if leader >= 0]
    return result, len(outside) + len(followers) + sum(target is None or target < 0 for target in kinds)


def _places(builder: Any, names: Sequence[str], slides: Sequence[bool]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Places of position and velocity of each joint by name.

    A body with several joints of MJCF has a single joint, named after them, that slides first.
    """
    for label, q, qd in zip(builder.joint_label, builder.joint_q_start, builder.joint_qd_start, strict=True):
        for first in range(len(names)):
            for last in range(first + 1, len(names) + 1):
                if not label.endswith("/" + "_".join(names[first:last])):
                    continue
                order = sorted(range(first, last), key=lambda j: not slides[j])
                yield from ((names[j], (q + k, qd + k)) for k, j in enumerate(order))


if __name__ == "__channelexec__":
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for call in channel:  # type: ignore[name-defined] # noqa: F821
        try:
            channel.send(efforts(*call))  # type: ignore[name-defined] # noqa: F821
        except Exception as error:  # whatever an importer raises is its result
            channel.send(f"{type(error).__name__}: {error}")  # type: ignore[name-defined] # noqa: F821
