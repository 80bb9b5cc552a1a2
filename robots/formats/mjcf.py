"""Reads a robot from MJCF through MuJoCo's own compiler; refuses, by name, elements that it cannot represent."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from loopcheck.robots.arrays import Array, PositionSeries
from loopcheck.robots.errors import HarnessError, MechanismError, NotFoundError, listed
from loopcheck.robots.formats import mjcf_paths
from loopcheck.robots.formats.losses import lost_values, with_accepted
from loopcheck.robots.formats.missing_files import (
    MissingFile,
    compile_without,
    in_words,
    leave_out_meshes,
    missing_files,
)
from loopcheck.robots.formats.mjcf_paths import equalities_enabled, has_equality, has_spring, is_spatial, path_of
from loopcheck.robots.formats.model_file import ANCHORS, ModelFile, Overrides, captured_warnings, file_hash, in_one_line
from loopcheck.robots.formats.mujoco_compat import CompatibleModel, names_of_actuators
from loopcheck.robots.formats.registry import format_of, want_model_suffix
from loopcheck.robots.formats.spec_elements import add_motor, exact_tensors
from loopcheck.robots.mechanism import (
    DOFS,
    POSITIONS,
    WORLD,
    Actuator,
    Body,
    Closure,
    ConnectClosure,
    Coordinate,
    CoordinateClosure,
    EffortLimit,
    Joint,
    JointKind,
    Mechanism,
    PointSpring,
    Site,
    Tendon,
    WeldClosure,
)

KINDS: Mapping[int, JointKind] = {
    int(mujoco.mjtJoint.mjJNT_HINGE): "hinge",
    int(mujoco.mjtJoint.mjJNT_SLIDE): "slide",
    int(mujoco.mjtJoint.mjJNT_BALL): "ball",
    int(mujoco.mjtJoint.mjJNT_FREE): "free",
}
# Plain integers, because MuJoCo's enumerations do not equal numpy's integers.
_EQ, _TRN = mujoco.mjtEq, mujoco.mjtTrn
CONNECT, WELD, JOINT, TENDON = (int(e) for e in (_EQ.mjEQ_CONNECT, _EQ.mjEQ_WELD, _EQ.mjEQ_JOINT, _EQ.mjEQ_TENDON))
TORQUE_SCALE, QUATERNION = 10, slice(6, 10)
"""Indices in the data of a weld: the factor of its rotation, and the rotation between its bodies."""
WORLD_NAME = "world"
SITE = int(mujoco.mjtObj.mjOBJ_SITE)
ON_JOINT = (int(_TRN.mjTRN_JOINT), int(_TRN.mjTRN_JOINTINPARENT))
ON_TENDON = int(_TRN.mjTRN_TENDON)
MOTOR = tuple(int(e) for e in (mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtDyn.mjDYN_NONE))
"""Kinds of gain, bias and activation of an actuator with effort = constant · control."""
FOLLOW_LENGTHS = ("discrete", "rk4")
"""Integrators whose actuator forces follow the lengths within a step, too; the implicit ones follow the rates alone."""


LARGEST = 1e30
"""Largest number of a model [any unit]: products of five do not overflow."""
NAMED = 8
"""Largest number of unsupported features listed in a message; further features are counted."""


def load_spec(model: ModelFile) -> Any:
    """The MJCF as an editable `MjSpec`, with the overrides applied.

    Raises:
        MechanismError: If the file cannot be read, is not a valid MJCF, or an override names a missing element.
    """
    if not model.path.is_file():
        raise MechanismError(f"{model.path}: must be an existing model file")
    with captured_warnings() as messages:
        form = format_of(model.path)
        if form is not None:
            spec = form.spec(model.path)
        else:
            want_model_suffix(model.path)
            with in_one_line(model.path):
                spec = mujoco.MjSpec.from_file(str(model.path))
    model.want_unchanged()
    if any("NaN" in warning for warning in messages):
        raise MechanismError(f"{model.path}: numbers must be finite, got {_first_nan(model)}")
    _name_all(spec)
    _release_handles(spec)
    _release_turns(spec)
    for kind, elements in model.overrides.items():
        for name, values in elements.items():
            if kind == ANCHORS:
                _put_anchors(spec, name, values)
            else:
                _override(model, spec, kind, name, values)
    exact_tensors(spec)
    if model.actuated:
        _actuate(model, spec)
    return spec


def compile_model(model: ModelFile, edit: Callable[[Any], None] | None = None) -> Any:
    """Compile the MJCF into an `MjModel`, without missing files if no inertia depends on them.

    Args:
        edit: Called with the `MjSpec` before it is compiled.

    Raises:
        MechanismError: If the MJCF does not compile.
    """
    spec = load_spec(model)
    if edit is not None:
        edit(spec)
    return _compile(model, spec)[0]


def _compile(model: ModelFile, spec: Any) -> tuple[Any, tuple[MissingFile, ...]]:
    """The compiled model, and the files it goes without."""
    with captured_warnings(), in_one_line(model.path):
        try:
            return spec.compile(), ()
        except ValueError:
            missing = missing_files(spec)
            if not missing:
                raise
            return compile_without(spec, missing), missing


@dataclass(frozen=True, slots=True, kw_only=True)
class MotorForce:
    """Force of a motor by its command: their ratio, and the ranges to which MuJoCo clips both."""

    gain: float
    command: tuple[float, float]
    force: tuple[float, float]

    def __call__(self, commands: Array) -> Array:
        """Forces before the gear [N or N m], of the shape of the commands."""
        return np.clip(self.gain * np.clip(commands, *self.command), *self.force)


def motor_forces(model: ModelFile) -> dict[str, MotorForce]:
    """Actuators whose force is a multiple of the command, by name; all others are servos, or have a state.

    Raises:
        MechanismError: If the MJCF does not compile.
    """
    m = compile_model(model)
    kinds = zip(m.actuator_gaintype, m.actuator_biastype, m.actuator_dyntype, strict=True)
    no_limit = (-np.inf, np.inf)
    return {
        name: MotorForce(
            gain=float(m.actuator_gainprm[k, 0]),
            command=tuple(m.actuator_ctrlrange[k]) if m.actuator_ctrllimited[k] else no_limit,
            force=tuple(m.actuator_forcerange[k]) if m.actuator_forcelimited[k] else no_limit,
        )
        for k, (name, kind) in enumerate(zip(names_of_actuators(m), kinds, strict=True))
        if tuple(map(int, kind)) == MOTOR
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class VaryingForce:
    """Force of a servo that changes within a step of an integrator."""

    integrator: str
    timestep: float
    """Step of the simulation [s]."""
    by_length: float
    """Derivative of the force by the length of the transmission [N/m or N m/rad], if the integrator follows it."""
    by_rate: float
    """Derivative by its rate [N s/m or N m s/rad]."""


def varying_forces(model: ModelFile) -> dict[str, VaryingForce]:
    """Servos whose forces change within a step by the integrator of the file, by name.

    MuJoCo's `actuator_force`, the force at the beginning of the step, is then not the effort that acts over it.

    Raises:
        MechanismError: If the MJCF does not compile.
    """
    m = compile_model(model)
    if m.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER:
        return {}
    integrator = mujoco.mjtIntegrator(m.opt.integrator).name.removeprefix("mjINT_").lower()
    is_gain = m.actuator_gaintype == int(mujoco.mjtGain.mjGAIN_AFFINE)
    is_bias = m.actuator_biastype == int(mujoco.mjtBias.mjBIAS_AFFINE)
    known = np.where(is_bias[:, None], m.actuator_biasprm[:, 1:3], 0.0)
    return {
        name: VaryingForce(
            integrator=integrator,
            timestep=float(m.opt.timestep),
            by_length=float(known[k, 0]) if integrator in FOLLOW_LENGTHS else 0.0,
            by_rate=float(known[k, 1]),
        )
        for k, name in enumerate(names_of_actuators(m))
        if known[k].any() or (is_gain[k] and m.actuator_gainprm[k, 1:3].any())
    }


def read_mechanism(model: ModelFile) -> Mechanism:
    """Read a mechanism from MJCF.

    Raises:
        MechanismError: If the MJCF does not compile, has a number that is not finite, or has something that the
            analytic models do not carry; the message names it.
    """
    compiled, missing = _compile(model, load_spec(model))
    m = CompatibleModel(compiled)
    try:
        if not 0 < m.opt.timestep < np.inf:
            raise MechanismError(f"option timestep: must be above 0 s, got {m.opt.timestep:g} s")
        if not m.njnt:
            raise MechanismError(f"must have at least 1 joint, got none on {m.nbody - 1} bodies")
        _refuse_unsupported(m, model)
        mechanism = _mechanism(model, m, missing)
        _want_moderate(mechanism)
    except HarnessError as error:
        raise MechanismError(f"{model.path}: {error}") from error
    except UnicodeDecodeError as error:
        raise MechanismError(f"{model.path}: names must be encoded in UTF-8, got {error.object!r}") from error
    return mechanism


def _mechanism(model: ModelFile, m: Any, missing: tuple[MissingFile, ...], *, is_partial: bool = False) -> Mechanism:
    """The mechanism of a compiled model; if partial, without elements that `Mechanism` cannot represent."""
    form = format_of(model.path)
    names_lost = form.losses(model.path) if form else ()
    losses = with_accepted([*names_lost, *lost_values(m, mujoco.MjOption())], model.leave_out)
    names = names_of_actuators(m)
    closures, actuators, with_slides = list(range(m.neq)), list(range(len(names))), mjcf_paths.with_slides(m)
    if is_partial:
        closures = [i for i in closures if _is_supported_closure(m, i)]
        actuators = [i for i in actuators if not any(_unsupported_actuator(m, i))]
    return Mechanism(
        model=model,
        bodies=tuple(_body(m, i) for i in range(1, m.nbody)),
        joints=(*(_joint(m, i) for i in range(m.njnt)), *mjcf_paths.slides(m)),
        closures=(
            *(_closure(m, i) for i in closures if m.eq_active0[i] and equalities_enabled(m)),
            *(mjcf_paths.closure_of(m, i, f"length of {m.tendon(i).name}") for i in with_slides),
        ),
        actuators=tuple(_actuator(m, i, names[i]) for i in actuators),
        sites=tuple(_site(m, i) for i in range(m.nsite)),
        keyframes={m.key(i).name or f"key{i}": _keyframe(m, m.key_qpos[i]) for i in range(m.nkey)},
        gravity=np.zeros(3) if m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY else m.opt.gravity,
        tendons=tuple(_tendon(m, i) for i in range(m.ntendon) if i in with_slides or not is_spatial(m, i)),
        point_springs=tuple(
            _point_spring(m, i) for i in range(m.ntendon) if is_spatial(m, i) and mjcf_paths.is_point_spring(m, i)
        ),
        left_out=(
            *dict.fromkeys(str(loss) for loss in losses if loss.kind == "load" and not loss.path),
            *_idle_tendons(m),
            *_pushing_tendons(m),
            *_without_effort(model, m),
            *_handles(m),
            *(["plugins of sensors, geometry and rendering"] if m.nplugin else []),
            *([in_words(missing)] if missing else []),
            *(form.left_out(model.path) if form else ()),
        ),
        losses=losses,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A compiled MJCF for checks of the file itself, with the lines of its elements."""

    mechanism: Mechanism
    """The supported part of the model."""
    compiled: Any
    """The `MjModel`, without meshes that no inertia depends on."""
    in_degrees: bool
    """Whether angles of the file are in degrees."""
    unsupported: tuple[str, ...]
    """Elements that are not in `mechanism`."""
    handles: tuple[str, ...]
    """Equalities to mocap bodies, a phrase each."""
    densities: Mapping[str, float]
    """Largest density of a geom of each body with its mass from geoms [kg/m³], by body."""
    lines: Mapping[tuple[str, str], int]
    """Line of each element by its kind (body, joint, equality, actuator or tendon) and name."""


