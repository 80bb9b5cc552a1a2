"""Derivatives of engines: faults that upstream projects have shipped are caught and named."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loopcheck.analytic.dynamics.forward import accelerations_by_multipliers
from loopcheck.analytic.dynamics.lagrange import lagrange_model
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.engines.declarations import ACCELERATION, FORCE, Differentiated
from loopcheck.engines.mujoco import gradients as mujoco
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import NotFoundError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.frame.study import run_study
from loopcheck.validation.studies.gradients.measure import LIMIT, fault_of, judged
from loopcheck.validation.studies.gradients.reference import Sample, sample_at, sample_of
from loopcheck.validation.studies.gradients.study import GradientsStudy, summary
from tests.conftest import MODELS, CaseMaker
from tests.cpu_time import extended_but

STEP = 1e-5
"""Step of differences in the formula below [any unit]."""
DISPLACED = 0.02
"""Displacement of a state at which a fault evaluates Jacobians [rad]."""


@dataclass(frozen=True, kw_only=True)
class Formula:
    """Derivatives of M q̈ + h = Sᵀτ + Φᵀλ with Φ q̈ + γ = 0, term by term, with faults."""

    mechanism: Mechanism
    weights: Mapping[str, float] = field(default_factory=dict)
    """Factors of the derivatives of `forces` (Φᵀλ), `accelerations` (Φ q̈) and `bias` (γ), in place of 1 [-]."""
    edit: Callable[[dict[str, Array]], None] = lambda _: None
    """Changes the derivatives."""
    displaced: float = 0.0
    """Displacement of the state at which derivatives are evaluated [rad]."""

    def value(self, q: Array, qd: Array, effort: Array) -> Array:
        return accelerations_by_multipliers(self.mechanism, q[None], qd[None], effort[None])[0][0]

    def derivatives(self, q: Array, qd: Array, effort: Array) -> Mapping[str, Array]:
        mechanism = self.mechanism
        q = q + self.displaced
        a, multipliers = (x[0] for x in accelerations_by_multipliers(mechanism, q[None], qd[None], effort[None]))

        def terms(q: Array, qd: Array) -> dict[str, Array]:
            model = lagrange_model(mechanism, q[None], qd[None])
            Phi = model.Phi[0]
            return {
                "inertia": model.M[0] @ a + model.coriolis[0] + model.gravity[0] + model.dissipation[0],
                "forces": Phi.T @ multipliers,
                "accelerations": Phi @ a,
                "bias": model.closure_bias[0],
            }

        def slopes(moved: Callable[[Array], dict[str, Array]]) -> dict[str, Array]:
            sides = [(moved(STEP * one), moved(-STEP * one)) for one in np.eye(mechanism.nv)]
            return {
                name: self.weights.get(name, 1.0) * np.array([(x[name] - y[name]) / (2 * STEP) for x, y in sides]).T
                for name in sides[0][0]
            }

        model = lagrange_model(mechanism, q[None], qd[None])
        M, Phi = model.M[0], model.Phi[0]
        compliance = np.linalg.pinv(Phi @ np.linalg.solve(M, Phi.T), rcond=1e-10, hermitian=True)

        def solved(force: Array, opening: Array) -> Array:
            free = np.linalg.solve(M, force)
            return free - np.linalg.solve(M, Phi.T @ compliance @ (Phi @ free + opening))

        parts = {
            "q": slopes(lambda x: terms(retract(mechanism, q[None], x[None])[0], qd)),
            "qd": slopes(lambda x: terms(q, qd + x)),
        }
        found = {
            name: solved(part["forces"] - part["inertia"], part["accelerations"] + part["bias"])
            for name, part in parts.items()
        }
        found["effort"] = solved(mechanism.selection.T, np.zeros((len(Phi), mechanism.na)))
        self.edit(found)
        return found


def engine(**faults: Any) -> Callable[[Mechanism], AbstractContextManager[Sequence[Differentiated]]]:
    """An engine with the formula and its faults."""

    @contextmanager
    def functions(mechanism: Mechanism) -> Iterator[list[Differentiated]]:
        formula = Formula(mechanism=mechanism, **faults)
        about = {"name": "formula", "quantity": ACCELERATION, "meaning": ""}
        yield [Differentiated(**about, value=formula.value, derivatives=formula.derivatives)]

    return functions


@pytest.fixture(scope="module")
def samples(model_case: CaseMaker) -> Mapping[str, Sample]:
    """Four-bars closed by a connect and by a weld, in motion."""
    names = ("four_bar", "welded_four_bar")
    return {
        name: sample_of(model_case(MODELS / f"{name}.xml", configuration="vertical", amplitude=0.3)) for name in names
    }


def first_column(found: dict[str, Array]) -> None:
    found["q"][:, 0] *= 1 + len(found["q"])


def swapped(found: dict[str, Array]) -> None:
    found["q"] = found["q"][:, [1, 0, *range(2, len(found["q"]))]]


def reversed_efforts(found: dict[str, Array]) -> None:
    found["effort"] = -found["effort"]


FAULTS: Mapping[str, tuple[dict[str, Any], dict[str, str]]] = {
    "mujoco_warp #1423: sign of the rows of connect and weld": ({"weights": {"forces": -1.0}}, {"q": "off by"}),
    "pinocchio #2247: acceleration of the rows": ({"weights": {"accelerations": 0.0}}, {"q": "off by"}),
    "genesis #3087: J̇v of the rows": ({"weights": {"bias": 0.0}}, {"q": "off by", "qd": "off by"}),
    "trajopt #588: Jacobians of another state": (
        {"displaced": DISPLACED},
        {"q": "off by", "qd": "off by", "effort": "off by"},
    ),
    "pinocchio 4.1: first dof of a list": ({"edit": first_column}, {"q": "{first}: {times} times the right value"}),
    "drake #17002: order of the variables": ({"edit": swapped}, {"q": "{first}, {second}: off by"}),
    "sign of the efforts": ({"edit": reversed_efforts}, {"effort": "all columns: sign reversed"}),
}
"""Faults by upstream report: the changed formula, and the inputs with a wrong derivative and words of its note."""
OF_WELDS = tuple(FAULTS)[:2]


@pytest.mark.parametrize("name", ["four_bar", "welded_four_bar"])
def test_a_right_formula_agrees(samples: Mapping[str, Sample], name: str) -> None:
    rows, entries = judged("formula", name, samples[name], engine())
    assert {row["verdict"] for row in rows} == {"agree"}
    assert {row["input"] for row in rows} == {"q", "qd", "effort"}
    assert max(row["error"] for row in rows) < 1e-8
    assert len(entries) == 3


@pytest.mark.parametrize(
    ("fault", "name"), [*((fault, "four_bar") for fault in FAULTS), *((fault, "welded_four_bar") for fault in OF_WELDS)]
)
def test_faults_of_upstream_projects_are_named(samples: Mapping[str, Sample], fault: str, name: str) -> None:
    sample, (changes, wrong) = samples[name], FAULTS[fault]
    joints = [joint.name for joint in sample.mechanism.joints]
    rows, _ = judged("formula", name, sample, engine(**changes))
    found = {row["input"]: row["note"] for row in rows if row["verdict"] == "disagree"}
    assert set(found) == set(wrong)
    for block, words in wrong.items():
        assert words.format(first=joints[0], second=joints[1], times=1 + len(joints)) in found[block]


def test_another_quantity_is_no_fault(samples: Mapping[str, Sample]) -> None:
    """Half the gravity: right derivatives of another robot."""

    @contextmanager
    def lighter(mechanism: Mechanism) -> Iterator[Sequence[Differentiated]]:
        with engine()(replace(mechanism, gravity=mechanism.gravity / 2)) as (function,):
            yield [replace(function, meaning="half the gravity")]

    rows, _ = judged("formula", "four_bar", samples["four_bar"], lighter)
    by_input = {row["input"]: row for row in rows}
    assert by_input["q"]["verdict"] == "informational"
    assert by_input["q"]["note"] == "another quantity: half the gravity"
    assert by_input["q"]["shift"] == pytest.approx(by_input["q"]["error"], rel=1e-3)
    assert {by_input[name]["verdict"] for name in ("qd", "effort")} == {"agree"}


def test_kinds_of_faults() -> None:
    wanted = np.random.default_rng(0).normal(size=(3, 3))
    of_column = wanted.copy()
    of_column[:, 1] = 0
    columns = ("a", "b", "c")
    assert fault_of(wanted.T, wanted, columns) == "transposed"
    assert fault_of(-wanted, wanted, columns).endswith("all columns: sign reversed")
    assert fault_of(of_column, wanted, columns).endswith(": b: missing")
    assert fault_of(1.5 * wanted, wanted, columns).endswith("all columns: 1.5 times the right value")


def test_round_off_hides_the_answer(samples: Mapping[str, Sample]) -> None:
    """Values in single precision cannot judge a derivative."""

    @contextmanager
    def coarse(mechanism: Mechanism) -> Iterator[Sequence[Differentiated]]:
        with engine(weights={"forces": 1.01})(mechanism) as (function,):
            yield [replace(function, value=lambda *at: function.value(*at).astype(np.float32).astype(float))]

    rows, _ = judged("formula", "four_bar", samples["four_bar"], coarse)
    assert {row["input"]: row["verdict"] for row in rows} == {"q": "not comparable", "qd": "agree", "effort": "agree"}


@pytest.mark.parametrize(
    "name", extended_but(["welded_four_bar"], ["welded_four_bar", "2pur2rpu"], "test_forces_of_the_tree_become_efforts")
)
def test_forces_of_the_tree_become_efforts(samples: Mapping[str, Sample], name: str) -> None:
    """Forces by `lagrange`, whose derivatives are taken along all dofs of the tree; redundant drives included."""
    sample = samples[name] if name in samples else sample_of(representative_case(load(name)))

    def forces(q: Array, qd: Array, qdd: Array) -> Array:
        model = lagrange_model(sample.mechanism, q[None], qd[None])
        return model.M[0] @ qdd + model.coriolis[0] + model.gravity[0] + model.dissipation[0] - model.load[0]

    def derivatives(q: Array, qd: Array, qdd: Array) -> Mapping[str, Array]:
        def slopes(value: Callable[[Array], Array]) -> Array:
            return np.array([(value(STEP * one) - value(-STEP * one)) / (2 * STEP) for one in np.eye(len(qd))]).T

        return {
            "q": slopes(lambda x: forces(q + x, qd, qdd)),
            "qd": slopes(lambda x: forces(q, qd + x, qdd)),
            "qdd": slopes(lambda x: forces(q, qd, qdd + x)),
        }

    @contextmanager
    def functions(_: Mechanism) -> Iterator[Sequence[Differentiated]]:
        yield [Differentiated(name="tree", quantity=FORCE, meaning="", value=forces, derivatives=derivatives)]

    rows, _ = judged("tree", name, sample, functions)
    assert len(rows) == 3 * sample.mechanism.na
    assert {(row["input"], row["verdict"]) for row in rows} == {(name, "agree") for name in ("q", "qd", "qdd")}
    assert max(row["error"] for row in rows) < 1e-7


def test_mujoco_differentiates_a_step_with_soft_loops(samples: Mapping[str, Sample]) -> None:
    rows, _ = judged("mujoco", "four_bar", samples["four_bar"], mujoco.functions)
    of_step = [row for row in rows if row["function"] == "mjd_transitionFD"]
    assert {row["verdict"] for row in of_step} == {"informational"}
    assert all("soft loops" in row["note"] and row["shift"] > LIMIT for row in of_step)
    inverse = {row["input"]: row["verdict"] for row in rows if row["function"] == "mjd_inverseFD"}
    assert inverse["qd"] == inverse["qdd"] == "agree"
    assert inverse["q"] in {"agree", "informational"}


def test_pinocchio_is_wrong_along_the_first_dof_of_a_connect_alone(samples: Mapping[str, Sample]) -> None:
    """Known issue pinocchio-first-dof-derivative; welds are right."""
    gradients = pytest.importorskip("loopcheck.engines.pinocchio.gradients")
    bare = {name: sample_at(without_loads(s.mechanism), s.q, s.qd, s.qdd) for name, s in samples.items()}
    for name, wrong in (("four_bar", {"computeConstraintDynamicsDerivatives": {"q"}}), ("welded_four_bar", {})):
        rows, _ = judged("pinocchio", name, bare[name], gradients.functions)
        assert {row["input"] for row in rows} == {"q", "qd", "qdd", "effort", "parameters"}
        for row in rows:
            if row["input"] in wrong.get(row["function"], ()):
                assert row["verdict"] == "disagree"
                assert f"values: {bare[name].mechanism.joints[0].name}: " in row["note"]
            else:
                assert row["verdict"] == "agree", row


def test_drake_differentiates_the_tree_and_a_step(samples: Mapping[str, Sample]) -> None:
    gradients = pytest.importorskip("loopcheck.engines.drake.gradients")
    rows, _ = judged("drake", "four_bar", samples["four_bar"], gradients.functions)
    verdicts = {(row["quantity"], row["input"]): row["verdict"] for row in rows}
    assert {verdicts[FORCE, name] for name in ("q", "qd", "qdd")} == {"agree"}
    assert verdicts[ACCELERATION, "q"] == verdicts[ACCELERATION, "qd"] == "informational"


def without_loads(mechanism: Mechanism) -> Mechanism:
    """A mechanism without springs and dampers, which Pinocchio's derivatives lack."""
    joints = (replace(joint, stiffness=0.0, damping=0.0) for joint in mechanism.joints)
    return replace(mechanism, joints=tuple(joints), tendons=(), point_springs=())


@pytest.fixture(scope="module")
def four_bar() -> Case:
    return representative_case(load("four_bar"))


def test_the_study_has_a_row_for_each_engine(four_bar: Case, tmp_path: Path) -> None:
    pytest.importorskip("pinocchio")
    study = GradientsStudy(cases=[four_bar], engines=("pinocchio", "dart", "newton"))
    result, conclusion = run_study(study, tmp_path)
    rows = result.tables["gradients"]
    assert set(rows[rows["engine"] == "dart"]["verdict"]) == {"not supported"}
    assert set(rows[rows["engine"] == "newton"]["verdict"]) == {"not run"}
    wide = summary(rows).set_index("function")
    assert str(wide.loc["computeConstraintDynamicsDerivatives", "q"]).startswith("disagree ")
    assert str(wide.loc["computeRNEADerivatives", "parameters"]).startswith("agree ")
    assert "disagree" in conclusion.verdicts
    assert "errors of derivatives" in (tmp_path / "gradients.html").read_text(encoding="utf-8")


def test_an_unknown_engine_is_refused(four_bar: Case, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="unknown engine: 'ode'"):
        run_study(GradientsStudy(cases=[four_bar], engines=("ode",)), tmp_path)
