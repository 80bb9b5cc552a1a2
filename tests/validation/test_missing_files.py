"""Missing files: a model is read without them if no inertia depends on them, and refused otherwise."""

from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.mujoco.routes.kkt import KKT
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.mjcf import compile_model, read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.validation.check.sections.robots import robots
from loopcheck.validation.check.study import run
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.execution.workers import Workers
from loopcheck.validation.report.blocks import Section
from tests.conftest import CaseMaker

FILES = """
  <asset>
    <mesh name="hull" file="parts/hull.stl" scale="0.1 0.1 0.1"/> <mesh file="fist.obj"/>
    <texture name="wood" type="2d" file="wood.png"/> <texture name="sky" type="skybox" fileup="up.png"/>
    <material name="wood" texture="wood"/> <hfield name="hills" file="hills.png" size="1 1 1 1"/>
  </asset>
  <deformable><skin name="fur" file="fur.skn"/></deformable>
"""
FOUR_BAR = """
<mujoco>
  <compiler meshdir="meshes" texturedir="textures" {compiler}/>
  <default>
    <default class="eye"><geom type="mesh" mesh="hull" contype="0" conaffinity="0" group="3"/></default>
  </default>
  {assets}
  <worldbody>
    <geom type="hfield" hfield="hills"/>
    <body name="crank"><joint name="crank" axis="0 0 1"/>{crank}
      <body name="coupler" pos="0.3 0.1 0"><joint axis="0 0 1"/>{coupler}
        <body name="rocker" pos="0.4 0.2 0"><joint axis="0 0 1"/>
          <geom size="0.1" density="2000"/><geom class="eye" mass="0"/><site name="tip" pos="0.1 -0.45 0"/>
        </body></body></body>
    <site name="ground" pos="0.8 -0.15 0"/>
  </worldbody>
  <equality><connect site1="tip" site2="ground"/></equality>
  <actuator><motor joint="crank"/></actuator>
</mujoco>
"""
GIVEN = '<inertial pos="0.1 0.02 0" mass="1.2" fullinertia="0.02 0.05 0.06 0.001 0.002 0.003"/><geom class="eye"/>'
FITTED = '<inertial pos="0.1 0 0.01" mass="0.7" diaginertia="0.02 0.05 0.06"/><geom type="capsule" mesh="fist"/>'
SKIN = '  <deformable><skin name="fur" file="fur.skn"/></deformable>\n'


def _write(path: Path, *, compiler: str = "", assets: str = FILES, crank: str = GIVEN, coupler: str = FITTED) -> Path:
    text = FOUR_BAR.format(compiler=compiler, assets=assets, crank=crank, coupler=coupler)
    path.write_text(text, encoding="utf-8")
    return path


def _add_meshes(folder: Path) -> None:
    """Put a wedge at the paths of the model's meshes."""
    (folder / "meshes" / "parts").mkdir(parents=True)
    p = np.array([[0, 0, 0], [3, 0, 0], [0, 2, 0], [0, 0, 1.0]])
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    triangles = np.zeros(4, dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("unused", "<u2")])
    triangles["corners"] = [p[list(face)] for face in faces]
    stl = bytes(80) + np.uint32(4).tobytes() + triangles.tobytes()
    (folder / "meshes" / "parts" / "hull.stl").write_bytes(stl)
    lines = [
        *("v {} {} {}".format(*corner) for corner in p),
        *("f {} {} {}".format(*(k + 1 for k in f)) for f in faces),
    ]
    (folder / "meshes" / "fist.obj").write_text("\n".join(lines), encoding="utf-8")


def _without_pictures(path: Path) -> Path:
    """Remove from a model the elements with files that are not meshes."""
    text = path.read_text(encoding="utf-8").replace(SKIN, "").replace('<geom type="hfield" hfield="hills"/>', "")
    assets = text[text.index("<texture") : text.index("</asset>")]
    path.write_text(text.replace(assets, ""), encoding="utf-8")
    return path


def test_all_that_is_missing_is_said(tmp_path: Path) -> None:
    path = _write(tmp_path / "bare.xml")
    assert read_mechanism(ModelFile(path=path)).left_out == (
        "contacts between geoms",
        "files without effect on the inertia: mesh 'parts/hull.stl' (missing), mesh 'fist.obj' (missing), "
        "hfield 'hills.png' (missing), texture 'wood.png' (missing), texture 'up.png' (missing), "
        "skin 'fur.skn' (missing)",
    )


def test_the_report_names_what_is_left_out(tmp_path: Path) -> None:
    cases = cases_of([_write(tmp_path / "model.xml")])
    results = run(cases, source_names=("mujoco/kkt",), dt=0.1, workers=Workers(jobs=1))
    (section,) = (block for block in robots(results).blocks if isinstance(block, Section))
    listed = [item for block in section.blocks if isinstance(block, list) for item in block]
    assert any(item.startswith("contacts between geoms") for item in listed)
    assert any(item.startswith("files without effect on the inertia: mesh") for item in listed)


