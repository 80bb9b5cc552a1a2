"""Edits of the model inside an engine, behind the back of its adapter: its audit reads them from the engine's state."""

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np

from loopcheck import engines

Edit: TypeAlias = Callable[[], AbstractContextManager[Any]]


def _around(engine: str, place: str, changed: Callable[..., Any]) -> Edit:
    """A function of an engine's adapter returns something else, from its own value and its arguments.

    Args:
        place: Module and function, as `audit.build`.
    """

    @contextmanager
    def edit() -> Iterator[None]:
        module_name, function = place.split(".")
        module = importlib.import_module(f"loopcheck.engines.{engine}.{module_name}")
        right = getattr(module, function)
        with patch.object(module, function, lambda *arguments: changed(right(*arguments), *arguments)):
            yield

    return edit


def _mujoco(array: str, kind: str, name: str, change: Callable[[Any], Any], entry: tuple[Any, ...] = ()) -> Edit:
    """A number of the compiled model of the audit; `kind` and `name` of the element, or an index of the array."""

    def changed(model: Any, *_: Any) -> Any:
        place: dict[str, Callable[[], tuple[int, ...]]] = {
            "": lambda: (),
            "body": lambda: (model.body(name).id,),
            "joint": lambda: (model.joint(name).id,),
            "dof": lambda: (model.joint(name).dofadr[0],),
            "equality": lambda: (model.equality(name).id,),
            "site": lambda: (model.eq_obj1id[model.equality(name).id],),
        }
        values = getattr(model.opt if kind == "" and array == "gravity" else model, array)
        where = (*place[kind](), *entry)
        values[where] = change(values[where])
        return model

    return _around("mujoco", "audit.build", changed)


def _scaled(value: Any) -> Any:
    return value * (1 + 1e-6)


def _moved(value: Any) -> Any:
    return value + 1e-6


def _pybullet(call: Callable[[Any, Any], Any]) -> Edit:
    """A call of PyBullet after the robot was loaded."""

    @contextmanager
    def edit() -> Iterator[None]:
        pybullet = importlib.import_module("pybullet")
        audit = importlib.import_module("loopcheck.engines.pybullet.audit")
        right = audit.opened

        @contextmanager
        def opened(mechanism: Any) -> Iterator[Any]:
            with right(mechanism) as world:
                call(pybullet, world)
                yield world

        with patch.object(audit, "opened", opened):
            yield

    return edit


def _urdf(written: str, instead: str) -> Edit:
    return _around("pybullet", "_world.urdf", lambda text, *_: text.replace(written, instead))


def _without_first(loops: Any, world: Any) -> tuple[int, ...]:
    pybullet = importlib.import_module("pybullet")
    first, *others = loops
    pybullet.removeConstraint(first, physicsClientId=world.client)
    return tuple(others)


def _other_ratio(loops: Any, world: Any) -> Any:
    pybullet = importlib.import_module("pybullet")
    pybullet.changeConstraint(loops[-1], gearRatio=-2, physicsClientId=world.client)
    return loops


def _pinocchio(edit: Callable[[Any], None]) -> Edit:
    def changed(tree: Any, *_: Any) -> Any:
        edit(tree.model)
        return tree

    return _around("pinocchio", "_equations.build", changed)


def _heavier(model: Any) -> None:
    inertia = model.inertias[5]
    inertia.mass = _scaled(inertia.mass)
    model.inertias[5] = inertia


def _with_rotor(model: Any) -> None:
    model.armature = model.armature + np.eye(model.nv)[1] * 1e-3


def _downwards(model: Any) -> None:
    model.gravity.linear = np.array([0, 0, -9.81])


def _rubbing(model: Any) -> None:
    model.upperDryFrictionLimit = np.full(model.nv, 0.1)


def _shifted(model: Any) -> None:
    place = model.jointPlacements[4]
    place.translation = place.translation + np.array([1e-6, 0, 0])
    model.jointPlacements[4] = place


@contextmanager
def closure_bias() -> Iterator[None]:
    """J̇q̇ of any engine is off by a millionth: its efforts then have no meaning."""
    right = engines.matrices

    def wrong(*arguments: Any) -> Any:
        terms = right(*arguments)
        return replace(terms, closure_bias=(1 + 1e-6) * terms.closure_bias)

    with patch.object(engines, "matrices", wrong):
        yield


DOWN = (0.0, 0.0, -9.81)
EDITS: Mapping[str, Mapping[str, Edit]] = {
    "mujoco": {
        "mass": _mujoco("body_mass", "body", "link2", _scaled),
        "axis": _mujoco("jnt_axis", "joint", "q6", np.negative),
        "damping": _mujoco("dof_damping", "dof", "q4", lambda _: 1e-3),
        "armature": _mujoco("dof_armature", "dof", "q4", lambda _: 1e-3),
        "stiffness": _mujoco("jnt_stiffness", "joint", "q4", lambda _: 1e-3),
        "gravity": _mujoco("gravity", "", "", lambda _: DOWN, (slice(None),)),
        "mass centre": _mujoco("body_ipos", "body", "platform", _moved, (2,)),
        "principal moments": _mujoco("body_inertia", "body", "platform", _scaled, (2,)),
        "constraint rows": _mujoco("eq_active0", "equality", "q9", lambda _: 0),
        "opening of the loops": _mujoco("site_pos", "site", "q9", _moved, (0,)),
        "gear": _mujoco("actuator_gear", "", "", lambda _: 2, (1, 0)),
    },
    "pybullet": {
        "mass": _pybullet(
            lambda p, w: p.changeDynamics(w.tree, w.links[4], mass=_scaled(0.5201), physicsClientId=w.client)
        ),
        "principal moments": _pybullet(
            lambda p, w: p.changeDynamics(
                w.tree, w.links[4], localInertiaDiagonal=[6.06e-4, 6.06e-4, 6.07e-4], physicsClientId=w.client
            )
        ),
        "damping": _pybullet(
            lambda p, w: p.changeDynamics(w.tree, w.joints[1], jointDamping=1e-6, physicsClientId=w.client)
        ),
        "gravity": _pybullet(lambda p, w: p.setGravity(*DOWN, physicsClientId=w.client)),
        "axis": _urdf('<axis xyz="0.0 0.0 1.0"/>', '<axis xyz="0.0 0.0 -1.0"/>'),
        "damping of the URDF": _urdf('damping="0.0"', 'damping="0.04"'),
        "damping of the air": lambda: patch("loopcheck.engines.pybullet.audit.prepare"),
        "dry friction": _urdf('friction="0"', 'friction="0.1"'),
        "constraint rows": _around("pybullet", "audit.close_loops", _without_first),
        "armature": _around("pybullet", "audit.close_loops", _other_ratio),
    },
    "pinocchio": {
        "mass": _pinocchio(_heavier),
        "armature": _pinocchio(_with_rotor),
        "gravity": _pinocchio(_downwards),
        "dry friction": _pinocchio(_rubbing),
        "anchor": _pinocchio(_shifted),
        "constraint rows": _around("pinocchio", "_equations.loop_constraints", lambda loops, _: loops[1:]),
    },
}
"""By engine and by the wrong quantity."""
