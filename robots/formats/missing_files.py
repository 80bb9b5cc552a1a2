"""Missing or unreadable files of meshes, height fields, textures and skins that a model names.

Placeholders replace them if no inertia depends on them. MuJoCo's compiler decides this: compiled with placeholders of
two sizes, a body that depends on a mesh differs. Contacts and appearance also depend on them; no source uses these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import mujoco
import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError

SMALL, LARGE = np.array([0.5, 0.7, 1.1]), np.array([2.1, 1.3, 1.7])
"""Half edges of the two boxes that replace a mesh [m]; the inertias of two uniform bodies always differ."""
NAMED = 8
"""Largest number of files listed in a message; further bodies are counted."""
OF_BODIES = ("body_mass", "body_inertia", "body_ipos", "body_iquat", "body_pos", "body_quat")


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFile:
    """A file that a model names and that MuJoCo's compiler cannot read."""

    kind: str
    """Kind of the asset: mesh, hfield, texture or skin."""
    index: int
    """Index of the asset among its kind."""
    file: str
    """The name in the MJCF."""
    reason: str
    """Message of MuJoCo."""


def missing_files(spec: Any) -> tuple[MissingFile, ...]:
    """The files of a model that MuJoCo's compiler cannot read, each tried on its own."""
    tried = {
        "mesh": (spec.meshes, _try_mesh),
        "hfield": (spec.hfields, _try_hfield),
        "texture": (spec.textures, _try_texture),
        "skin": (spec.skins, _try_skin),
    }
    missing = []
    for kind, (assets, attempt) in tried.items():
        for index, asset in enumerate(assets):
            for file in filter(None, (asset.file, *getattr(asset, "cubefiles", ()))):
                alone = mujoco.MjSpec()
                alone.modelfiledir = spec.modelfiledir
                alone.compiler.meshdir, alone.compiler.texturedir = asset.compiler.meshdir, asset.compiler.texturedir
                alone.strippath = spec.strippath
                attempt(alone, asset, file)
                try:
                    alone.compile()
                except ValueError as error:
                    reason = " ".join(str(error).split("\n")[0].removeprefix("Error: ").split())
                    missing.append(MissingFile(kind=kind, index=index, file=file, reason=reason))
    return tuple(missing)


def leave_out_meshes(spec: Any) -> None:
    """Replace the meshes and pictures of an `MjSpec` that no inertia depends on; then no compilation reads them.

    Args:
        spec: The `MjSpec`; it is changed.
    """
    always = int(mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE)
    if int(spec.compiler.inertiafromgeom) != always:
        needed = {geom.meshname for geom in spec.geoms if geom.meshname and not geom.parent.explicitinertial}
        for mesh in spec.meshes:
            if mesh.file and mesh.name not in needed:
                _stand_in_for_mesh(mesh, SMALL)
    for texture in spec.textures:
        _stand_in_for_texture(texture)


def compile_without(spec: Any, missing: Sequence[MissingFile]) -> Any:
    """Compile a model without missing files, into an `MjModel`.

    Args:
        spec: The `MjSpec`; it is not changed.

    Raises:
        MechanismError: If the inertia of a body depends on a missing file; the message names both.
    """
    small = _with_stand_ins(spec, missing)
    model = small.copy().compile()  # a copy: the compiler discards meshes of its spec

    def depend_on(files: Sequence[MissingFile]) -> list[str]:
        """Names of the bodies whose inertia depends on some of the files."""
        larger = small.copy()
        meshes = larger.meshes
        for file in files:
            if file.kind == "mesh":
                _stand_in_for_mesh(meshes[file.index], LARGE)
        return _bodies_that_differ(model, larger.compile())

    if differing := depend_on(missing):
        pairs = ((body, file) for file in missing for body in depend_on([file]))
        found = list(islice(pairs, NAMED))  # a compilation for each file: a clone without its meshes lacks hundreds
        reasons = [
            f"inertia of body '{body}' depends on the file '{file.file}' ({file.reason})" for body, file in found
        ]
        if others := len(set(differing) - {body for body, _ in found}):
            reasons.append(f"inertia of {others} more bodies depends on missing files")
        raise MechanismError(f"{'; '.join(reasons)}. Add the file, or write the inertia in <inertial>")
    return model


def in_words(missing: Sequence[MissingFile]) -> str:
    """A sentence that names the files."""
    readable = {True: "missing", False: "cannot be read"}
    named = [f"{f.kind} '{f.file}' ({readable[f.reason.startswith('Error opening')]})" for f in missing]
    return f"files without effect on the inertia: {', '.join(dict.fromkeys(named))}"


def _try_mesh(alone: Any, mesh: Any, file: str) -> None:
    tried = alone.add_mesh(name="tried", file=file, scale=mesh.scale, inertia=mesh.inertia)
    tried.content_type = mesh.content_type


def _try_hfield(alone: Any, hfield: Any, file: str) -> None:
    alone.add_hfield(name="tried", file=file, size=hfield.size, content_type=hfield.content_type)


def _try_texture(alone: Any, texture: Any, file: str) -> None:
    alone.add_texture(name="tried", file=file, type=mujoco.mjtTexture.mjTEXTURE_2D, content_type=texture.content_type)


def _try_skin(alone: Any, skin: Any, file: str) -> None:
    for body in skin.bodyname:
        alone.worldbody.add_body(name=body)
    alone.add_skin(name="tried", file=file)


def _with_stand_ins(spec: Any, missing: Sequence[MissingFile]) -> Any:
    """A copy of a model with placeholders, small ones for meshes."""
    copy = spec.copy()
    meshes = copy.meshes
    for file in missing:
        if file.kind == "mesh":
            _stand_in_for_mesh(meshes[file.index], SMALL)
        elif file.kind == "hfield":
            hfield = copy.hfields[file.index]
            hfield.file, hfield.nrow, hfield.ncol, hfield.userdata = "", 2, 2, np.array([0.0, 0.0, 0.0, 1.0])
        elif file.kind == "texture":
            _stand_in_for_texture(copy.textures[file.index])
    for index in sorted((file.index for file in missing if file.kind == "skin"), reverse=True):
        copy.delete(copy.skins[index])
    return copy


def _stand_in_for_mesh(mesh: Any, half_edges: Array) -> None:
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half_edges
    mesh.file, mesh.scale, mesh.uservert = "", np.ones(3), corners.ravel()


def _stand_in_for_texture(texture: Any) -> None:
    texture.file, texture.cubefiles = "", []
    texture.builtin, texture.width, texture.height = mujoco.mjtBuiltin.mjBUILTIN_FLAT, 1, 1


def _bodies_that_differ(one: Any, other: Any) -> list[str]:
    """Names of the bodies that two compiled models do not have alike, to the last bit."""
    alike = np.ones(one.nbody, dtype=bool)
    for field in OF_BODIES:
        alike &= (getattr(one, field) == getattr(other, field)).reshape(one.nbody, -1).all(axis=1)
    return [one.body(int(i)).name or f"body{i}" for i in np.flatnonzero(~alike)]