def describe(path: Path, leave_out: Sequence[str] = ()) -> Description:
    """Read the supported part of a model file.

    Args:
        path: The file.
        leave_out: Losses of the file that are accepted, TAG or TAG:NAME.

    Raises:
        MechanismError: If the MJCF does not compile or has a number that is not finite.
    """
    hashes = {str(path.absolute()): file_hash(path)}  # nobody stores results of it
    model = ModelFile(path=path, leave_out=tuple(leave_out), hashes=hashes)
    spec = load_spec(model)
    lines, densities = dict(_lines(spec)), _densities(spec)
    leave_out_meshes(spec)
    compiled, missing = _compile(model, spec)
    m = CompatibleModel(compiled)
    try:
        mechanism = _mechanism(model, m, missing, is_partial=True)
        _want_moderate(mechanism)
    except HarnessError as error:
        raise MechanismError(f"{path}: {error}") from error
    return Description(
        mechanism=mechanism,
        compiled=m,
        in_degrees=bool(spec.compiler.degree),
        unsupported=tuple(dict.fromkeys(_unsupported(m))),
        handles=tuple(_handles(m)),
        densities=densities,
        lines=lines,
    )


def overlaps_at_loops(description: Description, q: PositionSeries) -> dict[str, Array]:
    """How deep the geoms of the two bodies of each connect and weld lie in each other [m], shape (nt,); 0 if apart.

    Contacts by MuJoCo, which leaves out those between parent and child, but not those between the ends of a loop. Geoms
    with meshes are left out.
    """
    model = description.compiled.plain
    data, body, of_pair = mujoco.MjData(model), model.body_weldid, dict[frozenset[int], list[str]]()
    for i in range(model.neq):
        if model.eq_type[i] in (CONNECT, WELD) and model.eq_active0[i]:
            ends = (int(model.eq_obj1id[i]), int(model.eq_obj2id[i]))
            bodies = [int(model.site_bodyid[k]) if model.eq_objtype[i] == SITE else k for k in ends]
            of_pair.setdefault(frozenset(int(body[k]) for k in bodies), []).append(_name_of_equality(model, i))
    depths = {name: np.zeros(len(q)) for names in of_pair.values() for name in names}
    for k, pose in enumerate(q if of_pair else ()):
        data.qpos[:] = pose
        mujoco.mj_fwdPosition(model, data)
        for contact in data.contact:
            if (model.geom_dataid[contact.geom] >= 0).any():
                continue  # its mesh is a stand-in
            touching = frozenset(int(body[model.geom_bodyid[geom]]) for geom in contact.geom)
            for name in of_pair.get(touching, ()):
                depths[name][k] = max(depths[name][k], -float(contact.dist))
    return depths


