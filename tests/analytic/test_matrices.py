"""M, C, D, G, A and L against energies, multipliers, the matrices of papers, and differences."""

from pathlib import Path

import numpy as np
import pytest

from loopcheck import Matrices, matrices
from loopcheck.analytic.dynamics.lagrange import Lagrange, lagrange_model
from loopcheck.analytic.dynamics.matrices import dynamic_model
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.papers import zubizarreta2010
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.common.targets import case_of
from tests.conftest import MODELS, CaseMaker

EVERY = 20
"""Every so many samples of a motion."""
H = 1e-5
"""Step of differences [s]."""


def state_of(case: Case, motion: Motion) -> State:
    return State(mechanism=case.mechanism, q=motion.q[::EVERY], qd=motion.qd[::EVERY])


def rows_of(mechanism: Mechanism, model: Matrices) -> Array:
    """Rates of the coordinates per joint velocity, by their names."""
    rows = dict(zip((d.name for d in mechanism.drives), mechanism.rates_of(mechanism.drives), strict=True))
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        axes = {1: [""], 3: [".wx", ".wy", ".wz"], 6: [".vx", ".vy", ".vz", ".wx", ".wy", ".wz"]}
        for k, axis in zip(range(dofs.start, dofs.stop), axes[dofs.stop - dofs.start], strict=True):
            rows.setdefault(joint.name + axis, np.eye(mechanism.nv)[k])
    return np.array([rows[name] for name in model.coordinates])


def want_efforts(case: Case, motion: Motion, *coordinates: str) -> Matrices:
    """The efforts are those of the energies and multipliers."""
    model = dynamic_model(state_of(case, motion), coordinates)
    found = model.efforts(motion.qdd[::EVERY] @ rows_of(case.mechanism, model).T)
    wanted = Lagrange().compute_efforts(case, motion).effort[::EVERY]
    np.testing.assert_allclose(found, wanted, atol=1e-11 * np.abs(wanted).max())
    return model


def test_efforts_are_those_of_the_multipliers(zoo_case: Case, zoo_motion: Motion) -> None:
    want_efforts(zoo_case, zoo_motion)


@pytest.mark.parametrize(
    ("name", "coordinates"),
    [("2pur2rpu", ()), ("2pur2rpu", ("q1", "q3", "q4")), ("slider_crank", ("slider",)), ("four_bar", ("rocker",))],
)
def test_any_coordinates_give_the_same_efforts(name: str, coordinates: tuple[str, ...]) -> None:
    case = case_of(name)
    model = want_efforts(case, prescribe(case), *coordinates)
    assert coordinates in ((), model.coordinates)


def test_every_term_is_that_of_the_energies(zoo_case: Case, zoo_motion: Motion) -> None:
    """The energies of the tree, along the motions that keep the loops closed."""
    state = state_of(zoo_case, zoo_motion)
    model, tree = dynamic_model(state), lagrange_model(zoo_case.mechanism, state.q, state.qd)
    yd, L_T = state.qd @ rows_of(zoo_case.mechanism, model).T, model.L.swapaxes(1, 2)
    np.testing.assert_allclose((model.L @ yd[..., None])[..., 0], state.qd, atol=1e-10 * (1 + np.abs(state.qd).max()))
    np.testing.assert_allclose(model.M, L_T @ tree.M @ model.L, atol=1e-12 * np.abs(tree.M).max())
    np.testing.assert_allclose(model.A, zoo_case.mechanism.selection @ model.L, atol=1e-12)
    for found, wanted in (
        ((model.D @ yd[..., None])[..., 0], tree.dissipation),
        (model.G, tree.gravity - tree.load),
    ):
        np.testing.assert_allclose(
            found, (L_T @ wanted[..., None])[..., 0], atol=1e-11 * (1e-3 + np.abs(wanted).max()) * np.abs(L_T).max()
        )
    np.testing.assert_allclose(model.D, model.D.swapaxes(1, 2), atol=1e-13 * (1 + np.abs(model.D).max()))


