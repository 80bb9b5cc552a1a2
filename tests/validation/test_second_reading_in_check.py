"""A second reading that differs puts every source of a case in doubt; what is not read is not called confirmed."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.check.audit.audit import audit, doubts, expected_terms
from loopcheck.validation.check.independence import bases
from loopcheck.validation.common.results import table
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.common.verdicts import FILE, READING, Key
from tests.conftest import MODELS, want_engine
from tests.robots.test_second_reading import of, seed
from tests.validation.test_independence import CASE, results

ROBOT = MODELS / "welded_four_bar.xml"


def audited(case: Case, reader: str = FILE) -> pd.DataFrame:
    rows = pd.DataFrame(audit(case, expected_terms(case, prescribe(case)), reader))
    return rows[rows["engine"] == FILE]


def doubts_of(rows: pd.DataFrame) -> Mapping[Key, str]:
    records: list[Any] = rows.to_dict("records")
    return doubts(records)


def test_a_sound_file_is_confirmed_with_the_number_of_values() -> None:
    rows = audited(cases_of([ROBOT])[0])
    (note,) = rows.loc[rows["quantity"] == READING, "note"]
    assert note.startswith("plain XML: ")
    assert int(note.split()[2]) > 80


def test_inertia_of_geometry_is_stated_as_not_confirmed(tmp_path: Path) -> None:
    path, text = tmp_path / "shapes.xml", ROBOT.read_text(encoding="utf-8")
    first = text.index("<inertial")
    path.write_text(f'{text[:first]}<geom size=".1"/>{text[text.index("/>", first) + 2 :]}', encoding="utf-8")
    rows = audited(cases_of([path])[0])
    (note,) = rows.loc[rows["quantity"] == READING, "note"]
    assert note.endswith(" values, not the inertia of 1 of the moving parts")


def test_a_tensor_that_is_not_turned_is_a_doubt_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not seen by the compiled model, which has the same fault if the compiler has it."""
    seed(monkeypatch, "_body", of("foot", inertia=np.diag([0.02, 0.05, 0.04])))
    case = cases_of([ROBOT])[0]
    rows = audited(case)
    second = rows[rows["note"].str.startswith(READING)]
    assert set(second["verdict"]) == {"disagree"}
    reason = doubts_of(second)[case.key]
    assert reason.startswith("the model differs from its file: inertia ")
    assert "of body 'foot' is 0" in reason


def test_a_kind_of_joint_is_a_doubt_in_words() -> None:
    case = cases_of([ROBOT])[0]
    rows = (
        audited(case)
        .iloc[:1]
        .assign(
            quantity="kind",
            wanted=np.nan,
            found=np.nan,
            verdict="disagree",
            note=f"{READING} by plain XML: kind of joint",
        )
    )
    assert doubts_of(rows) == {case.key: f"the model differs from its file: {READING} by plain XML: kind of joint"}


def test_the_file_of_a_variant_is_read_without_its_overrides() -> None:
    robot = load("3prr")
    changed = robot.model_copy(update={"variants": {"default": {"body": {"link1": {"mass": 0.5}}}}})
    case = make_case(changed, variant="default", mode="plus", configuration="vertical")
    assert case.mechanism.model.overrides
    assert set(audited(case)["verdict"]) == {"agree"}


def test_the_parser_of_an_engine_confirms_the_file_too(request: pytest.FixtureRequest) -> None:
    want_engine("drake", request.config)
    rows = audited(cases_of([ROBOT])[0], "drake")
    assert list(rows["quantity"]) == [READING]
    assert rows["note"].iloc[0].startswith("the parser of drake: ")


def test_only_readers_that_agree_confirm_a_file() -> None:
    names = dict(zip(("robot", "variant", "mode", "configuration"), CASE, strict=True))
    common = {
        **names,
        "engine": FILE,
        "tier": "static",
        "element": "robot",
        "unit": "-",
        "wanted": np.nan,
        "found": np.nan,
    }
    agree = {
        **common,
        "quantity": READING,
        "error": 0.0,
        "tolerance": 1e-9,
        "verdict": "agree",
        "note": "plain XML: 9 values",
    }
    differ = {**agree, "quantity": "mass", "verdict": "disagree", "note": f"{READING} by the parser of drake: mass"}
    run = results(mujoco__kkt="agree", pybullet__kkt="agree")
    assert bases(run)[CASE].text_of_file == "not confirmed: only the reader of the reference"
    assert bases(replace(run, audit=table("audit", [agree])))[CASE].text_of_file == "plain XML: 9 values"
    assert bases(replace(run, audit=table("audit", [agree, differ])))[CASE].readers == ()
