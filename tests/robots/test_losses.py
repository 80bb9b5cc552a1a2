"""Names of a model file that are not read: every one is named with its line, and no value without effect is."""

import re
from collections.abc import Callable
from pathlib import Path

import mujoco  # noqa: TID251 - the tables list its fields
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mujoco.introspect import structs  # noqa: TID251

from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.formats import losses
from loopcheck.robots.formats.losses import KINDS, Loss, grouped, lost_values, table_of, unread, want_losses
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.formats.sdf import losses_of_sdf
from loopcheck.robots.formats.urdf import losses_of_urdf
from loopcheck.robots.formats.usd import losses_of_usd

URDF = """<robot name="arm">
<link name="base"/>
<link name="upper"><inertial><origin xyz="0 0 .1"/><mass value="1"/>
<inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
<origin xyz="0 0 1"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="5" velocity="2"/><dynamics damping=".1"/></joint>
<transmission name="t"><joint name="shoulder"/><actuator name="m"/></transmission>
</robot>
"""
SDF = """<sdf version="1.9"><model name="arm">
<link name="base"><inertial><mass>1</mass></inertial></link>
<joint name="fix" type="fixed"><parent>world</parent><child>base</child></joint>
<link name="upper"><inertial><mass>2</mass></inertial></link>
<joint name="shoulder" type="revolute"><parent>base</parent><child>upper</child>
<axis><xyz>0 1 0</xyz>
<limit><lower>-1</lower></limit></axis></joint>
</model></sdf>
"""
USD = """#usda 1.0
def Xform "arm"
{
    def Xform "base" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {
        float physics:mass = 1
        float3 physics:diagonalInertia = (1, 1, 1)
    }
    def Xform "upper" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {
        float physics:mass = 1
        float3 physics:diagonalInertia = (1, 1, 1)
    }
    def PhysicsRevoluteJoint "shoulder" (prepend apiSchemas = ["PhysicsDriveAPI:angular"])
    {
        uniform token physics:axis = "Y"
        rel physics:body0 = </arm/base>
        rel physics:body1 = </arm/upper>
    }
}
"""
PLACES: dict[str, tuple[str, ...]] = {
    "urdf": ("robot", "link", "inertial", "joint", "limit", "dynamics", "transmission", "actuator"),
    "sdf": ("sdf", "model", "link", "inertial", "joint", "axis", "limit"),
}
"""Elements that an unknown element or attribute may be in."""
WORDS = st.from_regex(r"[a-z]{3,9}", fullmatch=True).map(lambda word: f"q{word}")  # no name of a format begins with q
TELLING = st.sampled_from(["constraint", "Mimic", "gear", "rotor", "transmission"])
NAMES = st.one_of(WORDS, st.just("efort"), st.tuples(WORDS, TELLING).map("_".join))


def _urdf(tmp_path: Path, *changes: tuple[str, str]) -> tuple[Loss, ...]:
    return _losses(losses_of_urdf, tmp_path / "a.urdf", URDF, changes)


def _sdf(tmp_path: Path, *changes: tuple[str, str]) -> tuple[Loss, ...]:
    return _losses(losses_of_sdf, tmp_path / "a.sdf", SDF, changes)


def _usd(tmp_path: Path, *changes: tuple[str, str]) -> tuple[Loss, ...]:
    pytest.importorskip("pxr")
    return _losses(losses_of_usd, tmp_path / "a.usda", USD, changes)


def _losses(
    read: Callable[[Path], object], path: Path, text: str, changes: tuple[tuple[str, str], ...]
) -> tuple[Loss, ...]:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text, encoding="utf-8")
    return grouped(read(path))  # type: ignore[arg-type]


def _kinds(found: tuple[Loss, ...]) -> list[tuple[str, str]]:
    return [(loss.kind, loss.tag) for loss in found]


