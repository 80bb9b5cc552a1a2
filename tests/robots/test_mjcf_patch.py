"""Attributes set in an MJCF: MuJoCo reads the intended values, and all other text stays."""

import re
from pathlib import Path
from typing import Any

import pytest

from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.mjcf_patch import Patch, patched
from loopcheck.robots.formats.model_file import ModelFile

mujoco = pytest.importorskip("mujoco")

BODIES = """<worldbody>
    <body name='a'><joint name="j" type="hinge"/><geom size=".1"/></body><!-- a > b -->
    <body name="b" pos="1 0 0"><joint type="hinge"/><geom size=".1"/></body>
  </worldbody>"""
PLAIN = f"""<?xml version="1.0"?>
<!-- <option timestep="9"/> is no option -->
<mujoco model="a>b">
  <option   timestep = '0.002'
     gravity="0 0 -9.81"><flag contact="disable"/></option>
  <default><equality solref="0.05 1"/></default>
  {BODIES}
  <equality>
    <connect body1="a" body2="b" anchor="0 0 0" solimp=".9 .95 .001"/>
    <weld body1="a" body2="b" active="false" />
    <joint joint1="j"></joint>
  </equality>
</mujoco>
"""
PATCH = Patch(
    option={"timestep": "0.004", "integrator": "RK4"},
    equalities={0: {"solref": "0.008 1", "solimp": "0.99 0.99"}, 2: {"solimp": "0.95 0.99"}},
)


def compiled(path: Path) -> Any:
    return mujoco.MjModel.from_xml_path(str(path))


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def apply(path: Path, patch: Patch) -> dict[Path, bytes]:
    files = patched(ModelFile(path=path), patch, compiled(path).neq)
    for file, content in files.items():
        file.write_bytes(content)
    return files


def test_only_the_attributes_that_are_meant_differ(tmp_path: Path) -> None:
    path = written(tmp_path / "m.xml", PLAIN)
    before = compiled(path)
    apply(path, PATCH)
    after, text = compiled(path), path.read_text(encoding="utf-8")
    assert (after.opt.timestep, after.opt.integrator) == (0.004, int(mujoco.mjtIntegrator.mjINT_RK4))
    assert after.eq_solref.tolist() == [[0.008, 1], [0.05, 1], [0.05, 1]]
    assert after.eq_solimp[:, :3].tolist() == [[0.99, 0.99, 0.001], [0.9, 0.95, 0.001], [0.95, 0.99, 0.001]]
    undone = (
        text.replace("'0.004'", "'0.002'")
        .replace(' integrator="RK4"', "")
        .replace(' solref="0.008 1"', "")
        .replace('solimp="0.99 0.99"', 'solimp=".9 .95 .001"')
        .replace(' solimp="0.95 0.99"', "")
    )
    assert undone == PLAIN
    for name in ("body_mass", "jnt_pos", "geom_size", "eq_data"):
        assert (getattr(before, name) == getattr(after, name)).all()


def test_comments_may_hold_what_xml_forbids_and_mujoco_reads(tmp_path: Path) -> None:
    text = PLAIN.replace("<!-- a > b -->", "<!-- a -- b <joint name='c'/> --><!--<![CDATA[ --- ä -- -->")
    path = written(tmp_path / "m.xml", text)
    apply(path, PATCH)
    assert compiled(path).eq_solref.tolist() == [[0.008, 1], [0.05, 1], [0.05, 1]]
    comments = [re.findall("<!--.*?-->", content) for content in (text, path.read_text(encoding="utf-8"))]
    assert comments[0] == comments[1]


def test_a_declaration_may_stand_behind_blanks_as_mujoco_reads_it(tmp_path: Path) -> None:
    text = f"\n  {PLAIN}"
    assert "<?xml" in text
    path = written(tmp_path / "m.xml", text)
    apply(path, PATCH)
    assert compiled(path).eq_solref.tolist() == [[0.008, 1], [0.05, 1], [0.05, 1]]
    assert path.read_text(encoding="utf-8").startswith(text[: text.index("?>")])


