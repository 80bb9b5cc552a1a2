"""Pictures of a mechanism in given poses, drawn off-screen by MuJoCo's renderer."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes.util import find_library
from itertools import combinations, pairwise, product
from typing import Any, TypeAlias

import mujoco
import numpy as np

from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.errors import EngineError, HarnessError
from loopcheck.robots.mechanism import WORLD, Mechanism
from loopcheck.robots.mjcf import compile_model
from loopcheck.robots.model_file import captured_warnings

WIDTH, HEIGHT = 480, 360
"""Size of a picture [pixels]."""
BACKGROUND = (0.93, 0.945, 0.96)
"""Light, so that it suits light and dark pages, but not white, as many robots are."""
PATH_COLOR = (0.835, 0.369, 0.0, 1.0)
FIXED_COLOR = (0.11, 0.125, 0.14, 1.0)
BODY_COLORS = ((0.0, 0.447, 0.698, 1.0), (0.902, 0.624, 0.0, 1.0), (0.0, 0.62, 0.451, 1.0), (0.337, 0.706, 0.914, 1.0))
THICK, THIN = 0.012, 0.004
"""Radius of a drawn body, and of a path, over the size of the robot [-]."""
MARGIN = 1.08
VIEW = (120.0, -25.0)
"""Azimuth and elevation of the camera for files without settings [deg]."""

_UNSET_VIEW = (90.0, -45.0)
_OFF = ("disable", "disabled", "off", "false", "0")
_PLANE, _SKYBOX = int(mujoco.mjtGeom.mjGEOM_PLANE), mujoco.mjtTexture.mjTEXTURE_SKYBOX
_CAPSULE, _SPHERE = int(mujoco.mjtGeom.mjGEOM_CAPSULE), int(mujoco.mjtGeom.mjGEOM_SPHERE)
_OFFSCREEN = mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value
_PLAIN = (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION, mujoco.mjtRndFlag.mjRND_HAZE)
_SHOWN_GROUPS = 3
"""MuJoCo shows the groups below this number; higher groups hold collision shapes."""

Draw: TypeAlias = Callable[[Any], AnyArray]
"""Takes an `MjvScene`; returns its picture."""


def render(mechanism: Mechanism, q: Array, points: Mapping[int, Array], path: Array) -> AnyArray:
    """Draw a mechanism in each of some poses, all seen by the same fixed camera.

    Bodies look as in the MJCF; a body without a shape is drawn as rods between its points.

    Args:
        q: Joint positions [m or rad], shape (frames, nq).
        points: Points of each body by its index, or `WORLD`, world axes [m], each of shape (points, frames, 3).
        path: Path of the traced point, a pose each, world axes [m], shape (frames, 3), or (0, 3) without a traced
            point.

    Returns:
        Red, green and blue, 0 to 255, shape (frames, HEIGHT, WIDTH, 3).

    Raises:
        EngineError: If there is no renderer, or it fails.
    """
    try:
        with captured_warnings():
            model = _model(mechanism)
            data = mujoco.MjData(model)
            camera = _camera(model, _extent(model, data, q, [*points.values(), path]))
            scene = mujoco.MjvScene(model, maxgeom=10000)
            for flag in _PLAIN:
                scene.flags[flag] = False
            bare = _without_shape(model, points)
            with _renderer(model) as draw:
                pictures = []
                for frame, pose in enumerate(q):
                    _move(model, data, pose)
                    _update(scene, model, data, camera)
                    _add_rods(
                        scene,
                        {body: points_of_body[:, frame] for body, points_of_body in bare.items()},
                        THICK * model.stat.extent,
                    )
                    _add_path(scene, path, frame, THIN * model.stat.extent)
                    pictures.append(draw(scene))
    except HarnessError:
        raise
    except Exception as error:  # whatever libraries of graphics raise
        raise EngineError(f"MuJoCo cannot draw here: {' '.join(str(error).split())}") from error
    return _not_blank(np.stack(pictures))


def _model(mechanism: Mechanism) -> Any:
    """The model on a plain background, in plain light, without floors."""
    model = compile_model(mechanism.model, _set_background)
    model.geom_group[model.geom_type == _PLANE] = _SHOWN_GROUPS
    model.light_active[:] = False
    light = model.vis.headlight
    light.active, light.ambient[:], light.diffuse[:], light.specular[:] = 1, 0.45, 0.55, 0.0
    view = model.vis.global_
    view.offwidth, view.offheight, view.orthographic, view.fovy = WIDTH, HEIGHT, 0, 45
    quality = model.vis.quality
    quality.offsamples, quality.numslices, quality.numstacks = 4, 16, 8  # smooth enough at this size
    return model


def _set_background(spec: Any) -> None:
    for texture in list(spec.textures):
        if texture.type == _SKYBOX:
            spec.delete(texture)
    sky = spec.add_texture(type=_SKYBOX, width=8, height=48)
    sky.builtin, sky.rgb1, sky.rgb2 = mujoco.mjtBuiltin.mjBUILTIN_FLAT, BACKGROUND, BACKGROUND


def _move(model: Any, data: Any, q: Array) -> None:
    data.qpos[:] = q
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_camlight(model, data)
    mujoco.mj_tendon(model, data)


def _seen(model: Any) -> AnyArray:
    """Indices of the geoms that are seen."""
    return np.flatnonzero((model.geom_group < _SHOWN_GROUPS) & (model.geom_rgba[:, 3] > 0))


def _extent(model: Any, data: Any, q: Array, points: Iterable[Array]) -> Array:
    """Points that enclose the robot in all poses [m], shape (n, 3); immobile parts count if they are no larger."""
    clouds = [np.reshape(of_body, (-1, 3)) for of_body in points]
    size = np.linalg.norm(np.ptp(np.concatenate(clouds), axis=0))
    visible = _seen(model)
    moves = model.body_weldid[model.geom_bodyid[visible]] != 0  # the world is 0
    visible = visible[moves | (2 * model.geom_rbound[visible] < size)]
    signs = np.array(list(product((-1, 1), repeat=3)))
    boxes = model.geom_aabb[visible, None, :3] + signs * model.geom_aabb[visible, None, 3:]
    for pose in q:
        _move(model, data, pose)
        turned = np.einsum("gij,gcj->gci", data.geom_xmat[visible].reshape(-1, 3, 3), boxes)
        clouds.append((data.geom_xpos[visible, None] + turned).reshape(-1, 3))
    return np.concatenate(clouds)


def _camera(model: Any, points: Array) -> Any:
    """A camera that sees all points; its direction is that of the file, if given, its distance is not."""
    camera = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, camera)
    if (camera.azimuth, camera.elevation) == _UNSET_VIEW:
        camera.azimuth, camera.elevation = VIEW
    axes = _axes_of(camera)
    in_view = points @ axes.T
    center = (in_view.min(axis=0) + in_view.max(axis=0)) / 2
    aside, depth = np.abs(in_view - center)[:, :2] / (WIDTH / HEIGHT, 1), (in_view - center)[:, 2]
    slope = np.tan(np.radians(model.vis.global_.fovy) / 2) / MARGIN
    camera.lookat[:] = center @ axes
    camera.distance = (aside.max(axis=1) / slope - depth).max()
    model.stat.center[:] = camera.lookat
    model.stat.extent = np.ptp(in_view, axis=0).max()  # what is much farther or nearer is cut off
    return camera


def _axes_of(camera: Any) -> Array:
    """Axes of a camera to the right, up and ahead in world axes [-], shape (3, 3)."""
    azimuth, elevation = np.radians((camera.azimuth, camera.elevation))
    ahead = np.array(
        [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)],
    )
    right = np.array([np.sin(azimuth), -np.cos(azimuth), 0.0])
    return np.stack([right, np.cross(right, ahead), ahead])


def _update(scene: Any, model: Any, data: Any, camera: Any) -> None:
    """Put the shapes of a pose into the scene, lit from above on the left."""
    options = mujoco.MjvOption()
    options.sitegroup[:] = False
    options.flags[mujoco.mjtVisFlag.mjVIS_RANGEFINDER] = False
    mujoco.mjv_updateScene(model, data, options, None, camera, mujoco.mjtCatBit.mjCAT_ALL.value, scene)
    scene.lights[0].dir[:] = np.array([0.45, -0.5, 0.74]) @ _axes_of(camera)


def _without_shape(model: Any, points: Mapping[int, Array]) -> Mapping[int, Array]:
    """The points of bodies without a shape in the file, possibly the world's too."""
    shaped = set(model.body_weldid[model.geom_bodyid[_seen(model)]])
    return {
        body: points_of_body for body, points_of_body in points.items() if model.body_weldid[body + 1] not in shaped
    }


