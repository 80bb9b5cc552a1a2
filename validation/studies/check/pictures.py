"""Pictures of a mechanism in some poses, for its movie. Runs in a worker process."""

import base64
import io

import numpy as np
from PIL import Image

from loopcheck.engines.mujoco.renderer import render
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.mechanism import WORLD, Mechanism
from loopcheck.validation.report.geometry import TRACE, paths

QUALITY = 40
"""Of the WebP pictures, 0 to 100; a movie of 60 has about 300 kB."""


def draw(mechanism: Mechanism, trace: str | None, q: Array) -> list[str] | str:
    """Draw a mechanism in some poses, as WebP in base64, or return the reason for a failure.

    Args:
        mechanism: Robot.
        trace: Site with a drawn path, or None.
        q: Joint positions [m or rad], shape (frames, nq).
    """
    of_names = dict(paths(mechanism, q, trace))
    path = of_names.pop(TRACE, np.zeros((1, 0, 3)))[0]
    bodies = {"world": WORLD, **{body.name: k for k, body in enumerate(mechanism.bodies)}}
    try:
        pictures = render(mechanism, q, {bodies[name]: points for name, points in of_names.items()}, path)
    except HarnessError as error:
        return str(error)
    return [_compressed(picture) for picture in pictures]


def _compressed(picture: AnyArray) -> str:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "WEBP", quality=QUALITY)
    return base64.b64encode(file.getvalue()).decode()