def _lines(spec: Any) -> Iterator[tuple[tuple[str, str], int]]:
    """Lines of the elements, counted in the file or in the included file that contains them."""
    kinds = {
        "body": "bodies",
        "joint": "joints",
        "equality": "equalities",
        "actuator": "actuators",
        "tendon": "tendons",
    }
    for kind, elements in kinds.items():
        for i, element in enumerate(getattr(spec, elements)):
            number = re.search(r"line (\d+)", element.info)
            if number:
                yield (kind, element.name or f"{kind}{i}"), int(number[1])


def is_in_degrees(model: ModelFile) -> bool:
    """Whether angles of an MJCF are in degrees.

    Raises:
        MechanismError: If it cannot be read.
    """
    return bool(load_spec(model).compiler.degree)


def with_overrides(mechanism: Mechanism, overrides: Overrides) -> Mechanism:
    """The mechanism with other values in its MJCF. Gravity, wrenches and effort scales, absent from MJCF, stay.

    Args:
        overrides: As `ModelFile.overrides`.

    Raises:
        MechanismError: If the MJCF does not compile with them.
    """
    read = read_mechanism(mechanism.model.with_overrides(overrides))
    scales = {actuator.name: actuator.effort_scale for actuator in mechanism.actuators}
    actuators = tuple(replace(actuator, effort_scale=scales[actuator.name]) for actuator in read.actuators)
    return replace(read, gravity=mechanism.gravity, wrenches=mechanism.wrenches, actuators=actuators)


