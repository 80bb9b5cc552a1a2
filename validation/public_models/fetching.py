"""Fetches the files of a model into the user's cache, each held against the hash that the manifest has of it."""

import hashlib
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from filelock import FileLock

from loopcheck.robots.catalogue import ROBOT_FILE
from loopcheck.robots.errors import HarnessError, NotFoundError
from loopcheck.validation.execution.folders import user_folder
from loopcheck.validation.public_models import git
from loopcheck.validation.public_models.git import SCHEMES, Item
from loopcheck.validation.public_models.manifest import AtlasModel, Entry, Repository, entries
from loopcheck.validation.public_models.patching import patched_text

FOLDER, ROBOTS = "atlas", "robots"
"""Folder of the models in the user's cache, and in it the folder of those that were targets."""
OBJECTS = "objects.git"
MENAGERIE = Path(__file__).with_name("menagerie.toml")
PUBLIC = "https://github.com"
"""Default address of the repositories."""
REMOTE = re.compile(rf"({'|'.join(SCHEMES)})://[^\s\x00-\x1f-][^\s\x00-\x1f]*")
POINTER = b"version https://git-lfs.github.com/spec/"
"""Beginning of a Git LFS pointer."""
LARGEST = 2**28
"""Largest fetched file [bytes]."""
LINK, SUBMODULE = "120000", "160000"


class FetchError(HarnessError):
    """A file of a model that cannot be fetched as the manifest describes it."""


def want_remote(remote: str) -> str:
    """The checked beginning of repository addresses.

    Args:
        remote: Text before `/OWNER/NAME`.

    Raises:
        FetchError: If it is no address, or of a kind that could start a program.
    """
    if not REMOTE.fullmatch(remote):
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise FetchError(f"--remote must begin with {known}, got {remote!r}")
    return remote.rstrip("/")


def fetched(entry: Entry, remote: str = PUBLIC) -> Path:
    """Path of a model's MJCF in the user's cache, with all its files in the places of its repository.

    Cached files with the hashes of the manifest are not fetched again. A patched MJCF lies beside the original.

    Args:
        remote: Beginning of the address, as `https://github.com` or `file:///folder/of/bare/repositories`.

    Raises:
        FetchError: If a file is missing, no plain file, a Git LFS pointer, or of another hash than in the manifest.
        GitError: If git cannot get the commit.
        MechanismError: If a patch finds no text to change.
    """
    place = user_folder(FOLDER) / entry.repository.repository
    folder = place / entry.repository.commit
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / ".lock"):
        missing = [path for path in entry.model.every_file if not _is_whole(folder / path, _digest(entry, path))]
        if missing:
            _fetch(entry, missing, place / OBJECTS, f"{want_remote(remote)}/{entry.repository.repository}")
        if entry.model.patches:
            _patch(entry, folder)
    return folder / entry.model.patched_path


def fetched_robot(name: str) -> Path:
    """Folder in the user's cache with the `robot.toml` of a public model.

    Args:
        name: Of a model of the manifest. Its initial pose in the manifest, if any, is left out.

    Raises:
        NotFoundError: If there is no such model.
        FetchError: See `fetched`.
        GitError: See `fetched`.
        MechanismError: See `fetched`.
    """
    known = {entry.model.id: entry for entry in entries()}
    if name not in known:
        raise NotFoundError("model of the atlas", name, tuple(known))
    return _robot(known[name], user_folder(FOLDER) / ROBOTS / name)


def fetched_menagerie_robot(name: str) -> Path:
    """Folder in the user's cache with the `robot.toml` of a model of MuJoCo Menagerie.

    The commit and the hash of the model's folder are pinned in `menagerie.toml`.

    Args:
        name: Of a folder of Menagerie, or FOLDER/FILE for another file of it.

    Raises:
        NotFoundError: If there is no such model.
        FetchError: See `fetched`.
        GitError: See `fetched`.
    """
    table = tomllib.loads(MENAGERIE.read_text(encoding="utf-8"))
    model, _, file = name.partition("/")
    if model not in table["models"]:
        raise NotFoundError("model of Menagerie", model, tuple(table["models"]))
    pinned, commit = table["models"][model], table["commit"]
    objects = user_folder(FOLDER) / table["repository"] / OBJECTS
    if not git.has(objects, commit):
        git.fetch_commit(objects, f"{want_remote(PUBLIC)}/{table['repository']}", commit)
    if (tree := git.tree_name(objects, commit, model)) != pinned["tree"]:
        raise FetchError(
            f"{table['repository']}@{commit[:12]}:{model}: must be the object {pinned['tree']}, got {tree}"
        )
    items = {path: item for path, item in git.items(objects, commit).items() if path.startswith(f"{model}/")}
    files = {path: item.name for path, item in items.items() if item.mode not in (LINK, SUBMODULE)}
    path = f"{model}/{f'{file}.xml' if file else pinned['file']}"
    if path not in files:
        known = [other.removeprefix(f"{model}/")[:-4] for other in files if other.endswith(".xml")]
        raise NotFoundError(f"file of {model} in Menagerie", file, known)
    others = tuple(other for other in files if other != path)
    chosen = AtlasModel(id=re.sub("[^a-z0-9]+", "-", name.lower()), path=path, files=others)
    repository = Repository(repository=table["repository"], commit=commit, models=(chosen,), files=files)
    return _robot(
        Entry(repository=repository, model=chosen), user_folder(FOLDER) / "menagerie" / name.replace("/", "-")
    )


