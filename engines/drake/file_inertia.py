"""Inertias of the links of a URDF, SDF or MJCF by Drake's own parsers."""

import logging
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from loopcheck.engines.boundary import silenced
from loopcheck.engines.drake._plant import guarded, plants, trees
from loopcheck.robots.errors import EngineError
from loopcheck.robots.formats.sdf import is_sdf
from loopcheck.robots.formats.urdf import is_urdf
from loopcheck.robots.second_reading.tables import Link

with silenced():
    parsing: Any = import_module("pydrake.multibody.parsing")

SETTINGS = re.compile(rb"\b(balanceinertia|settotalmass|bound(mass|inertia)|inertia(fromgeom|grouprange)|<include)\b")
"""Parts of an MJCF that change inertias and that Drake's parser does not read."""


def links(path: Path) -> Sequence[Link]:
    """See `loopcheck.engines.contract.FileInertia.links`."""
    kind = "urdf" if is_urdf(path) else "sdf" if is_sdf(path) else "xml"
    content = path.read_bytes()
    if kind == "xml" and SETTINGS.search(content):
        raise EngineError(f"drake: {path.name} has settings of inertias that Drake's parser does not read")
    logger = logging.getLogger("drake")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with guarded("drake"):
            plant = plants.MultibodyPlant(0.0)
            if path.suffix.lower() == f".{kind}":  # meshes are looked for beside the file
                parsing.Parser(plant).AddModels(file_name=str(path))
            else:
                parsing.Parser(plant).AddModelsFromString(content.decode("utf-8-sig"), kind)
            plant.Finalize()
            return [_link(plant.get_body(trees.BodyIndex(b))) for b in range(1, plant.num_bodies())]
    finally:
        logger.setLevel(level)


def _link(body: Any) -> Link:
    inertia = body.default_spatial_inertia()
    center = inertia.get_com()
    about_center = inertia.Shift(center).CalcRotationalInertia().CopyToFullMatrix3()
    return Link(name=body.name(), X=np.eye(4), mass=inertia.get_mass(), center=center, inertia=about_center)