def _first_nan(model: ModelFile) -> str:
    """The first invalid number of the file, with its line."""
    lines = model.path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        match = re.search(r'(\w+)\s*=\s*"[^"]*\bnan\b[^"]*"', line, re.IGNORECASE)
        if match:
            return f"{match[0]} in line {number}"
    return "NaN in an included file"


def _name_all(spec: Any) -> None:
    """Give unnamed elements names by their place, so that a route can refer to them."""
    for kind in ("joint", "tendon"):
        elements = list(getattr(spec, f"{kind}s"))
        taken = {element.name for element in elements}
        for i, element in enumerate(elements):
            name = f"{kind}{i}"
            while not element.name and name in taken:
                name += "_"
            element.name = element.name or name


def _release_turns(spec: Any) -> None:
    """Make welds with a torque scale of zero connects: their rows of the rotation are zero."""
    for weld in spec.equalities:
        if int(weld.type) != WELD or weld.data[TORQUE_SCALE]:
            continue
        weld.type, data = _EQ.mjEQ_CONNECT, np.array(weld.data)
        if int(weld.objtype) == SITE:
            continue
        if data[QUATERNION].any():  # the file states the point of the first body
            ends, points = (weld.name1, weld.name2 or WORLD_NAME), (data[3:6], data[0:3])
            weld.objtype, names = mujoco.mjtObj.mjOBJ_SITE, [f"{weld.name}, end {k}" for k in (1, 2)]
            for name, body, point in zip(names, ends, points, strict=True):
                spec.body(body).add_site(name=name, pos=point)
            weld.name1, weld.name2 = names
        else:  # the anchor of a weld is in its second body, that of a connect in its first
            weld.name1, weld.name2 = weld.name2 or WORLD_NAME, weld.name1


def _release_handles(spec: Any) -> None:
    """Deactivate the connects and welds to mocap bodies: whoever moves such a body holds the robot by it."""
    handles = {body.name for body in spec.bodies if body.mocap}
    on_handles = {site.name for site in spec.sites if site.parent.mocap}
    for equality in spec.equalities if handles else ():
        taken = on_handles if equality.objtype == mujoco.mjtObj.mjOBJ_SITE else handles
        if int(equality.type) in (CONNECT, WELD) and {equality.name1, equality.name2} & taken:
            equality.active = False


def _handles(m: Any) -> Iterator[str]:
    """Connects and welds to mocap bodies, a phrase each."""
    for i in range(m.neq if m.nmocap else 0):
        if m.eq_type[i] in (CONNECT, WELD):
            ends = [int(m.eq_obj1id[i]), int(m.eq_obj2id[i])]
            bodies = [int(m.site_bodyid[end]) for end in ends] if m.eq_objtype[i] == SITE else ends
            held = [m.body(body).name for body in bodies if m.body_mocapid[body] >= 0]
            if held:
                kind = "weld" if m.eq_type[i] == WELD else "connect"
                yield f"{kind} '{m.equality(i).name or f'equality{i}'}' to the mocap body '{held[0]}'"


