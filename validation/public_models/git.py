"""The program git: objects of a commit, fetched without a work tree.

Hooks, attributes, filters, links and submodules of a repository have no effect without a checkout, and the names of its
files never reach a shell.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from loopcheck.robots.errors import HarnessError

SECONDS = 300.0
"""Time limit of a call of git [s]."""
SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "fetch.recurseSubmodules=no",
    "fetch.negotiationAlgorithm=noop",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.version=2",
    "protocol.allow=never",
)
SCHEMES = ("https", "http", "ssh", "file")
"""Allowed transports; other transports can start programs."""
HIDDEN = re.compile(r"GIT_(?!SSL_|SSH|HTTP_|CURL_|TERMINAL_)")
"""Environment variables that would redirect git."""


class GitError(HarnessError):
    """Failure of git, with its message."""


class Item(NamedTuple):
    """Entry of a path in a commit."""

    mode: str
    """Mode as git writes it: `120000` is a link, `160000` a submodule."""
    name: str
    """Name of the object, in hexadecimal digits."""


def git(folder: Path, arguments: Sequence[str], *, url: str = "", standard_input: bytes = b"") -> bytes:
    """Run git, and return its output.

    Args:
        folder: A bare repository.
        arguments: Arguments of its command line.
        url: Address of `origin` for this call; empty without a fetch.
        standard_input: Content of stdin.

    Raises:
        GitError: If git is not installed, fails, or times out.
    """
    program = shutil.which("git")
    if program is None:
        raise GitError("git is not installed; it is required to fetch models")
    settings = [*SETTINGS, *(_origin(url) if url else ())]
    options = [part for setting in settings for part in ("-c", setting)]
    surroundings = {name: text for name, text in os.environ.items() if not HIDDEN.match(name)}
    surroundings |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [program, *options, f"--git-dir={folder}", *arguments],
            cwd=folder,
            env=surroundings,
            input=standard_input,
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {arguments[0]}: timeout after {SECONDS:g} s") from error
    except OSError as error:
        raise GitError(f"git cannot be started: {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").split("\n")
        reasons = [line.removeprefix("fatal: ") for line in lines if line and not line.startswith(("warning", "hint"))]
        raise GitError(" ".join(" ".join(reasons).split()) or f"git {arguments[0]} ended with {done.returncode}")
    return done.stdout


def fetch_commit(folder: Path, url: str, commit: str) -> None:
    """Fetch a commit with its trees into a bare repository, and with its files if the server does not support filters.

    Args:
        folder: The repository, made if necessary.
        url: Address of the remote repository.

    Raises:
        GitError: If it cannot be fetched.
    """
    if not (folder / "HEAD").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, ["init", "--quiet", "--bare", "--template=", "--", str(folder)])
    shallow = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--depth=1"]
    try:
        git(folder, [*shallow, "--filter=blob:none", "--", "origin", commit], url=url)
    except GitError:
        git(folder, [*shallow, "--", "origin", commit], url=url)


def fetch_objects(folder: Path, url: str, commit: str, names: Sequence[str]) -> None:
    """Fetch missing objects of a commit into a repository.

    Args:
        folder: A repository with the commit.
        url: Address of the remote repository.
        names: Names of the objects.

    Raises:
        GitError: If they cannot be fetched.
    """
    listing = git(folder, ["rev-list", "--objects", "--missing=print", commit]).decode(errors="replace")
    absent = {line[1:] for line in listing.splitlines() if line.startswith("?")}
    missing = [name for name in names if name in absent]
    if missing:
        options = ["--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none", "--stdin"]
        git(folder, ["fetch", *options, "--", "origin"], url=url, standard_input=_lines(missing))


def items(folder: Path, commit: str) -> Mapping[str, Item]:
    """All that a commit holds, by path.

    Args:
        folder: A repository that has its trees.

    Raises:
        GitError: If it does not have them.
    """
    listing = git(folder, ["ls-tree", "-r", "-z", "--full-tree", commit])
    return dict(map(_item, filter(None, listing.split(b"\0"))))


def tree_name(folder: Path, commit: str, path: str) -> str:
    """Name of the object of a folder in a commit: a hash of all its names and files.

    Raises:
        GitError: If the commit has no such folder.
    """
    return git(folder, ["rev-parse", "--verify", "--end-of-options", f"{commit}:{path}"]).decode().strip()


def blob_name(content: bytes) -> str:
    """Name of the object of a file with a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def sizes(folder: Path, names: Sequence[str]) -> dict[str, int]:
    """Sizes of objects [bytes], by name.

    Raises:
        GitError: If the repository does not contain them.
    """
    lines = git(folder, ["cat-file", "--batch-check"], standard_input=_lines(names)).decode().splitlines()
    absent = [line.split()[0] for line in lines if line.endswith("missing")]
    if absent:
        raise GitError(f"the server did not send {', '.join(absent)}")
    return {name: int(line.split()[2]) for name, line in zip(names, lines, strict=True)}


def content(folder: Path, name: str) -> bytes:
    """Content of an object.

    Raises:
        GitError: If the repository does not contain it.
    """
    return git(folder, ["cat-file", "blob", name])


def has(folder: Path, commit: str) -> bool:
    """Return whether a repository contains a commit."""
    if not (folder / "HEAD").exists():
        return False
    try:
        git(folder, ["cat-file", "-e", f"{commit}^{{tree}}"])
    except GitError:
        return False
    return True


def _origin(url: str) -> Iterator[str]:
    yield f"remote.origin.url={url}"
    yield "remote.origin.promisor=true"
    yield "remote.origin.partialclonefilter=blob:none"
    yield f"protocol.{url.split(':', 1)[0]}.allow=always"


def _item(line: bytes) -> tuple[str, Item]:
    about, path = line.split(b"\t", 1)
    mode, _, name = about.decode().split()
    return os.fsdecode(path), Item(mode, name)


def _lines(names: Sequence[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()