def _add_rods(scene: Any, points: Mapping[int, Array], radius: float) -> None:
    for body, of_body in points.items():
        color = FIXED_COLOR if body == WORLD else BODY_COLORS[body % len(BODY_COLORS)]
        for point in of_body:
            _add_sphere(scene, point, (2.2 if body == WORLD else 1.5) * radius, color)
        for ends in combinations(of_body, 2) if body != WORLD else ():
            _add_rod(scene, ends, radius, color)


def _add_path(scene: Any, path: Array, frame: int, radius: float) -> None:
    for ends in pairwise(path):
        _add_rod(scene, ends, radius, PATH_COLOR)
    for point in path[frame : frame + 1]:
        _add_sphere(scene, point, 3 * radius, PATH_COLOR)


def _add_rod(scene: Any, ends: Sequence[Array], radius: float, color: Sequence[float]) -> None:
    if scene.ngeom < scene.maxgeom:
        rod = _new_geom(scene, _CAPSULE, color)
        mujoco.mjv_connector(rod, _CAPSULE, radius, *ends)


def _add_sphere(scene: Any, point: Array, radius: float, color: Sequence[float]) -> None:
    if scene.ngeom < scene.maxgeom:
        _new_geom(scene, _SPHERE, color, size=radius, position=point)


def _new_geom(
    scene: Any, kind: int, color: Sequence[float], *, size: float = 0.0, position: Array | None = None
) -> Any:
    geom = scene.geoms[scene.ngeom]
    scene.ngeom += 1
    place = np.zeros(3) if position is None else position
    mujoco.mjv_initGeom(geom, kind, np.full(3, size), place, np.eye(3).ravel(), np.array(color, np.float32))
    return geom


