"""Required contents of a certificate, and recomputation by its verifier: no forged value widens a limit."""

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.errors import OutputError
from loopcheck.validation.execution.workers import ALONE, worker_pool
from loopcheck.validation.tune.certificate import (
    SCHEMA,
    Certificate,
    Claim,
    MadeBy,
    checksum,
    hashes,
    held_out_seeds,
    read_certificate,
    settings_in,
)
from loopcheck.validation.tune.runs.judged_run import JudgedRun
from loopcheck.validation.tune.runs.purposes import OWN
from loopcheck.validation.tune.verify import VerifiedCertificate, _sections, _summary
from tests.validation.test_stale_results import motion_file

pytestmark = pytest.mark.usefixtures("tables_only", "short_proofs")
FOUR_BAR = CATALOGUE / "four_bar/four_bar.xml"
FOUND = JudgedRun(
    purpose=OWN,
    settings={},
    error=5e-4,
    rms=2e-4,
    start=6e-4,
    floor=1e-6,
    window=0.4,
    gap=1e-8,
    cost=1000.0,
    ended=True,
)
"""Findings of the verifier."""


def certificate(**changes: Any) -> Certificate:
    content: dict[str, Any] = {
        "engine": "mujoco",
        "mode": "home",
        "configuration": "vertical",
        "actuated": "",
        "motion": {},
        "accuracy": 1e-3,
        "includes_start": False,
        "settings": {"timestep": "0.001"},
        "engine_version": "4.0.0",
        "model": "four_bar.xml",
        "files": hashes([FOUR_BAR], FOUR_BAR.parent),
        "bandwidth": 50.0,
        "claims": [Claim.from_run(FOUND)],
        "made_by": MadeBy(loopcheck="1", original={}, inertial=0.0),
    }
    return Certificate.model_validate({**content, **changes}).with_checksum()


def verifier(of: Certificate, folder: Path = FOUR_BAR.parent) -> VerifiedCertificate:
    return VerifiedCertificate(model=FOUR_BAR, certificate=of, folder=folder)


def verdicts(claim: Claim, found: JudgedRun = FOUND, **changes: Any) -> dict[str, str]:
    """Verdict on each figure of a claim."""
    rows = verifier(certificate(**changes))._of_claim(claim.model_dump(), found)
    return {row["claim"].split(": ")[1].split()[0]: row["verdict"] for row in rows}


def test_a_claim_that_is_found_again_holds() -> None:
    assert set(verdicts(Claim.from_run(FOUND)).values()) == {"agree"}


@pytest.mark.parametrize("name", [name for name in Claim.model_fields if name != "purpose"])
@pytest.mark.parametrize("value", [0.0, 1.3, np.inf, np.nan])
def test_no_figure_of_a_claim_can_be_falsified(name: str, value: float) -> None:
    """Of a floor, which may differ by itself, no value beyond twice the measured value holds."""
    falsified = (3.0 + value if name == "floor" else value) * getattr(FOUND, name)
    claim = Claim.from_run(FOUND).model_copy(update={name: falsified})
    assert verdicts(claim)[name] == "disagree"


def test_a_claimed_floor_does_not_excuse_an_error() -> None:
    """The case of the report: floor 1 and error 1e-6 are certified, the error is 1.3e-3."""
    claim = Claim.from_run(replace(FOUND, error=1e-6, rms=1e-6, start=1e-6, floor=1.0))
    result = verdicts(claim, replace(FOUND, error=1.3e-3, rms=1e-3, start=1.3e-3), accuracy=2.0)
    assert {result[name] for name in ("error", "rms", "start", "floor")} == {"disagree"}


@pytest.mark.parametrize(
    ("accuracy", "includes_start", "verdict"),
    [(5.02e-4, False, "agree"), (5e-4, False, "disagree"), (5.02e-4, True, "disagree"), (6.02e-4, True, "agree")],
)
def test_an_error_with_its_floor_above_the_accuracy_fails(accuracy: float, includes_start: bool, verdict: str) -> None:
    result = verdicts(Claim.from_run(FOUND), accuracy=accuracy, includes_start=includes_start)
    assert result.pop("accuracy") == verdict
    assert set(result.values()) == {"agree"}