@pytest.mark.parametrize("read", [_urdf, _sdf, _usd])
def test_a_file_that_is_read_wholly_has_no_loss(tmp_path: Path, read: Callable[[Path], tuple[Loss, ...]]) -> None:
    assert read(tmp_path) == ()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize(
    "form",
    [pytest.param("urdf", marks=pytest.mark.evidence("MuJoCo compiles 60 files", seconds=1.5)), "sdf"],
)
def test_every_unknown_name_is_named_with_its_line(tmp_path: Path, form: str, data: st.DataObject) -> None:
    text = {"urdf": URDF, "sdf": SDF}[form]
    name, place = data.draw(NAMES), data.draw(st.sampled_from(PLACES[form]))
    starts = [match.end() for match in re.finditer(rf"<{place}\b", text)]
    start = data.draw(st.sampled_from(starts))
    if data.draw(st.booleans()):
        text = f'{text[:start]} {name}="7.5"{text[start:]}'
        line = text[: text.rindex("<", 0, start)].count("\n") + 1
    else:
        end = text.index(">", start)
        if text[end - 1] == "/":
            text = f"{text[: end - 1]}><{name}>7.5</{name}></{place}>{text[end + 1 :]}"
        else:
            text = f"{text[: end + 1]}<{name}>7.5</{name}>{text[end + 1 :]}"
        line = text[: text.index(f"<{name}")].count("\n") + 1
    path = tmp_path / f"a.{form}"
    path.write_text(text, encoding="utf-8")
    (loss,) = grouped((losses_of_urdf if form == "urdf" else losses_of_sdf)(path))
    telling = re.search("constraint|mimic|gear|rotor|transmission", name, re.IGNORECASE)
    assert (loss.tag, loss.line, loss.kind) == (name, line, "mechanism" if telling else "unknown")


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES, place=st.sampled_from(["base", "upper", "shoulder"]), is_prim=st.booleans())
def test_every_unknown_name_of_a_usd_is_named_with_its_line(
    tmp_path: Path, name: str, place: str, is_prim: bool
) -> None:
    pytest.importorskip("pxr")
    start = USD.index("{", USD.index(f'"{place}"')) + 2
    added = f'def {name.title().replace("_", "")} "x{name}" {{}}\n' if is_prim else f"custom double {name} = 7.5\n"
    path = tmp_path / "a.usda"
    path.write_text(USD[:start] + added + USD[start:], encoding="utf-8")
    (loss,) = grouped(losses_of_usd(path))
    assert loss.line == USD[:start].count("\n") + 1
    assert loss.tag == (name.title().replace("_", "") if is_prim else name)


@pytest.mark.parametrize("value", ["0", "false", "0.0 0 0", "", "none", "1 0 0 0", "0 0 0 1"])
def test_a_neutral_value_is_no_loss(tmp_path: Path, value: str) -> None:
    assert not _urdf(tmp_path, ('<dynamics damping=".1"', f'<dynamics damping=".1" efort="{value}"'))
    assert not _urdf(tmp_path, ("<axis", f"<efort>{value}</efort><axis"))
    assert not _sdf(tmp_path, ("<axis>", f"<efort>{value}</efort><axis>"))


def test_a_namespace_is_no_loss(tmp_path: Path) -> None:
    assert not _urdf(tmp_path, ('<robot name="arm"', '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="arm"'))


@pytest.mark.parametrize("value", ["1", "5000", "0 1", "0 1 0 0", "x"])
def test_a_value_with_an_effect_is_a_loss(tmp_path: Path, value: str) -> None:
    assert _urdf(tmp_path, ("<axis", f"<efort>{value}</efort><axis"))


@pytest.mark.parametrize(
    ("added", "kind", "tag"),
    [
        ('<weld><a link="base"/><b link="upper"/></weld>', "mechanism", "weld"),
        ('<pins of="base upper"/>', "mechanism", "pins"),
        ('<pins of="base"/>', "unknown", "pins"),
        ('<d:weld_constraint xmlns:d="http://drake.mit.edu"><a name="x"/></d:weld_constraint>', "mechanism", None),
        ('<drake:linear_spring_damper><a value="1"/></drake:linear_spring_damper>', "mechanism", None),
        ('<gazebo><link name="l"><pose>1 0 0 0 0 0</pose></link></gazebo>', "mechanism", "link"),
        ('<gazebo><joint name="l"><axis><limit><upper>1e16</upper></limit></axis></joint></gazebo>', "", ""),
        ('<gazebo><joint name="l"><axis><limit><upper>2</upper></limit></axis></joint></gazebo>', "load", "limit"),
        ('<gazebo reference="upper"><mu1>0.5</mu1></gazebo>', "load", "mu1"),
        ('<gazebo reference="upper"><implicitSpringDamper>1</implicitSpringDamper></gazebo>', "setting", None),
        (
            '<transmission name="d"><joint name="shoulder"/><joint name="b"/></transmission>',
            "mechanism",
            "transmission",
        ),
        ("<mimic joint='shoulder'/>", "mechanism", "mimic"),
        ("<gazebo><plugin filename='x'><bodyA>base</bodyA><bodyB>upper</bodyB></plugin></gazebo>", "", ""),
    ],
)
def test_elements_of_dialects_have_their_kind(tmp_path: Path, added: str, kind: str, tag: str | None) -> None:
    found = _urdf(tmp_path, ("</robot>", f"{added}</robot>"))
    tags = [tag] if tag is not None else [re.sub("d:", "drake:", re.findall(r"<([\w:]+)", added)[0])]
    if kind == "setting":
        tags = ["implicitSpringDamper"]
    assert _kinds(found) == ([(kind, tags[0].replace("drake:rake:", "drake:"))] if kind else [])


