"""Results of tasks on disk, keyed by everything they depend on: function, arguments, files, code and packages.

The journal of a folder is always kept: the same command resumes after a kill, and a larger study reuses the results of
a smaller study. Files count by content: a path among the arguments of a task, at any depth, stands for the content of
its file. Models and cases contain the hashes of their files. Times do not matter.

A folder of results may come from somebody else. Each result is therefore a file of its own whose name is its key: no
index or database in the folder names another file, and no link in it is followed.
"""

import ast
import hashlib
import hmac
import os
import pickle
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from itertools import count
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import Any, NamedTuple

import joblib
import numpy as np
from joblib.hashing import NumpyHasher

from loopcheck.robots.errors import OutputError
from loopcheck.robots.formats.model_file import file_hash
from loopcheck.validation.execution.environments import digest_of_packages, environment_of
from loopcheck.validation.execution.folders import COMPUTING, ROOT, user_folder

JOURNAL = ".journal"
RESULT = ".result"
"""Suffix of the file of a result; other files in a journal stay as they are."""
SIZE_LIMIT = 2**30
"""Largest size of the journal of a folder after its command [bytes]; the least recently used results are removed."""
SIGNATURE = hashlib.sha256().digest_size
"""Length of a signature and of its secret key [byte]."""
DATA = frozenset({".py", ".toml", ".xml"})
"""Kinds of files with an effect on tasks."""


def is_no_error(result: Any) -> bool:
    """Return whether a result is not a returned `HarnessError`."""
    return not isinstance(result, Exception)


class Task(NamedTuple):
    """A function of a module and its arguments; both, and the result, must be picklable."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    on_failure: Callable[[str], Any] | None = None
    """Replacement of a missing result, from the reason; by default the failure."""
    files: tuple[Path, ...] = ()
    """Files that the task reads, besides those of its arguments and of the packages."""
    is_kept: Callable[[Any], bool] = is_no_error
    """Whether to keep a result; results with a failure are computed again."""
    engine: str = ""
    """Required engine; its environment computes the task if the engine cannot be imported here."""


class Journal:
    """Results of tasks by key, on disk as soon as they are computed.

    Results are pickles. Each result is signed with a secret of the user; a result without this signature, of another
    user or damaged, is computed again.
    """

    def __init__(self, folder: Path | None, notes: Sequence[str] = ()) -> None:
        self._folder, self._secret, self.notes = folder, _secret(), notes

    def known(self, keys: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Number and result of each key with a stored result of this user."""
        for k, key in enumerate(keys):
            content = _content(self._folder / f"{key}{RESULT}") if self._folder else b""
            if not hmac.compare_digest(content[:SIGNATURE], self._signature(key, content[SIGNATURE:])):
                continue
            try:
                result = pickle.loads(content[SIGNATURE:])
            except ImportError:  # kept while a package was installed that is gone, such as pyarrow
                continue
            yield k, result

    def keep(self, key: str, result: Any) -> None:
        """Put a result on disk.

        Raises:
            OutputError: If it cannot be written.
        """
        if self._folder is None:
            return
        content = pickle.dumps(result)
        try:
            # A new file that replaces the old one: a write after a link would change the file that it names.
            with NamedTemporaryFile(dir=self._folder, suffix=RESULT, delete=False) as file:
                file.write(self._signature(key, content) + content)
            Path(file.name).replace(self._folder / f"{key}{RESULT}")
        except OSError as error:
            raise OutputError(f"{self._folder}: cannot be written: {error}") from error

    def _signature(self, key: str, content: bytes) -> bytes:
        return hmac.digest(self._secret, key.encode() + content, "sha256")


