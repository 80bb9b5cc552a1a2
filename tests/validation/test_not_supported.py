"""Sources without an element for something in the model: `not supported`, unless the user has named the source."""

from collections.abc import Sequence

import pytest

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.errors import NotFoundError, NotRepresentableError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.compare import summarize
from loopcheck.validation.check.efforts.evaluate import attempt, evaluate
from loopcheck.validation.check.efforts.outcome import Outcome
from loopcheck.validation.check.efforts.rules import Evidence
from loopcheck.validation.common import sources
from loopcheck.validation.common.targets import case_of
from loopcheck.validation.common.verdicts import NOT_SUPPORTED
from tests.conftest import MODELS
from tests.validation.conftest import Command

KKT, FORWARD = "mujoco/kkt", "mujoco/forward"


@pytest.fixture(scope="module")
def case() -> Case:
    return case_of(MODELS / "four_bar.xml")


@pytest.fixture(scope="module")
def motion(case: Case) -> Motion:
    return prescribe(case, dt=0.1)


def _unsupported(case: Case, source: str) -> Outcome:
    def refuse() -> None:
        raise NotRepresentableError(f"{source}: no element for armature")

    return attempt(case, source, refuse)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("requested", "kkt", "forward"),
    [
        ((), NOT_SUPPORTED, NOT_SUPPORTED),
        (([KKT],), "not comparable", NOT_SUPPORTED),
        (([KKT, FORWARD],), "not comparable", "not comparable"),  # a pattern without a supported route
        (([KKT, FORWARD, "analytic/lagrange"],), NOT_SUPPORTED, NOT_SUPPORTED),
        (None, "not comparable", "not comparable"),
    ],
)
def test_a_named_source_counts(
    case: Case, motion: Motion, requested: Sequence[Sequence[str]] | None, kkt: str, forward: str
) -> None:
    outcomes: list[Outcome] = [evaluate(case, motion, name) for name in ("analytic/noc", "analytic/lagrange")]
    outcomes += [_unsupported(case, name) for name in (KKT, FORWARD)]
    groups = None if requested is None else tuple(map(frozenset, requested))
    rows = summarize(outcomes, Evidence(requested=groups)).set_index("source")
    assert (rows["verdict"][KKT], rows["verdict"][FORWARD]) == (kkt, forward)
    assert rows["verdict"]["analytic/lagrange"] == "agree"


def test_a_text_names_one_source_an_engine_or_a_pattern() -> None:
    ((one,), engine, pattern) = sources.groups([KKT, "mujoco", "mujoco/*d"])
    assert one == KKT
    assert {KKT, FORWARD} <= set(engine)
    assert pattern == (FORWARD,)
    with pytest.raises(NotFoundError, match="mojoco"):
        sources.groups(["mojoco"])


@pytest.mark.extended("test_a_named_source_counts")
@pytest.mark.usefixtures("tables_only")
def test_a_default_engine_without_the_element_does_not_fail_the_check(
    loopcheck: Command, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simbody has no element for the spring of a ball joint; the other engines are tried in `test_contract`."""
    pytest.importorskip("opensim")
    monkeypatch.setattr(sources, "is_there", lambda engine: engine in ("mujoco", "simbody"))
    folder, model = tmp_path_factory.mktemp("spring"), MODELS / "spinning_rod.xml"
    options = ("--configuration", "given", "--dt", "0.1", "--jobs", "1")
    status, out, _ = loopcheck("check", model, *options, "--out", folder / "all")
    assert (status, "Not supported: " in out) == (0, True), out
    named = ("--source", "simbody/kkt", "--source", KKT)
    status, out, _ = loopcheck("check", model, *options, *named, "--out", folder / "named")
    assert (status, "not comparable" in out) == (3, True), out
    status, out, _ = loopcheck("check", model, *options, "--source", "analytic/lagrange", "--out", folder / "analytic")
    assert status == 0, out
