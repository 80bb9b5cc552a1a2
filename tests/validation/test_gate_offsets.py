"""The gate on files as people export them: offsets along the pin with their repair, and few digits."""

import subprocess
from dataclasses import replace
from pathlib import Path

import mujoco  # noqa: TID251
import numpy as np
import pytest
from click.testing import CliRunner

from loopcheck.validation.cli import cli
from loopcheck.validation.gate.gate import gate
from tests.exported_legs import Leg

APART = Leg(closure="connect", digits=17, offset=0.01)


def written(folder: Path, text: str) -> Path:
    path = folder / "leg.xml"
    path.write_text(text, encoding="utf-8")
    return path


def codes(path: Path) -> set[str]:
    return {finding.code for finding in gate(str(path)).findings}


def repaired(path: Path) -> str:
    result = CliRunner().invoke(cli, ["gate", str(path), "--fix"], standalone_mode=False)
    subprocess.run(["git", "apply", "--unsafe-paths", "--directory=/"], input=result.stdout_bytes, check=True, cwd="/")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("carrier", ["fixed", "hinge", "free"])
def test_an_offset_is_a_warning_and_the_fix_moves_both_sites_together(carrier: str, tmp_path: Path) -> None:
    path = written(tmp_path, replace(APART, carrier=carrier).text().replace("><", ">\n<"))
    (finding,) = (finding for finding in gate(str(path)).findings if finding.code == "LC225")
    assert "'equality0' lie 10 mm apart along the pin (axis " in finding.message
    assert (finding.severity, finding.element) == ("warning", "equality 'equality0'")
    assert not codes(path) & {"LC102", "LC106", "LC201", "LC226"}
    before = path.read_text(encoding="utf-8").splitlines()
    after = repaired(path).splitlines()
    changed = [k for k, lines in enumerate(zip(before, after, strict=True)) if lines[0] != lines[1]]
    assert [before[k][:16] for k in changed] == ['<site name="p1_0', '<site name="p2_0']
    assert not codes(path) & {"LC225", "LC102"}
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert np.abs(data.site("p1_0").xpos - data.site("p2_0").xpos).max() < 1e-11
    old = mujoco.MjModel.from_xml_string("\n".join(before))
    moves = [np.linalg.norm(model.site(name).pos - old.site(name).pos) for name in ("p1_0", "p2_0")]
    assert moves == pytest.approx([0.005, 0.005], rel=1e-6)


def test_a_site_that_other_elements_use_stays(tmp_path: Path) -> None:
    """Another sensor of one site: the other moves all the way. Of both sites: no change."""
    text = APART.text().replace("><", ">\n<")
    sensor = "<sensor>{}</sensor></mujoco>"
    one = written(tmp_path, text.replace("</mujoco>", sensor.format('<framepos objtype="site" objname="p1_0"/>')))
    before, after = (text.splitlines(), repaired(one).splitlines())
    changed = [line[:16] for line in before if line not in after and "mujoco" not in line]
    assert changed == ['<site name="p2_0']
    assert "LC225" not in codes(one)
    both = "".join(f'<framepos objtype="site" objname="p{k}_0"/>' for k in (1, 2))
    path = written(tmp_path, text.replace("</mujoco>", sensor.format(both)))
    result = CliRunner().invoke(cli, ["gate", str(path), "--fix"], standalone_mode=False)
    assert result.stdout == ""
    assert "LC225" in codes(path)


def test_six_digits_are_enough_and_four_are_few(tmp_path: Path) -> None:
    for carrier in ("fixed", "hinge", "free"):
        assert not {code for code in codes(written(tmp_path, Leg(carrier=carrier, digits=6).text())) if code < "LC3"}
    found = gate(str(written(tmp_path, Leg(digits=4, seed=1).text()))).findings
    (finding,) = (finding for finding in found if finding.code < "LC3")
    assert finding.code == "LC226"
    assert "of the size of the robot: the numbers of the file are rounded" in finding.message


def test_links_that_are_too_short_are_still_an_error(tmp_path: Path) -> None:
    assert "LC102" in codes(written(tmp_path, Leg(carrier="fixed", shift=5.0).text()))