def test_a_known_element_in_another_place_is_part_of_the_mechanism(tmp_path: Path) -> None:
    (loss,) = _sdf(tmp_path, ("<limit><lower>-1</lower></limit>", "<lower>-1</lower>"))
    assert (loss.kind, loss.tag, loss.path) == ("mechanism", "lower", "/sdf/model/joint/axis/lower")
    assert "in another place" in str(loss)


def test_drives_and_friction_of_a_usd_are_named(tmp_path: Path) -> None:
    added = (
        "custom float drive:angular:physics:stiffness = 2\n"
        "custom float physxJoint:jointFriction = 0.1\n"
        "custom float physxMimicJoint:transX:gearing = 2\n"
        "custom rel acme:both = [</arm/base>, </arm/upper>]\n"
    )
    found = _usd(tmp_path, ('uniform token physics:axis = "Y"', f'uniform token physics:axis = "Y"\n{added}'))
    assert _kinds(found) == [
        ("mechanism", "acme:both"),
        ("mechanism", "physxMimicJoint:transX:gearing"),
        ("drive", "drive:angular:physics:stiffness"),
        ("load", "physxJoint:jointFriction"),
    ]


def _in_both_links(tag: str) -> tuple[tuple[str, str], ...]:
    added = f"<{tag}>2</{tag}>"
    return ('<link name="base"/>', f'<link name="base">{added}</link>'), ("</inertial>", f"</inertial>{added}")


def test_losses_of_a_name_are_one_finding_with_its_first_line_and_count(tmp_path: Path) -> None:
    both = (
        ('<link name="base"/>', '<link name="base"><acme>1</acme></link>'),
        ("</inertial>", "</inertial><acme>2</acme>"),
    )
    (loss,) = _urdf(tmp_path, *both)
    assert (loss.line, loss.count, loss.elements) == (2, 2, ("base", "upper"))


def test_accepted_losses_are_named_by_tag_or_element(tmp_path: Path) -> None:
    both = (
        ('<link name="base"/>', '<link name="base"><gear>1</gear></link>'),
        ("</inertial>", "</inertial><gear>2</gear>"),
    )
    _urdf(tmp_path, *both)
    model = ModelFile(path=tmp_path / "a.urdf")
    assert [loss.count for loss in unread(read_mechanism(model).losses)] == [2]
    one = read_mechanism(ModelFile(path=model.path, leave_out=("gear:base",))).losses
    assert [loss.elements for loss in unread(one)] == [("upper",)]
    every = read_mechanism(ModelFile(path=model.path, leave_out=("gear",))).losses
    assert unread(every) == ()
    with pytest.raises(NotFoundError, match=r"--leave-out: 'geer'.*gear:base"):
        want_losses(["geer"], every)


SERVO = """<mujoco><option timestep="0.001" wind="1 0 0"/><worldbody><body>
<joint name="j" frictionloss="1" range="0 1"/><geom size=".1"/></body></worldbody><actuator>{}</actuator></mujoco>"""


