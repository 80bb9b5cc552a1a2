"""Logs as their tools write them, judged: the right log agrees, the same with wrong efforts does not."""

from pathlib import Path

import numpy as np
import pytest

from loopcheck import judge
from tests import planar_four_bar
from tests.bags import write_bag

MODEL = Path(__file__).parents[2] / "robots/four_bar/four_bar.xml"
GEAR = 40


@pytest.fixture(scope="module")
def geared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four-bar with a gear between motor and crank."""
    path = tmp_path_factory.mktemp("model") / "geared.xml"
    text = MODEL.read_text(encoding="utf-8")
    assert '<motor name="crank" joint="crank"/>' in text
    path.write_text(text.replace('joint="crank"/>', f'joint="crank" gear="{GEAR}"/>'), encoding="utf-8")
    return path


@pytest.mark.parametrize(("side", "verdict"), [("joint", "agree"), ("motor", "disagree")])
def test_joint_states_of_a_geared_drive_are_judged(side: str, verdict: str, geared: Path, tmp_path: Path) -> None:
    """A bag as of ros2_control: torques at the joint, one joint of the linkage not measured."""
    log = planar_four_bar.exact_log(0.02, 51)
    assert log.qd is not None
    nothing = np.full((len(log.t), 1), np.nan)
    values = (log.q[:, [1, 0]], log.qd[:, [1, 0]], np.hstack([nothing, log.effort]))
    stamps = [1_760_000_000_000_000_000 + round(1e9 * t) for t in log.t]
    bag = write_bag(tmp_path / "bag", ("coupler", "crank"), stamps, values)
    judged = judge(geared, bag, configuration="vertical", effort_time="instantaneous", effort_side=side)  # type: ignore[arg-type]
    assert judged.verdict == verdict, str(judged)
    assert ("behind the gear" in str(judged)) == (side == "motor")