def _densities(spec: Any) -> dict[str, float]:
    """Largest density of a geom of each body with its mass from geoms [kg/m³], by body."""
    always = int(spec.compiler.inertiafromgeom) == int(mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE)
    densities: dict[str, float] = {}
    for i, body in enumerate(spec.bodies):
        stated = [float(geom.density) for geom in body.geoms if np.isnan(geom.mass)]
        if stated and (always or not body.explicitinertial):
            densities[body.name or f"body{i}"] = max(stated)
    return densities


def _put_anchors(spec: Any, name: str, points: Mapping[str, Any]) -> None:
    """Let a closure between sites join two new sites of their bodies [m]; the old ones may serve other elements."""
    equality = next(equality for k, equality in enumerate(spec.equalities) if (equality.name or f"equality{k}") == name)
    sites = {site.name: site for site in spec.sites}
    for end, point in points.items():
        site = sites[getattr(equality, end)].parent.add_site(name=f"{name} {end} at its mean", pos=list(point))
        setattr(equality, end, site.name)


def _override(model: ModelFile, spec: Any, kind: str, name: str, values: Mapping[str, Any]) -> None:
    elements = {"body": spec.bodies, "joint": spec.joints, "site": spec.sites, "equality": spec.equalities}
    if kind not in elements:
        raise NotFoundError(f"kind of element in the overrides of {model.path.name}", kind, elements)
    named = {element.name: element for element in elements[kind]}
    if name not in named:
        raise NotFoundError(f"{kind} in {model.path.name}", name, named)
    settable = [a for a, what in vars(type(named[name])).items() if getattr(what, "fset", None)]  # what can be set
    for attribute, value in values.items():
        if attribute not in settable:
            raise NotFoundError(f"attribute of {kind} '{name}' in {model.path.name}", attribute, settable)
        try:
            setattr(named[name], attribute, value)
        except (TypeError, ValueError) as error:
            raise MechanismError(
                f"{model.path}: {kind} '{name}': invalid value {value!r} of attribute '{attribute}'"
            ) from error


def _actuate(model: ModelFile, spec: Any) -> None:
    """Replace the actuators of the file by a motor on each of the named joints, or keep the named actuators alone."""
    by_joint = _names_joints(model, spec)
    for actuator in list(spec.actuators):
        if by_joint or actuator.name not in model.actuated:
            spec.delete(actuator)
    for key in spec.keys:
        key.ctrl, key.act = [], []
    for name in model.actuated if by_joint else ():
        add_motor(spec, name)


def _names_joints(model: ModelFile, spec: Any) -> bool:
    """Whether all names of `--actuated` are joints or tendons; otherwise all are actuators of the file."""
    joints, tendons, actuators = (
        [element.name for element in elements] for elements in (spec.joints, spec.tendons, spec.actuators)
    )
    joints += tendons
    named = model.actuated
    if len({*named}) < len(named):
        raise MechanismError(f"{model.path}: actuated joints must be unique, got {', '.join(named)}")
    unknown = [name for name in named if name not in joints and name not in actuators]
    if unknown:
        raise NotFoundError(f"joint or tendon in {model.path.name}", unknown[0], [*joints, *actuators])
    if not ({*named} <= {*joints} or {*named} <= {*actuators}):
        raise MechanismError(
            f"{model.path}: --actuated must name joints or actuators, not both, got {', '.join(named)}"
        )
    return {*named} <= {*joints}


def _matrix(quaternion: Array) -> Array:
    """Rotation matrix of a quaternion (w, x, y, z) of any length."""
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, np.asarray(quaternion, dtype=float) / np.linalg.norm(quaternion))
    return R.reshape(3, 3)


def _body(m: Any, i: int) -> Body:
    body = m.body(i)
    R = _matrix(m.body_iquat[i])
    return Body(
        name=body.name or f"body{i}",
        parent=int(m.body_parentid[i]) - 1,  # MuJoCo counts the world as body 0
        position=m.body_pos[i],
        rotation=_matrix(m.body_quat[i]),
        mass=float(m.body_mass[i]),
        center=m.body_ipos[i],
        inertia=R @ np.diag(m.body_inertia[i]) @ R.T,
        gravity_compensation=float(m.body_gravcomp[i]),
    )