@pytest.mark.parametrize(
    ("actuator", "drives"),
    [
        ('<motor name="a" joint="j"/>', []),
        ('<position name="a" joint="j" kp="3"/>', ["actuator_biastype", "actuator_gainprm"]),
        ('<damper name="a" joint="j" kv="1" ctrlrange="0 1"/>', ["actuator_gaintype", "actuator_gainprm"]),
        ('<general name="a" joint="j" dyntype="filter" dynprm="1"/>', ["actuator_dyntype"]),
    ],
)
def test_losses_of_mjcf_are_values_of_the_compiled_model(actuator: str, drives: list[str]) -> None:
    m = mujoco.MjModel.from_xml_string(SERVO.format(actuator))
    found = list(lost_values(m, mujoco.MjOption()))
    assert [loss.tag for loss in found if loss.kind == "drive"] == drives
    assert all(loss.elements == ("a",) for loss in found if loss.kind == "drive")
    loads = {loss.tag: loss.elements for loss in found if loss.kind == "load"}
    contacts = dict.fromkeys(("geom_contype", "opt.wind"), ())
    assert loads == {"dof_frictionloss": ("j",), "jnt_limited": ("j",), **contacts}
    assert [loss.tag for loss in found if loss.kind == "setting"] == ["opt.timestep"]


def test_dry_friction_is_named_by_joint_behind_joints_of_several_dofs() -> None:
    bodies = (
        '<body><freejoint name="f"/><geom size=".1"/><body><joint name="h" frictionloss="2"/><geom size=".1"/></body>'
    )
    m = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</body></worldbody></mujoco>")
    (friction,) = [loss for loss in lost_values(m, mujoco.MjOption()) if loss.tag == "dof_frictionloss"]
    assert friction.elements == ("h",)
    assert str(friction) == "dry friction of joints h"


def test_every_field_of_the_compiled_model_is_listed() -> None:
    """A release of MuJoCo with a new field fails here: the field is read, harmless, refused, or a loss."""
    table = table_of("mjcf")
    fields = [f"@{one.name}" for one in structs.STRUCTS["mjModel"].fields]
    fields += [f"@opt.{one.name}" for one in structs.STRUCTS["mjOption"].fields]
    assert [name for name in fields if not table.class_of(name).kind] == []


def test_every_physics_property_of_usd_core_is_listed() -> None:
    Usd = pytest.importorskip("pxr.Usd")
    registry, table = Usd.SchemaRegistry(), table_of("usd")
    names = set()
    for kind in ("RigidBody", "Mass", "Collision", "FilteredPairs", "Material", "MeshCollision"):
        names |= {*registry.FindAppliedAPIPrimDefinition(f"Physics{kind}API").GetPropertyNames()}
    for kind in ("Scene", "RevoluteJoint", "PrismaticJoint", "SphericalJoint", "DistanceJoint", "CollisionGroup"):
        assert table.class_of(f"/Physics{kind}").kind
        names |= {*registry.FindConcretePrimDefinition(f"Physics{kind}").GetPropertyNames()}
    ours = [name for name in names if name.startswith("physics:")]
    distances = {"physics:minDistance", "physics:maxDistance"}  # of a joint that is a loss as a whole
    assert {name for name in ours if not table.class_of(f"@{name}").kind} == distances


def test_every_element_of_drake_is_listed() -> None:
    pydrake = pytest.importorskip("pydrake")
    library = Path(pydrake.__file__).parent / "lib" / "libdrake.so"
    if not library.is_file():
        pytest.skip("pydrake without its library beside it")
    tokens = {token.decode() for token in re.findall(rb"\x00(drake:[A-Za-z_]+)(?=\x00)", library.read_bytes())}
    assert "drake:ball_constraint" in tokens
    text = "".join((Path(losses.__file__).parent / f"names_of_{name}.toml").read_text() for name in ("urdf", "sdf"))
    listed = {*re.findall(r"drake:\w+", text), "drake:bushing_"}  # below a bushing
    telling = [token for token in tokens if re.search("constraint|joint|gear|rotor|spring|bushing|mimic", token)]
    assert [token for token in telling if not any(token.startswith(name) for name in listed)] == []


@pytest.mark.parametrize("name", ["urdf", "sdf", "usd", "mjcf"])
def test_a_table_lists_each_name_once_and_each_kind_is_known(name: str) -> None:
    table = table_of(name)
    endings = [ending for ending, _ in table.rules]
    assert sorted(endings) == sorted(set(endings))
    assert set(table.loss) <= set(KINDS)
    assert all(table.loss[kind] for kind in table.loss)


def test_a_file_that_cannot_be_read_has_no_losses(tmp_path: Path) -> None:
    (tmp_path / "a.urdf").write_text("<robot")
    with pytest.raises(MechanismError, match="readable XML"):
        list(losses_of_urdf(tmp_path / "a.urdf"))