def _content(path: Path) -> bytes:
    """Content of a file, which counts as used now; empty if it is missing, unreadable, or not a file."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return b""
        content = path.read_bytes()
    except OSError:
        return b""
    with suppress(OSError):  # a file of another user
        os.utime(path, ns=(time.time_ns(),) * 2)  # by default the kernel's clock, which stands still for milliseconds
    return content


def _secret() -> bytes:
    """Secret key of the user; valid only for this process if it cannot be stored."""
    try:
        path = user_folder("journal") / "secret"
        with NamedTemporaryFile(dir=path.parent) as file:  # which nobody else may read
            file.write(secrets.token_bytes(SIGNATURE))
            file.flush()
            with suppress(FileExistsError):
                os.link(file.name, path)
        return path.read_bytes()
    except OSError:
        return secrets.token_bytes(SIGNATURE)


@contextmanager
def journal_in(folder: Path) -> Iterator[Journal]:
    """The journal of a folder of results, made smaller than `SIZE_LIMIT` at the end.

    A journal that cannot be used is set aside under another name; if that fails too, nothing is stored.
    """
    _digest_of_constant.cache_clear()  # files may have changed since another command
    place = folder / JOURNAL
    try:
        notes = _set_aside(place)
    except OSError as error:
        yield Journal(None, [f"{_no_folder(place, error)}. No result is stored, so that a later command starts again"])
        return
    try:
        yield Journal(place, notes)
    finally:
        _shrink(place)


def _set_aside(place: Path) -> list[str]:
    """Make a folder, after what cannot be used in its place has got another name; a note about it, if so.

    Raises:
        OSError: If the folder cannot be made.
    """
    try:
        _make(place)
    except OSError as error:
        names = (place.with_name(f"{JOURNAL}-aside-{k}") for k in count(1))
        aside = next(path for path in names if not os.path.lexists(path))
        place.rename(aside)
        _make(place)
        return [f"{_no_folder(place, error)}. It is now {aside.name}, and all results are computed again"]
    return []


def _no_folder(place: Path, error: OSError) -> str:
    return f"{place}: must be a writable folder, got: {error.strerror or error}"


def _make(place: Path) -> None:
    """Make a folder if necessary; a link, which may lead anywhere, is no folder."""
    if place.is_symlink():
        raise OSError("a link")
    place.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=place):
        pass


def _shrink(place: Path) -> None:
    """Remove the least recently used results beyond `SIZE_LIMIT`, and an empty folder."""
    files = [(path.lstat(), path) for path in place.glob(f"*{RESULT}")]
    size = 0
    for status, path in sorted(files, key=lambda file: file[0].st_mtime_ns, reverse=True):
        size += status.st_size
        if size > SIZE_LIMIT:
            with suppress(OSError):  # a folder of that name
                path.unlink()
    with suppress(OSError):  # results, or files of somebody else
        place.rmdir()


def keys(tasks: Sequence[Task]) -> list[str]:
    """Keys of the results of tasks."""
    arguments = {id(argument): argument for task in tasks for argument in task.args}  # many share the same motion
    digests = {identity: _digest_of(argument) for identity, argument in arguments.items()}
    packages = {engine: _packages_of(engine) for engine in {task.engine for task in tasks}}
    return [
        str(
            joblib.hash(
                (
                    task.function.__module__,
                    task.function.__qualname__,
                    [digests[id(argument)] for argument in task.args],
                    [file_hash(path) for path in task.files],
                    _code(task.function.__module__),
                    packages[task.engine],
                )
            )
        )
        for task in tasks
    ]


class _WithContents(NumpyHasher):  # type: ignore[misc]
    """Hash of an argument, with the content of each file in place of its path."""

    def save(self, obj: Any) -> None:
        """Hash a part of the argument."""
        if isinstance(obj, Path):
            obj = (str(obj), file_hash(obj))
        elif isinstance(obj, np.ndarray) and not obj.size:  # its strides are others after a transfer
            obj = (str(obj.dtype), obj.shape)
        super().save(obj)


class _Itself:
    """A content that equals itself alone, not another with the same values."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def __hash__(self) -> int:
        return id(self.content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.content is other.content


@lru_cache(maxsize=64)
def _digest_of_constant(constant: _Itself) -> str:
    return digest_of(constant.content)


def _digest_of(argument: Any) -> str:
    """As `digest_of`, once for a constant: a search asks for a task at a time, each with the same case and motions."""
    if type(argument) is tuple:
        return str(joblib.hash([_digest_of(part) for part in argument]))
    is_constant = getattr(getattr(type(argument), "__dataclass_params__", None), "frozen", False)
    return _digest_of_constant(_Itself(argument)) if is_constant else digest_of(argument)


def digest_of(argument: Any) -> str:
    """Digest of an argument of a task, with the content of the files that it names."""
    return str(_WithContents(hash_name="md5").hash(argument))


@cache
def _code(module: str) -> str:
    """Digest of the files that a module's functions depend on."""
    digest = hashlib.sha256(_code_of_all())
    for path in sorted(code_files(module)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def _code_of_all() -> bytes:
    """Digest of the files that all functions depend on, documents apart."""
    digest = hashlib.sha256()
    for path in sorted(path for package in COMPUTING for path in (ROOT / package).rglob("*") if path.suffix in DATA):
        digest.update(path.read_bytes())
    return digest.digest()


def code_files(module: str) -> set[Path]:
    """Files of `validation` that the functions of a module depend on."""
    if not module.startswith("loopcheck.validation."):
        return set()
    return {*map(_source, _imported(module)), *(ROOT / "validation/common").glob("*.toml")}


def _imported(module: str) -> set[str]:
    """A module of `validation` and all that it imports from there, directly or not."""
    modules: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in modules:
            modules.add(name)
            waiting += _imports(name)
    return modules


@cache
def _imports(module: str) -> list[str]:
    """Modules of `validation` that a module imports at any place in its code."""
    names = []
    for node in ast.walk(ast.parse(_source(module).read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.startswith("loopcheck.validation.") and _source(name).is_file()]


def _source(module: str) -> Path:
    """File of a module or package; it does not exist if the name belongs to a function or class."""
    path = ROOT.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _packages_of(engine: str) -> str:
    """Digest of the packages that compute a task of an engine, here or in an environment."""
    environment = environment_of(engine)
    return _packages() if environment is None else environment.packages()


@cache
def _packages() -> str:
    """Digest of the packages of this process."""
    return digest_of_packages(Path(entry) for entry in sys.path if Path(entry).is_dir())