def _robot(entry: Entry, folder: Path) -> Path:
    """The folder with a `robot.toml` of a public model, whose files are fetched."""
    path = fetched(entry, PUBLIC)
    folder.mkdir(parents=True, exist_ok=True)
    table = {
        "title": folder.name,
        "mjcf": os.path.relpath(path, folder),
        "source": f"{entry.repository.repository}, commit {entry.repository.commit}, {entry.model.path}",
        **({"actuated": list(entry.model.actuated)} if entry.model.actuated else {}),
    }
    # strings and lists of JSON are TOML
    _write(folder / ROBOT_FILE, "".join(f"{key} = {json.dumps(table[key])}\n" for key in table).encode())
    return folder


def _patch(entry: Entry, folder: Path) -> None:
    """Put a model with its patches into the cache."""
    content = patched_text(folder / entry.model.path, entry.model.patches)
    _want_digest(entry, entry.model.patched_path, content, entry.model.patched_sha256)
    if not _is_whole(folder / entry.model.patched_path, entry.model.patched_sha256):
        _write(folder / entry.model.patched_path, content)


def _fetch(entry: Entry, paths: Sequence[str], repository: Path, url: str) -> None:
    """Get files that the cache lacks; each is written when it has been checked."""
    commit = entry.repository.commit
    if not git.has(repository, commit):
        git.fetch_commit(repository, url, commit)
    known = git.items(repository, commit)
    names = {path: _object(entry, path, known) for path in paths}
    objects = list(dict.fromkeys(names.values()))
    git.fetch_objects(repository, url, commit, objects)
    sizes = git.sizes(repository, objects)
    for path, name in names.items():
        if sizes[name] > LARGEST:
            raise FetchError(f"{_where(entry, path)}: size must be at most {LARGEST} bytes, got {sizes[name]}")
        content = git.content(repository, name)
        _want_content(entry, path, content)
        _write(repository.parent / commit / path, content)


def _object(entry: Entry, path: str, known: Mapping[str, Item]) -> str:
    """Name of the object under a path, which must be a plain file outside of links."""
    parents = ["/".join(path.split("/")[:k]) for k in range(1, path.count("/") + 1)]
    for parent in (*parents, path):
        item = known.get(parent)
        if item is not None and item.mode in (LINK, SUBMODULE):
            kind = "link" if item.mode == LINK else "submodule"
            raise FetchError(f"{_where(entry, path)}: must be a file, but '{parent}' is a {kind}")
    if path not in known:
        raise FetchError(f"{_where(entry, path)}: the commit has no such file")
    return known[path].name


def _want_content(entry: Entry, path: str, content: bytes) -> None:
    if content.startswith(POINTER):
        raise FetchError(f"{_where(entry, path)}: must be the file itself, got a Git LFS pointer")
    _want_digest(entry, path, content, _digest(entry, path))


def _want_digest(entry: Entry, path: str, content: bytes, wanted_digest: str) -> None:
    digest = _digest_like(wanted_digest, content)
    if digest != wanted_digest:
        raise FetchError(f"{_where(entry, path)}: must have the SHA-256 {wanted_digest}, got {digest}")


def _write(path: Path, content: bytes) -> None:
    """Put a file into the cache, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    Path(file.name).replace(path)


def _is_whole(path: Path, digest: str) -> bool:
    return path.is_file() and not path.is_symlink() and _digest_like(digest, path.read_bytes()) == digest


def _digest_like(digest: str, content: bytes) -> str:
    """SHA-256 of a content, or the name of its object in git, as the given digest."""
    return hashlib.sha256(content).hexdigest() if len(digest) == 64 else git.blob_name(content)


def _digest(entry: Entry, path: str) -> str:
    return entry.repository.files[path]


def _where(entry: Entry, path: str) -> str:
    return f"{entry.repository.repository}@{entry.repository.commit[:12]}:{path}"