@pytest.mark.parametrize("name", ["tendon_hand", "geared_pair", "strutted_four_bar", "spinning_rod"])
def test_the_rate_of_M_less_2C_is_skew(name: str, model_case: CaseMaker) -> None:
    """Also with rotors, and rotors on a tendon."""
    case = model_case(MODELS / f"{name}.xml")
    state = state_of(case, prescribe(case))
    model, mechanism = dynamic_model(state), case.mechanism
    ahead, behind = (
        dynamic_model(
            State(mechanism=mechanism, q=retract(mechanism, state.q, s * H * state.qd), qd=state.qd), model.coordinates
        ).M
        for s in (1, -1)
    )
    skew = (ahead - behind) / (2 * H) - 2 * model.C
    assert np.abs(skew + skew.swapaxes(1, 2)).max() < 1e-7 * (1e-3 + np.abs(model.C).max())
    assert np.abs(model.C).max() > 0 or name == "geared_pair"


def test_the_matrices_of_a_paper_are_its_own() -> None:
    """D, C q̇ and G of (26) of Zubizarreta et al. 2010, whose D is M here, in the motors."""
    case = case_of("3rrr", mode="pmp", configuration="vertical")
    motion = prescribe(case)
    state = state_of(case, motion)
    model = dynamic_model(state, ("qa1", "qa2", "qa3"))
    p, mechanism = zubizarreta2010.parameters(case.mechanism), case.mechanism
    yd = state.qd @ rows_of(mechanism, model).T
    x, q = zubizarreta2010.positions(p, state.q @ rows_of(mechanism, model).T, zubizarreta2010.passive_guess(case))
    at = zubizarreta2010.kinematics_of(p, x, q, np.zeros_like(q))
    qd = (at.T @ yd[..., None])[..., 0]
    paper = zubizarreta2010.active_model(p, x, q, qd, g=9.81)
    np.testing.assert_allclose(model.M, paper.D, atol=1e-12 * np.abs(paper.D).max())
    np.testing.assert_allclose(model.G, paper.G, atol=1e-11 * np.abs(paper.G).max())
    np.testing.assert_allclose(model.C @ yd[..., None], paper.C @ yd[..., None], atol=1e-10)


def test_positions_of_the_drives_alone_close_the_loops_on_the_branch_of_the_mode() -> None:
    case = case_of("3prr", mode="minus")
    motion = prescribe(case)
    Y = case.mechanism.rates_of(case.mechanism.drives)
    q, qd = motion.q @ Y.T, motion.qd @ Y.T
    by_drives = matrices("3prr", q, qd, mode="minus")
    np.testing.assert_allclose(by_drives.M, matrices("3prr", motion.q, motion.qd).M, atol=1e-12)
    single = matrices("3prr", q[7], qd[7], mode="minus", configuration="vertical")
    np.testing.assert_allclose(single.M[0], by_drives.M[7], atol=1e-12)
    assert np.abs(single.G).max() > 1
    assert not by_drives.G.any()