def _joint(m: Any, i: int) -> Joint:
    kind = KINDS[int(m.jnt_type[i])]
    dof, q = int(m.jnt_dofadr[i]), int(m.jnt_qposadr[i])
    return Joint(
        name=m.joint(i).name,
        kind=kind,
        body=int(m.jnt_bodyid[i]) - 1,
        axis=m.jnt_axis[i],
        anchor=m.jnt_pos[i],
        rest_position=m.qpos0[q : q + POSITIONS[kind]],
        armature=float(m.dof_armature[dof]) + _of_actuator(m, m.jnt_actuatorid[i], m.actuator_armature),
        damping=float(m.dof_damping[dof]) + _of_actuator(m, m.jnt_actuatorid[i], m.actuator_damping),
        stiffness=float(m.jnt_stiffness[i]),
        spring_reference=m.qpos_spring[q : q + POSITIONS[kind]],
        friction=float(m.dof_frictionloss[dof]),
        limits=(float(m.jnt_range[i, 0]), float(m.jnt_range[i, 1])) if m.jnt_limited[i] and _is_scalar(m, i) else None,
    )


def _of_actuator(m: Any, actuator: int, values: Any) -> float:
    """Armature or damping that an actuator adds to its joint or tendon, through its gear."""
    return float(values[actuator] * m.actuator_gear[m.actuator_outadr[actuator], 0] ** 2) if actuator >= 0 else 0.0


def _keyframe(m: Any, q: Array) -> Array:
    """Joint positions of a keyframe, and lengths of tendons behind them [m or rad], shape (nq,)."""
    return np.concatenate([q, mjcf_paths.lengths_at(m, q)]) if mjcf_paths.with_slides(m) else q


def _joint_coordinate(m: Any, i: int) -> Coordinate:
    return Coordinate(name=m.joint(i).name, joints=(i,), weights=np.ones(1))


def _tendon_coordinate(m: Any, i: int) -> Coordinate:
    if is_spatial(m, i):
        return mjcf_paths.coordinate_of(m, i)
    path = path_of(m, i)
    return Coordinate(name=m.tendon(i).name, joints=tuple(map(int, m.wrap_objid[path])), weights=m.wrap_prm[path])


def _tendon(m: Any, i: int) -> Tendon:
    return Tendon(
        length=_tendon_coordinate(m, i),
        armature=float(m.tendon_armature[i]) + _of_actuator(m, m.tendon_actuatorid[i], m.actuator_armature),
        damping=float(m.tendon_damping[i]) + _of_actuator(m, m.tendon_actuatorid[i], m.actuator_damping),
        stiffness=float(m.tendon_stiffness[i]),
        rest=m.tendon_lengthspring[i],
        friction=float(m.tendon_frictionloss[i]),
    )


def _point_spring(m: Any, i: int) -> PointSpring:
    first, second = (_site(m, int(k)) for k in m.wrap_objid[path_of(m, i)])
    low, high = m.tendon_lengthspring[i]
    return PointSpring(
        name=m.tendon(i).name,
        body1=first.body,
        point1=first.position,
        body2=second.body,
        point2=second.position,
        stiffness=float(m.tendon_stiffness[i]),
        damping=float(m.tendon_damping[i]),
        rest=(float(low), float(high)),
    )


def _name_of_equality(m: Any, i: int) -> str:
    return m.equality(i).name or f"equality{i}"


def _closure(m: Any, i: int) -> Closure:
    name = _name_of_equality(m, i)
    ids, data = (int(m.eq_obj1id[i]), int(m.eq_obj2id[i])), m.eq_data[i]
    if m.eq_type[i] == TENDON and ids[1] < 0 and is_spatial(m, ids[0]) and ids[0] not in mjcf_paths.with_slides(m):
        return mjcf_paths.closure_of(m, ids[0], name, offset=float(data[0]))
    if m.eq_type[i] in (JOINT, TENDON):
        coordinate = _joint_coordinate if m.eq_type[i] == JOINT else _tendon_coordinate
        leader = None if ids[1] < 0 else coordinate(m, ids[1])
        polynomial = data[:5] * ([1.0] * 5 if leader is not None else [1.0, 0.0, 0.0, 0.0, 0.0])
        return CoordinateClosure(name=name, follower=coordinate(m, ids[0]), leader=leader, coefficients=polynomial)
    by_site = m.eq_objtype[i] == SITE
    body1, body2 = (int(m.site_bodyid[k]) - 1 if by_site else k - 1 for k in ids)
    if m.eq_type[i] == CONNECT:
        point1, point2 = (m.site_pos[k] for k in ids) if by_site else (data[0:3], data[3:6])
        return ConnectClosure(name=name, body1=body1, point1=point1, body2=body2, point2=point2)
    if by_site:
        point1, point2 = (m.site_pos[k] for k in ids)
        rotation = _matrix(m.site_quat[ids[0]]) @ _matrix(m.site_quat[ids[1]]).T
    else:  # MuJoCo keeps the anchor of body 2 first, then that of body 1
        point1, point2, rotation = data[3:6], data[0:3], _matrix(data[6:10])
    return WeldClosure(name=name, body1=body1, point1=point1, body2=body2, point2=point2, rotation=rotation)