BOX_AND_MESH = '<geom size="0.1 0.1 0.2" type="box"/><geom class="eye"/>'
"""Inertia from geoms: of both, or of the box alone if the group of the mesh is out of range."""


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"compiler": 'inertiagrouprange="0 2"', "crank": BOX_AND_MESH},
        {"compiler": 'discardvisual="true"'},
        {"compiler": 'fusestatic="true"'},
        {"compiler": 'settotalmass="3"'},
    ],
)
def test_a_model_is_the_same_with_its_meshes(tmp_path: Path, model_case: CaseMaker, changes: dict[str, str]) -> None:
    """Compiled by MuJoCo from real meshes, and read without them: the same bodies and efforts, to the last bit."""
    models, efforts = [], []
    for name in ("bare", "whole"):
        (tmp_path / name).mkdir()
        path = _without_pictures(_write(tmp_path / name / "model.xml", **changes))
        if name == "whole":
            _add_meshes(path.parent)
        case = model_case(path, amplitude=0.1)
        assert any("files without" in sentence for sentence in case.mechanism.left_out) == (name == "bare")
        efforts.append(KKT.compute_efforts(case, prescribe(case)).effort)
        models.append(compile_model(ModelFile(path=path)))
    for field in ("body_mass", "body_inertia", "body_ipos", "body_iquat", "body_pos", "body_quat"):
        np.testing.assert_array_equal(getattr(models[0], field), getattr(models[1], field))
    np.testing.assert_array_equal(efforts[0], efforts[1])


BARE_MESH = '<geom class="eye"/>'
LIGHT_MESH = '<geom size="0.1"/><geom class="eye" mass="1e-4"/>'
HULL = "inertia of body 'crank' depends on the file 'parts/hull.stl' (Error opening file 'meshes/parts/hull.stl')"
FIST = "inertia of body 'coupler' depends on the file 'fist.obj' (Error opening file 'meshes/fist.obj')"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"crank": BARE_MESH}, HULL),
        ({"crank": LIGHT_MESH}, HULL),
        ({"coupler": '<geom type="capsule" mesh="fist"/>'}, FIST),
        ({"crank": BARE_MESH, "coupler": '<geom type="capsule" mesh="fist"/>'}, f"{HULL}; {FIST}"),
        ({"compiler": 'inertiafromgeom="true"'}, f"{HULL}; {FIST}"),
        ({"compiler": 'inertiafromgeom="true" inertiagrouprange="0 2"', "crank": BOX_AND_MESH}, FIST),
        ({"compiler": 'boundmass="0.001"', "crank": BARE_MESH}, HULL),
    ],
)
def test_an_inertia_that_depends_on_a_mesh_is_refused(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    path = _write(tmp_path / "bad.xml", **changes)
    with pytest.raises(MechanismError) as caught:
        read_mechanism(ModelFile(path=path))
    assert str(caught.value) == f"{path}: {message}. Add the file, or write the inertia in <inertial>"


def test_what_a_scaled_total_mass_makes_of_a_mesh_is_refused_for_all(tmp_path: Path) -> None:
    path = _write(tmp_path / "bad.xml", compiler='settotalmass="3"', crank=BARE_MESH)
    with pytest.raises(MechanismError, match=r"'crank'.*'coupler'.*'rocker'"):
        read_mechanism(ModelFile(path=path))


def test_hundreds_of_missing_meshes_are_a_message_of_eight(tmp_path: Path) -> None:
    """As in a clone without its large files."""
    assets = "".join(f'<mesh name="m{k}" file="m{k}.stl"/>' for k in range(100))
    bodies = "".join(f'<body name="b{k}"><joint/><geom type="mesh" mesh="m{k}"/></body>' for k in range(100))
    path = tmp_path / "clone.xml"
    path.write_text(f"<mujoco><asset>{assets}</asset><worldbody>{bodies}</worldbody></mujoco>", encoding="utf-8")
    with pytest.raises(MechanismError) as caught:
        read_mechanism(ModelFile(path=path))
    message = str(caught.value)
    assert [f"'m{k}.stl'" in message for k in range(9)] == [True] * 8 + [False]
    assert "; inertia of 92 more bodies depends on missing files. Add the file" in message


def test_a_pointer_instead_of_a_mesh_is_missing_too(tmp_path: Path) -> None:
    path = _without_pictures(_write(tmp_path / "model.xml"))
    _add_meshes(tmp_path)
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0a1b\nsize 84\n"
    (tmp_path / "meshes" / "parts" / "hull.stl").write_text(pointer, encoding="utf-8")
    left_out = read_mechanism(ModelFile(path=path)).left_out
    assert left_out[-1] == "files without effect on the inertia: mesh 'parts/hull.stl' (cannot be read)"


@pytest.mark.parametrize("element", ['<include file="rest.xml"/>', '<asset><model name="m" file="rest.xml"/></asset>'])
def test_a_missing_part_of_the_model_is_refused(tmp_path: Path, element: str) -> None:
    path = _write(tmp_path / "model.xml", assets=FILES + element)
    with pytest.raises(MechanismError, match=r"Error opening file '.*rest\.xml'"):
        read_mechanism(ModelFile(path=path))


def test_another_mistake_is_not_taken_for_a_missing_file(tmp_path: Path) -> None:
    path = _write(tmp_path / "model.xml", crank=GIVEN.replace("<geom", '<geom material="steel"'))
    with pytest.raises(MechanismError, match="material 'steel' not found"):
        read_mechanism(ModelFile(path=path))