def test_a_claim_above_its_own_accuracy_fails() -> None:
    inflated = replace(FOUND, error=1.05 * FOUND.error)
    result = verdicts(Claim.from_run(inflated), accuracy=5.02e-4)
    *_, row = verifier(certificate(accuracy=5.02e-4))._of_claim(Claim.from_run(inflated).model_dump(), FOUND)
    assert row["note"] == "error and floor together exceed the accuracy"
    assert result.pop("accuracy") == "disagree"
    assert set(result.values()) == {"agree"}


def test_held_out_motions_follow_from_the_contents_of_files_alone() -> None:
    """Nobody can choose them by an entry, as by the twelfth digit of the accuracy, or by the name of a file."""
    seeds = certificate().held_out_seeds
    assert len(set(seeds)) == 2
    (content,) = hashes([FOUR_BAR], FOUR_BAR.parent).values()
    same: list[dict[str, Any]] = [
        {"engine": "mjx"},
        {"accuracy": 1.00000000001e-3},
        {"includes_start": True},
        {"settings": {}},
        {"bandwidth": 1.0},
        {"claims": [Claim.from_run(replace(FOUND, cost=1.0))]},
        {"files": {"renamed.xml": content}},
    ]
    for change in same:
        assert certificate(**change).held_out_seeds == seeds, change
    for change in ({"files": {"four_bar.xml": "00"}}, {"motion": {"motion.csv": "00"}}, {"script": {"tuned.py": "00"}}):
        assert not {*certificate(**change).held_out_seeds} & {*seeds}, change
    assert held_out_seeds(["1", "2"]) == held_out_seeds(["2", "1"]) != held_out_seeds(["1"])


def test_a_motion_beside_the_certificate_is_part_of_it(tmp_path: Path) -> None:
    motion = motion_file(tmp_path / "motion.csv", 3.0)
    of = certificate(motion=hashes([motion], tmp_path))
    rows = {row["claim"]: row for row in verifier(of, tmp_path)._identity()}
    assert rows["file motion.csv"]["verdict"] == "agree"
    motion_file(motion, 3.1)
    rows = {row["claim"]: row for row in verifier(of, tmp_path)._identity()}
    assert rows["file motion.csv"]["verdict"] == "disagree"
    motion.unlink()
    assert "disagree" in {row["verdict"] for row in verifier(of, tmp_path)._identity()}


def test_a_model_may_have_another_name(tmp_path: Path) -> None:
    renamed = Path(shutil.copy(FOUR_BAR, tmp_path / "renamed.xml"))
    of_renamed = VerifiedCertificate(model=renamed, certificate=certificate(), folder=tmp_path)
    rows = {row["claim"]: (row["certified"], row["found"], row["verdict"]) for row in of_renamed._files()}
    (digest,) = (digest[:12] for digest in hashes([FOUR_BAR], FOUR_BAR.parent).values())
    assert rows == {"file renamed.xml": (digest, digest, "agree")}


def test_calls_of_a_script_must_be_those_of_the_settings(tmp_path: Path) -> None:
    """The hash of a script is that of the file; what the file calls is compared with the settings besides."""
    tuning = pytest.importorskip("loopcheck.engines.pybullet.tuning", exc_type=ImportError)
    path = tmp_path / "tuned.py"
    rows = []
    for step in ("0.002", "0.001"):
        path.write_text(tuning.script({"timestep": step}))
        of_script = certificate(
            engine="pybullet", settings={"timestep": "0.002"}, script=hashes([path], tmp_path), model=""
        )
        with worker_pool(ALONE) as pool:
            rows.append(next(iter(verifier(of_script, tmp_path)._figures(pool))))
    assert [(row["claim"], row["found"], row["verdict"]) for row in rows] == [
        ("calls of the script", "equal to settings", "agree"),
        ("calls of the script", "different", "disagree"),
    ]


