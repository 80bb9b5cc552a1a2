"""Laws of loads that engines share: each engine declares those that it takes, and only those reach its terms."""

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.engines import loads
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism, Wrench
from loopcheck.validation.check.independence import LAWS
from tests.conftest import want_engine

BEHIND = {
    "wrenches": {"compensations"},
    "pulls": {"pull"},
    "tendon_forces": {"pull"},
    "turns": {"ball_spring"},
    "ball_spring": {"ball_spring"},
    "joint_springs": {"joint_spring", "ball_spring"},
}
"""Laws behind the functions that engines import."""
REFUSED = {("genesis", "compensations")}
"""Laws of loads that an engine refuses."""
READ = ("dart", "drake", "mujoco", "pinocchio", "pybullet", "simbody")
"""Engines of the development environment with terms that take little time to read."""
MODEL = """
<mujoco><compiler angle="radian"/><option gravity="0.3 -0.5 -9.81"/>
  <worldbody>
    <site name="base" pos="0.1 0.2 0.9"/>
    <body name="arm" pos="0 0 0.1" {body}>
      <joint name="arm" type="{kind}" {joint}/>
      <inertial pos="0.1 0.02 0.03" mass="0.7" diaginertia="3e-3 4e-3 5e-3"/>
      <site name="tip" pos="0.4 0.1 0"/>
    </body>
    <body name="link" pos="1 0 0">
      <joint name="link" axis="0 1 0"/>
      <inertial pos="0.2 0 0" mass="0.3" diaginertia="1e-3 1e-3 1e-3"/>
    </body>
  </worldbody>
  {tendon}
  <actuator><motor name="link" joint="link"/></actuator>
</mujoco>"""
PATH = (
    '<tendon><spatial stiffness="60" damping="2" springlength="0.3"><site site="base"/><site site="tip"/></spatial>'
    "</tendon>"
)
PLAIN = {"body": "", "kind": "hinge", "joint": "", "tendon": ""}
MODELS = {
    "compensations": {"body": 'gravcomp="0.4"'},
    "pull": {"tendon": PATH},
    "ball_spring": {"kind": "ball", "joint": 'stiffness="3"'},
    "joint_spring": {"joint": 'stiffness="3" springref="0.2"'},
}
"""A load of each law."""


@contextmanager
def wrong(law: str) -> Iterator[None]:
    """A law that gives twice the load, wherever an engine uses it."""
    right: Callable[..., Any] = getattr(loads, law)

    def doubled(*arguments: Any) -> Any:
        value = right(*arguments)
        return [twice(load) for load in value] if law == "compensations" else 2 * value

    with ExitStack() as stack:
        for name, module in tuple(sys.modules.items()):
            if name.startswith("loopcheck.engines.") and getattr(module, law, None) is right:
                stack.enter_context(patch.object(module, law, doubled))
        yield


def twice(load: Wrench) -> Wrench:
    return Wrench(body=load.body, point=load.point, moment=2 * load.moment, force=2 * load.force)


def test_every_law_has_words_and_a_load(tmp_path: Path) -> None:
    assert {*LAWS} == {*MODELS} == set().union(*BEHIND.values())
    for law in LAWS:
        assert loads.laws(_mechanism(tmp_path, law)) == (law,)


@pytest.mark.parametrize("engine", engines.engine_names())
def test_the_laws_of_an_engine_are_declared(engine: str) -> None:
    folder = Path(engines.__path__[0], engine)
    nodes = [node for path in folder.rglob("*.py") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == loads.__name__]
    taken = [BEHIND.get(alias.name, set()) for node in imports for alias in node.names]
    refused = {law for name, law in REFUSED if name == engine}
    assert {*engines.engine(engine).laws} == set().union(*taken) - refused


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("engine", READ)
def test_a_wrong_law_reaches_the_engines_that_declare_it(
    engine: str, law: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    want_engine(engine, request.config)
    mechanism = _mechanism(tmp_path, law)
    try:
        right = _passive(engine, mechanism)
    except NotRepresentableError:
        assert law not in engines.engine(engine).laws
        return
    with wrong(law):
        other = _passive(engine, mechanism)
    assert np.abs(right).max() > 0.01
    if law in engines.engine(engine).laws:
        np.testing.assert_allclose(other, 2 * right, rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_array_equal(other, right)


def _mechanism(folder: Path, law: str) -> Mechanism:
    path = folder / f"{law}.xml"
    path.write_text(MODEL.format(**PLAIN | MODELS[law]), encoding="utf-8")
    return read_mechanism(ModelFile(path=path))


def _passive(engine: str, mechanism: Mechanism) -> Array:
    q, qd = np.array(mechanism.rest_position), np.zeros(mechanism.nv)
    q[:4] = q[:4] if mechanism.nq == mechanism.nv else np.array([0.9, 0.1, -0.3, 0.2]) / np.sqrt(0.95)
    q[-1], qd[-1] = 0.3, 0.4
    if mechanism.nq == mechanism.nv:
        q[0], qd[0] = 0.5, 0.7
    return engines.matrices(engine, mechanism, q[None], qd[None]).passive[0]