def test_actuated_joints_of_the_user_and_frames_with_units(model_case: CaseMaker) -> None:
    q = prescribe(model_case(MODELS / "four_bar.xml")).q[:1]
    model = matrices(MODELS / "four_bar.xml", q, np.zeros((1, 3)), actuated="rocker")
    assert model.coordinates == model.actuators == ("rocker",)
    assert [*model.frame("M").columns, *model.frame("M").index] == ["rocker [rad/s²]", "rocker [N m]"]
    assert [*model.frame("A").columns, *model.frame("A").index] == ["rocker [rad/s]", "rocker [rad/s]"]
    assert (model.frame("L").shape, [*model.frame("G").columns]) == ((3, 1), ["G"])
    prr = matrices("3prr", [0.1595] * 3, [0.0] * 3)
    assert [prr.frame("C").index[0], prr.frame("C").columns[0]] == ["q1 [N]", "q1 [m/s]"]
    assert prr.frame("L").index[1] == "q4 [rad/s]"
    np.testing.assert_array_equal(prr.frame("M").to_numpy(), prr.M[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": [1.0, 2.0]}, "q and qd must have columns for all joints, 7 and 7, or for the drives, 3 and 3"),
        ({"qd": np.zeros((2, 3))}, r"and as many rows, got \(1, 3\) and \(2, 3\)"),
        ({"q": [np.nan] * 3}, "q: numbers must be finite"),
        ({"coordinates": ("q1", "elbow")}, "unknown coordinate: 'elbow'. Known: q1, q2, q3, q4"),
        ({"coordinates": ("q1", "q2")}, "coordinates: must be 3, one for each degree of freedom, got 2: q1, q2"),
        ({"coordinates": ("q1", "q2", "q1")}, "sample 0 is singular: q1, q2, q1 do not determine the motion there"),
        ({"q": [9.0] * 3}, "a sample cannot be reached from a nearby pose"),
        ({"q": np.zeros(7), "qd": np.zeros(7)}, "loops must be closed to 1e-09, got 0.476 at sample 0"),
        ({"mode": "sideways"}, "unknown mode"),
    ],
)
def test_bad_input_is_one_line(change: dict[str, object], message: str) -> None:
    given = {"q": [0.1595] * 3, "qd": [0.0] * 3, **change}
    with pytest.raises(HarnessError, match=message) as error:
        matrices("3prr", **given)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_rates_that_open_the_loops_are_refused() -> None:
    with pytest.raises(HarnessError, match=r"rates of the loops must be closed to 1e-09, got 0\.\d+ at sample 0"):
        matrices("four_bar", [*case_of("four_bar").guess], [1.0, 0.0, 0.0])


def test_positions_of_drives_do_not_place_what_nothing_drives() -> None:
    with pytest.raises(HarnessError, match=r"q must have columns for all joints, \d+, because no drive moves some"):
        matrices(MODELS / "spinning_rod.xml", [0.0], [0.0])


def test_a_floating_base_has_three_lengths_and_three_angles(model_case: CaseMaker) -> None:
    case = model_case(MODELS / "floating_rotors.xml")
    state = State.at_rest(case.mechanism, case.guess[None])
    model = dynamic_model(state)
    units = dict(zip(model.coordinates, model.units, strict=True))
    assert [units[f"base.{axis}"] for axis in ("vx", "vy", "vz", "wx", "wy", "wz")] == [*"mmm", *["rad"] * 3]
    assert model.undriven == 9


def test_accelerations_must_fit() -> None:
    model = matrices("3prr", [0.1595] * 3, [0.0] * 3)
    for bad in (np.zeros(2), np.zeros((2, 3)), [np.inf] * 3):
        with pytest.raises(HarnessError, match="acceleration: "):
            model.efforts(bad)
    with pytest.raises(HarnessError, match=r"unknown matrix: 'K'. Known: M, C, D, G, A, L"):
        model.frame("K")


def test_a_singular_sample_is_named(tmp_path: Path) -> None:
    """A flat parallelogram has a second motion."""
    flat = (
        '<mujoco><worldbody><body name="a"><joint name="a" axis="0 0 1"/><geom size=".1" mass="1" pos=".5 0 0"/>'
        '<body name="b" pos="1 0 0"><joint name="b" axis="0 0 1"/><geom size=".1" mass="1" pos="1 0 0"/>'
        '<body name="c" pos="2 0 0"><joint name="c" axis="0 0 1"/><geom size=".1" mass="1"/></body></body>'
        '</body></worldbody><equality><connect body1="c" anchor="-1 0 0"/></equality>'
        '<actuator><motor joint="a"/></actuator></mujoco>'
    )
    path = tmp_path / "parallelogram.xml"
    path.write_text(flat, encoding="utf-8")
    u = 0.5
    regular, dead = np.array([u, -u, u]), np.zeros(3)
    message = "sample 1 is singular: the rank of the closure equations must be 2 everywhere"
    with pytest.raises(HarnessError, match=message):
        matrices(path, np.array([regular, dead, regular]), np.zeros((3, 3)), coordinates=("a",))
    with pytest.raises(HarnessError, match=message.replace("1", "0", 1)):
        matrices(path, dead, np.zeros(3))