def _actuator(m: Any, i: int, name: str) -> Actuator:
    coordinate = _tendon_coordinate if m.actuator_trntype[i] == ON_TENDON else _joint_coordinate
    return Actuator(
        name=name,
        coordinate=coordinate(m, int(m.actuator_trnid[i, 0])),
        gear=float(m.actuator_gear[m.actuator_outadr[i], 0]),
        limits=tuple(_effort_limits(m, i)),
    )


def _effort_limits(m: Any, i: int) -> Iterator[EffortLimit]:
    """Effort limits of an actuator in the model; a control range only of a plain motor (its control is the effort)."""
    if m.actuator_forcelimited[i]:
        yield _effort_limit("forcerange", m.actuator_forcerange[i])
    is_motor = (m.actuator_gaintype[i], m.actuator_biastype[i], m.actuator_dyntype[i]) == MOTOR
    control = m.actuator_ctrladr[i]
    if m.actuator_ctrllimited[control] and is_motor:
        yield _effort_limit("ctrlrange", m.actuator_ctrlrange[control] * m.actuator_gainprm[i, 0])
    moved, gear = int(m.actuator_trnid[i, 0]), m.actuator_gear[m.actuator_outadr[i], 0]
    kind = "tendon" if m.actuator_trntype[i] == ON_TENDON else "jnt"
    if getattr(m, f"{kind}_actfrclimited")[moved]:
        yield _effort_limit("actuatorfrcrange", getattr(m, f"{kind}_actfrcrange")[moved] / gear)


def _effort_limit(name: str, ends: Array) -> EffortLimit:
    return EffortLimit(name, float(min(ends)), float(max(ends)))


def _site(m: Any, i: int) -> Site:
    return Site(
        name=m.site(i).name or f"site{i}",
        body=int(m.site_bodyid[i]) - 1 if m.site_bodyid[i] else WORLD,
        position=m.site_pos[i],
    )


def _want_moderate(mechanism: Mechanism) -> None:
    """Raise for numbers that are not finite or whose products overflow: MuJoCo warns of NaN alone."""
    parts = ("bodies", "joints", "closures", "actuators", "sites", "tendons", "point_springs")
    numbers: list[tuple[str, Any]] = [("gravity", mechanism.gravity)]
    numbers += [(f"keyframe '{name}'", q) for name, q in mechanism.keyframes.items()]
    for part in itertools.chain.from_iterable(getattr(mechanism, name) for name in parts):
        what = f"{type(part).__name__.lower()} '{part.name}'"
        numbers += [(f"{what}, {field.name.replace('_', ' ')}", getattr(part, field.name)) for field in fields(part)]
    for what, value in numbers:
        if isinstance(value, float | np.ndarray) and not (largest := float(np.abs(value).max(initial=0.0))) <= LARGEST:
            bound = f"below {LARGEST:g}" if np.isfinite(largest) else "finite"
            raise MechanismError(f"{what}: must be {bound}, got {largest:g}")


def _refuse_unsupported(m: Any, model: ModelFile) -> None:
    """Raise for whatever changes the dynamics and is not in `Mechanism`, all of it at once."""
    what = list(dict.fromkeys(_unsupported(m)))
    if not what:
        return
    names = names_of_actuators(m)
    acting = [name for i, name in enumerate(names) if not any(_unsupported_actuator(m, i))]
    remedy = ""
    if acting and not model.actuated and not any(_unsupported_elements(m)):
        remedy = f". If these have no effort: --actuated {','.join(acting[:NAMED])}"
    raise MechanismError(f"not supported: {listed(what, NAMED, '; ')}{remedy}")


def _unsupported(m: Any) -> Iterator[str]:
    yield from _unsupported_actuators(m)
    yield from _unsupported_elements(m)


def _unsupported_elements(m: Any) -> Iterator[str]:
    """Unsupported elements that are no actuators."""
    for i in range(m.neq):
        if m.eq_type[i] not in (CONNECT, WELD, JOINT, TENDON):
            yield f"equality '{m.equality(i).name}' of type {mujoco.mjtEq(m.eq_type[i]).name}"
    yield from _unsupported_tendons(m)
    yield from _unsupported_joints(m)
    if m.nflex:
        yield "flexible bodies"
    if np.any(m.body_plugin >= 0) or np.any(m.actuator_plugin >= 0):
        yield "plugins of bodies or actuators"
    if m.opt.density or m.opt.viscosity:
        yield "drag of a medium (option density, viscosity)"
    for bit in ("mjDSBL_SPRING", "mjDSBL_DAMPER"):
        if m.opt.disableflags & getattr(mujoco.mjtDisableBit, bit):
            yield f"option flag {bit.removeprefix('mjDSBL_').lower()}='disable'"