def test_attributes_may_stand_without_blanks_as_mujoco_reads_them(tmp_path: Path) -> None:
    joined = PLAIN.replace("'0.002'\n     gravity", "'0.002'gravity").replace("a > b", "x='1'y")
    path = written(tmp_path / "m.xml", joined)
    before = compiled(path)
    apply(path, Patch(option={"timestep": "0.004"}, equalities={}))
    assert (before.opt.timestep, compiled(path).opt.timestep) == (0.002, 0.004)
    assert path.read_text(encoding="utf-8") == joined.replace("'0.002'", "'0.004' ")


def test_inertias_are_said_anew_or_put_where_geoms_said_them(tmp_path: Path) -> None:
    told = (
        """<inertial pos="1 2 3" mass="9" euler='10 20 30' diaginertia="1 2 2.5"/><geom size=".1"/></body><!-- a > b"""
    )
    path = written(tmp_path / "m.xml", PLAIN.replace('<geom size=".1"/></body><!-- a > b', told, 1))
    path.write_text(
        path.read_text(encoding="utf-8").replace('<joint type="hinge"/>', '<joint name="k"/>'), encoding="utf-8"
    )
    new = {"mass": "2", "pos": "0 0 0.5", "fullinertia": "1 1.5 2 0 0 0"}
    apply(path, Patch(option={}, equalities={}, inertials={"j": new, "k": new}))
    after = compiled(path)
    assert after.body_mass.tolist() == [0, 2, 2]
    assert after.body_ipos[1:].tolist() == [[0, 0, 0.5]] * 2
    assert sorted(after.body_inertia[1]) == sorted(after.body_inertia[2]) == pytest.approx([1, 1.5, 2])
    assert "euler" not in path.read_text(encoding="utf-8")


def test_options_are_made_where_there_are_none(tmp_path: Path) -> None:
    text = re.sub(r"\n  <option.*?</option>", "", PLAIN, flags=re.DOTALL)
    path = written(tmp_path / "m.xml", text)
    apply(path, Patch(option={"timestep": "0.004"}, equalities={}))
    assert compiled(path).opt.timestep == 0.004
    assert path.read_text(encoding="utf-8").replace('\n  <option timestep="0.004"/>', "") == text


def test_equalities_in_included_files_are_set_there(tmp_path: Path) -> None:
    """The last of several options counts; MuJoCo reads parts in the place of the element that includes them."""
    part = "<mujocoinclude><option timestep='0.001'/><equality><joint joint1='j'/></equality></mujocoinclude>"
    (tmp_path / "parts").mkdir()
    written(tmp_path / "parts/part.xml", part)
    path = written(tmp_path / "m.xml", PLAIN.replace("<equality>\n", '<include file="parts/part.xml"/><equality>\n'))
    files = apply(path, Patch(option={"timestep": "0.004"}, equalities={0: {"solref": "0.008 1"}}))
    assert {file.name for file in files} == {"part.xml"}
    assert compiled(path).opt.timestep == 0.004
    assert compiled(path).eq_solref[:, 0].tolist() == [0.008, 0.05, 0.05, 0.05]


def test_equalities_that_stand_nowhere_are_refused(tmp_path: Path) -> None:
    """The instances of a replicated body come from a single element."""
    text = """<mujoco><worldbody><replicate count="2" offset="1 0 0">
      <body name="a"><joint name="j"/><geom size=".1"/></body></replicate></worldbody>
      <equality><joint joint1="j0" name="e"/></equality></mujoco>"""
    path = written(tmp_path / "m.xml", text)
    with pytest.raises(MechanismError, match="all 2 equalities must be separate XML elements"):
        patched(ModelFile(path=path), Patch(option={}, equalities={0: {"solref": "0.01 1"}}), 2)


def test_what_is_no_xml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MechanismError, match="must be a readable XML file"):
        patched(ModelFile(path=written(tmp_path / "m.xml", "<mujoco>")), PATCH, 1)
