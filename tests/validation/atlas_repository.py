"""A bare repository with models, with contents of a hostile repository, and with its manifest."""

import hashlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.conftest import MODELS

NAME = "owner/robots"
SHELL = "$(touch owned);&'\" --upload-pack=touch owned.xml"
"""A file's name that would run a program if it met a shell."""
FOUR_BAR = (MODELS / "four_bar.xml").read_text(encoding="utf-8")
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"
PART = '<mujoco><worldbody><body><joint name="extra"/><geom size="0.1"/></body></worldbody></mujoco>'
TEXTS: Mapping[str, str] = {
    "four bar/four_bar.xml": FOUR_BAR,
    "four bar/renamed.xml": FOUR_BAR.replace('"rocker"', '"other"'),
    "four bar/heavier.xml": FOUR_BAR.replace('mass="1.2"', 'mass="1.3"'),
    "four bar/without.xml": FOUR_BAR.replace('<connect name="loop"', '<connect name="loop" active="false"'),
    "with part/model.xml": '<mujoco><include file="../parts/part.xml"/></mujoco>',
    "parts/part.xml": PART,
    "broken.xml": "<mujoco><worldbody><body/>",
    "outside.xml": '<mujoco><include file="../../../../outside.xml"/></mujoco>',
    "large.stl": POINTER,
    SHELL: PART,
    ".gitattributes": "* filter=harm\n",
}
LINKS = {"link.xml": "parts/part.xml", "linked": "parts"}


def make_repository(folder: Path, *, has_filters: bool = False) -> str:
    """Make the bare repository `folder/owner/robots`.

    Args:
        folder: Of repositories.
        has_filters: Whether it lets a client leave objects out.

    Returns:
        Name of its commit.
    """
    place = folder / NAME
    place.mkdir(parents=True)
    _git(place, "init", "--quiet", "--bare")
    _git(place, "fast-import", "--quiet", text=_stream())
    for setting in ("allowFilter", "allowAnySHA1InWant") if has_filters else ():
        _git(place, "config", f"uploadpack.{setting}", "true")
    return _git(place, "rev-parse", "main").strip()


def write_manifest(folder: Path, commit: str, models: Mapping[str, Sequence[str]], **digests: str) -> Path:
    """Write a manifest of some models of the repository.

    Args:
        folder: Output folder; made.
        commit: Of the repository.
        models: Paths of an MJCF and of its further files, by its name.
        digests: SHA-256 of some paths, instead of the true digest.

    Returns:
        The folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f'repository = "{NAME}"', f'commit = "{commit}"']
    for name, (path, *files) in models.items():
        lines += ["[[models]]", f'id = "{name}"', f"path = {json.dumps(path)}", f"files = {json.dumps(files)}"]
    lines.append("[files]")
    for path in dict.fromkeys(path for paths in models.values() for path in paths):
        digest = digests.get(path, hashlib.sha256(TEXTS.get(path, "").encode()).hexdigest())
        lines.append(f'{json.dumps(path)} = "{digest}"')
    (folder / "robots.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def _stream() -> str:
    """Input of `git fast-import` for a commit with links and a submodule."""
    lines = ["commit refs/heads/main", "committer nobody <> 0 +0000", "data 0"]
    for path, text in TEXTS.items():
        lines += [f"M 100644 inline {json.dumps(path)}", f"data {len(text.encode())}", text]
    for path, target in LINKS.items():
        lines += [f"M 120000 inline {path}", f"data {len(target)}", target]
    lines.append(f"M 160000 {'1' * 40} module")
    return "\n".join(lines) + "\n"


def _git(place: Path, *arguments: str, text: str = "") -> str:
    command = ["git", "-c", "init.defaultBranch=main", *arguments]
    done = subprocess.run(command, cwd=place, input=text, capture_output=True, text=True, check=True)
    return done.stdout