@contextmanager
def _renderer(model: Any) -> Iterator[Draw]:
    """A renderer of a model's scenes."""
    graphics = _graphics()(WIDTH, HEIGHT)
    try:
        graphics.make_current()
        context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        try:
            mujoco.mjr_setBuffer(_OFFSCREEN, context)
            if context.currentBuffer != _OFFSCREEN:
                raise EngineError("MuJoCo cannot draw here: there is no off-screen buffer")
            whole = mujoco.MjrRect(0, 0, WIDTH, HEIGHT)

            def draw(scene: Any) -> AnyArray:
                picture = np.empty((HEIGHT, WIDTH, 3), np.uint8)
                mujoco.mjr_render(whole, scene, context)
                mujoco.mjr_readPixels(picture, None, whole, context)
                return picture[::-1]  # OpenGL counts rows from below

            yield draw
        finally:
            context.free()
    finally:
        graphics.free()


def _graphics() -> Any:
    """MuJoCo's class of graphics contexts without a screen.

    On Linux MuJoCo takes the class for screens unless `MUJOCO_GL` names another before it is imported; here it may have
    been imported before.

    Raises:
        EngineError: If there is no such class.
    """
    backend = os.environ.get("MUJOCO_GL", "").lower().strip()
    if backend in _OFF:
        raise EngineError(f"MuJoCo cannot draw here: MUJOCO_GL={backend} forbids it")
    if not sys.platform.startswith("linux") or backend == "glfw":
        return mujoco.GLContext
    if backend != "osmesa" and find_library("EGL"):
        from mujoco.egl import GLContext
    elif find_library("OSMesa"):
        from mujoco.osmesa import GLContext
    else:
        raise EngineError("MuJoCo cannot draw here: neither EGL nor OSMesa is installed")
    return GLContext


def _not_blank(pictures: AnyArray) -> AnyArray:
    if (np.ptp(pictures, axis=(1, 2)) == 0).all():
        raise EngineError("MuJoCo cannot draw here: the pictures are blank")
    return pictures
