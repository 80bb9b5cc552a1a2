"""MuJoCo's pictures show the whole robot as it moves; without a renderer a line reports it."""

import sys
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.mujoco import renderer
from loopcheck.engines.mujoco.renderer import BACKGROUND, HEIGHT, WIDTH, render
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.errors import EngineError
from loopcheck.robots.mechanism import WORLD, Mechanism
from loopcheck.robots.robot import load, make_case
from loopcheck.validation.report.geometry import paths
from tests.conftest import MODELS, CaseMaker

NOTHING = np.zeros((0, 3))


@pytest.fixture(scope="module")
def graphics() -> None:
    """Requirement of OpenGL; a test that finds it must pass."""
    try:
        renderer._graphics()(8, 8).free()
    except Exception as error:
        pytest.skip(f"no renderer on this machine: {error}")


@pytest.fixture(scope="module")
def bricard() -> tuple[Mechanism, Array]:
    """Bricard's mechanism with shapes on its rods, in three poses of its motion."""
    case = make_case(load("bricard"), variant="default", mode="home", configuration="horizontal")
    return case.mechanism, prescribe(case).q[:21:10]


def drawn(mechanism: Mechanism, q: Array, trace: str | None = None) -> AnyArray:
    bodies = ["world", *(body.name for body in mechanism.bodies)]
    of_names = dict(paths(mechanism, q, trace))
    path = of_names.pop("trace", NOTHING[None])[0]
    return render(mechanism, q, {bodies.index(name) + WORLD: points for name, points in of_names.items()}, path)


def shapes(pictures: AnyArray) -> AnyArray:
    """Mask of the pixels beside the background."""
    return np.abs(pictures - 255 * np.array(BACKGROUND)).max(axis=-1) > 10


@pytest.mark.usefixtures("graphics")
def test_pictures_show_the_whole_motion(bricard: tuple[Mechanism, Array]) -> None:
    mechanism, q = bricard
    pictures = drawn(mechanism, q)
    assert pictures.shape == (len(q), HEIGHT, WIDTH, 3)
    something = shapes(pictures)
    assert something[:, HEIGHT // 4 : -HEIGHT // 4, WIDTH // 4 : -WIDTH // 4].any(axis=(1, 2)).all()
    ever = np.asarray(something.any(axis=0))
    assert not np.concatenate([ever[0], ever[-1], ever[:, 0], ever[:, -1]]).any(), "cut off at the border"
    assert max(ever.any(axis=1).sum() / HEIGHT, ever.any(axis=0).sum() / WIDTH) > 0.8, "small in the picture"
    moved = np.diff(pictures.astype(int), axis=0).any(axis=-1).sum(axis=(1, 2))
    assert moved.min() > 500


@pytest.mark.usefixtures("graphics")
def test_a_pose_looks_the_same_whenever_it_comes(bricard: tuple[Mechanism, Array]) -> None:
    mechanism, q = bricard
    there_and_back = drawn(mechanism, np.concatenate([q, q[::-1]]))
    np.testing.assert_array_equal(there_and_back, there_and_back[::-1])


@pytest.mark.usefixtures("graphics")
def test_the_path_of_the_traced_point_is_drawn(bricard: tuple[Mechanism, Array]) -> None:
    mechanism, q = bricard
    orange = np.array([213, 94, 0]) / np.linalg.norm([213, 94, 0])
    with_path, without = drawn(mechanism, q, "P4"), drawn(mechanism, q)
    colors = with_path[(with_path != without).any(axis=-1)].astype(float)
    assert len(colors) > 500
    alike = (colors @ orange) / np.linalg.norm(colors, axis=1)
    assert np.median(alike) > 0.97


@pytest.mark.usefixtures("graphics")
def test_a_robot_without_shapes_is_drawn_as_rods(model_case: CaseMaker) -> None:
    case = model_case(MODELS / "spinning_rod.xml", amplitude=0.1)
    something = shapes(drawn(case.mechanism, prescribe(case).q[::25]))
    assert something.sum(axis=(1, 2)).min() > 1000
    assert (something[0] != something[1]).any()


@pytest.mark.usefixtures("graphics")
def test_floors_skies_and_shapes_for_collisions_are_not_in_the_way(tmp_path: Path, model_case: CaseMaker) -> None:
    text = (MODELS / "spinning_rod.xml").read_text(encoding="utf-8")
    extra = '<geom type="plane" size="0 0 1" pos="0 0 0.05"/><geom type="box" size="9 9 9" group="3"/>'
    black = 'builtin="flat" rgb1="0 0 0" rgb2="0 0 0" width="8" height="48"'
    sky = f'<asset><texture type="skybox" {black}/><texture name="background" type="2d" {black}/></asset>'
    text = text.replace("<worldbody>", f"{sky}<worldbody>{extra}")
    (tmp_path / "floor.xml").write_text(text, encoding="utf-8")
    bare, floor = (model_case(path, amplitude=0.1) for path in (MODELS / "spinning_rod.xml", tmp_path / "floor.xml"))
    q = prescribe(bare).q[:2]
    np.testing.assert_array_equal(shapes(drawn(bare.mechanism, q)), shapes(drawn(floor.mechanism, q)))


def test_it_says_why_it_cannot_draw(bricard: tuple[Mechanism, Array], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "disable")
    with pytest.raises(EngineError, match="cannot draw here: MUJOCO_GL=disable forbids it"):
        drawn(*bricard)
    monkeypatch.setenv("MUJOCO_GL", "")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(renderer, "find_library", lambda name: None)
    with pytest.raises(EngineError, match="cannot draw here: neither EGL nor OSMesa is installed"):
        drawn(*bricard)


def test_what_a_driver_raises_is_one_line(bricard: tuple[Mechanism, Array], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(width: int, height: int) -> None:
        raise OSError("no display,\nsays the driver")

    monkeypatch.setattr(renderer, "_graphics", lambda: broken)
    with pytest.raises(EngineError, match="cannot draw here: no display, says the driver"):
        drawn(*bricard)