def _unsupported_tendons(m: Any) -> Iterator[str]:
    for i in range(m.ntendon):
        yield from _unsupported_spatial(m, i)
    for i in range(m.ntendon):
        if np.any(m.tendon_stiffnesspoly[i]) or np.any(m.tendon_dampingpoly[i]):
            yield f"nonlinear spring or damper of tendon '{m.tendon(i).name}'"
        elif m.tendon_plasticadr[i] >= 0:
            yield f"plastic spring of tendon '{m.tendon(i).name}'"


def _unsupported_spatial(m: Any, i: int) -> Iterator[str]:
    """Parts of a spatial tendon with springs or equalities that are not straight; see `_unsupported_actuator`."""
    if has_spring(m, i) or has_equality(m, i):
        yield from _curved(m, i)


def _curved(m: Any, i: int) -> Iterator[str]:
    """A tendon that wraps around geoms, with the remedy."""
    geoms = mjcf_paths.geoms_of(m, i) if is_spatial(m, i) else []
    if geoms:
        names = listed([f"'{name}'" for name in dict.fromkeys(geoms)], NAMED)
        yield (
            f"spatial tendon '{m.tendon(i).name}', which wraps around geom {names} (only straight parts are supported: "
            "lead it over a site on the body of the geom instead)"
        )


def _is_supported_closure(m: Any, i: int) -> bool:
    ends = [int(k) for k in (m.eq_obj1id[i], m.eq_obj2id[i]) if k >= 0]
    return m.eq_type[i] in (CONNECT, WELD, JOINT) or (
        m.eq_type[i] == TENDON and not any(any(_curved(m, k)) for k in ends)
    )


def _unsupported_joints(m: Any) -> Iterator[str]:
    for i in range(m.njnt):
        dofs = slice(m.jnt_dofadr[i], m.jnt_dofadr[i] + DOFS[KINDS[int(m.jnt_type[i])]])
        if np.any(m.jnt_stiffnesspoly[i]) or np.any(m.dof_dampingpoly[dofs]):
            yield f"nonlinear spring or damper of joint '{m.joint(i).name}'"
        if m.jnt_plasticadr[i] >= 0:
            yield f"plastic spring of joint '{m.joint(i).name}'"


def _unsupported_actuators(m: Any) -> Iterator[str]:
    for i in range(len(m.actuator_trntype)):
        yield from _unsupported_actuator(m, i)


def _unsupported_actuator(m: Any, i: int) -> Iterator[str]:
    on_joint = m.actuator_trntype[i] in ON_JOINT and _is_scalar(m, int(m.actuator_trnid[i, 0]))
    name = m.actuator(i).name
    if not on_joint and m.actuator_trntype[i] != ON_TENDON:
        yield f"actuator '{name}' (only actuators on hinges, slides and tendons are supported)"
    elif m.actuator_trntype[i] == ON_TENDON and (curved := list(_curved(m, int(m.actuator_trnid[i, 0])))):
        yield f"actuator '{name}' on {curved[0]}"
    elif not m.actuator_gear[m.actuator_outadr[i], 0]:
        yield f"actuator '{name}' with gear 0"
    elif np.any(m.actuator_dampingpoly[i]):
        yield f"nonlinear damper of actuator '{name}'"


def _is_scalar(m: Any, joint: int) -> bool:
    return KINDS[int(m.jnt_type[joint])] in ("hinge", "slide")


def _without_effort(model: ModelFile, m: Any) -> Iterator[str]:
    """Actuators of the file that do not act, because the user has named those that do."""
    joints = {m.joint(i).name for i in range(m.njnt)} | {m.tendon(i).name for i in range(m.ntendon)}
    if not {*model.actuated} <= joints:
        names = [actuator.name for actuator in load_spec(replace(model, actuated=())).actuators]
        idle = [name for name in names if name not in model.actuated]
        if idle:
            yield f"actuators without effort, as --actuated does not name them: {listed(idle, NAMED)}"


def _idle_tendons(m: Any) -> Iterator[str]:
    idle = [
        m.tendon(i).name
        for i in range(m.ntendon)
        if is_spatial(m, i) and mjcf_paths.is_idle(m, i) and not m.tendon_limited[i]
    ]
    if idle:
        yield f"spatial tendons without spring, damper, armature or actuator: {', '.join(idle)}"


def _pushing_tendons(m: Any) -> Iterator[str]:
    names = [m.tendon(i).name for i in range(m.ntendon) if is_spatial(m, i) and has_equality(m, i)]
    if names:
        held = listed(names, NAMED)
        yield f"slack of tendons held by an equality, which also pushes (check the tension of cables): {held}"