def test_an_edited_certificate_says_so_and_the_order_of_entries_does_not_matter() -> None:
    written = certificate()
    turned = dict(reversed(written.content.items()))
    assert checksum(turned) == written.checksum
    first = next(verifier(written)._identity())
    assert [first[name] for name in ("certified", "found", "verdict", "note")] == ["as written"] * 2 + ["agree", ""]
    first = next(verifier(written.model_copy(update={"bandwidth": 51.0}))._identity())
    assert (first["found"], first["verdict"]) == ("edited", "disagree")
    assert first["note"] == "its checksum does not match: an entry has been edited"


def test_the_badge_states_accuracy_and_controller_and_refuses_after_any_failure() -> None:
    of = verifier(certificate(bandwidths=(10.0, 80.0)))
    good, bad = {"verdict": "agree"}, {"verdict": "disagree"}
    assert of._badge([good, good]) == ("loopcheck: efforts within 0.1 % in mujoco 4.0.0, controller of 10 to 80 rad/s")
    assert of._badge([good, bad]) == of._badge([bad, bad]) == "loopcheck: certificate refused"
    assert "controller" not in verifier(certificate())._badge([good])


@pytest.mark.parametrize("verdict", ["agree", "disagree"])
def test_the_section_of_a_page_has_the_verdict_of_its_rows(verdict: str) -> None:
    rows = [{"claim": "a", "verdict": "agree", "leeway": np.nan}, {"claim": "b", "verdict": verdict, "leeway": np.nan}]
    (section,) = _sections(pd.DataFrame(rows), {"model": "robot.xml", "badge": "badge"})
    assert (section.title, section.verdict) == ("robot.xml", verdict)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            {"schema": "loopcheck.certificate/2"},
            f"schema must be {SCHEMA}, got loopcheck.certificate/2, whose held-out",
        ),
        ({"schema": "loopcheck.certificate/4"}, f"schema must be {SCHEMA}, got loopcheck.certificate/4. Make a new"),
        ({"schema": SCHEMA}, "engine"),
        ({}, f"schema must be {SCHEMA}, got loopcheck.certificate/1, whose held-out motions its maker could choose"),
        ([], "must be an object with entries, got a list"),
        ({**certificate().content, "claims": []}, "claims"),
    ],
)
def test_other_files_are_no_certificates(content: Any, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(OutputError, match=f"must be a certificate of loopcheck: .*({reason})"):
        read_certificate(path)


def test_a_setting_that_the_file_lacks_differs() -> None:
    own = {"timestep": "0.001", "solref": "0.02 1"}
    assert settings_in(own, {"timestep": "0.001", "erp": "0.2", "solref": "0.02"}) == {"erp": "0.2"}


def test_a_missing_certificate_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"none\.json: must be a certificate of loopcheck: No such file"):
        read_certificate(tmp_path / "none.json")


@pytest.mark.parametrize(("verdict", "shown"), [("agree", "own: error"), ("disagree", "own: rms")])
@pytest.mark.parametrize("width", [80, 200])
def test_the_terminal_shows_failed_claims_or_the_errors_once(verdict: str, shown: str, width: int) -> None:
    """A narrow terminal too: its wide tables are split elsewhere, each with all rows."""
    blank = {"unit": "-", "certified": "0.0013441", "found": "0.0013441", "note": ""}
    rows = [
        {"claim": "own: error", "verdict": "agree", **blank},
        {"claim": "own: rms", "verdict": verdict, **blank, "note": "a note that is long enough for three parts"},
    ]
    file = io.StringIO()
    console = Console(width=width, file=file)
    console.print(next(iter(_summary(pd.DataFrame(rows), {"model": "robot.xml", "badge": "badge"}))))
    text = file.getvalue()
    assert text.count("robot.xml: 2 claims") == 1
    assert [text.count(name) for name in ("own: error", "own: rms")] == [shown == "own: error", shown == "own: rms"]


def test_unchecked_entries_are_named_as_such() -> None:
    content = certificate().content
    assert content["schema"] == SCHEMA
    assert content["made_by"]["note"].startswith("unchecked")
    assert not {"loopcheck", "original", "inertial", "held_out"} & content.keys()
