"""What is kept of an interrupted command is read by the user who has written it alone."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from diskcache import Cache

from validation.journal import JOURNAL, claimed


class Bomb:
    """A pickle that writes a file when it is read."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.trace, "it was read")


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))


def kept(folder: Path, key: str) -> dict[str, Any]:
    """What a command that resumes knows under a key; the journal stays."""
    with claimed(folder, resume=True) as journal:
        journal.lost = 1
        return journal.known([key])


def keep(folder: Path, key: str, result: Any) -> None:
    with claimed(folder) as journal:
        journal.lost = 1
        journal.keep(key, result)


def test_what_is_kept_is_known_to_the_next_command(tmp_path: Path) -> None:
    keep(tmp_path / "out", "a", {"small": 1, "large": bytes(100_000)})
    assert kept(tmp_path / "out", "a") == {"a": {"small": 1, "large": bytes(100_000)}}
    assert kept(tmp_path / "out", "b") == {}


def test_the_secret_is_the_users_alone(tmp_path: Path) -> None:
    keep(tmp_path / "out", "a", 1)
    (secret,) = (tmp_path / "mine").rglob("secret")
    assert (secret.stat().st_mode & 0o077, len(secret.read_bytes())) == (0, 32)


def test_what_another_user_has_kept_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "theirs"))
    keep(tmp_path / "out", "a", Bomb(tmp_path / "trace"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    assert kept(tmp_path / "out", "a") == {}
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("size", [0, 100_000], ids=["in the database", "in a file"])
def test_a_pickle_of_the_cache_itself_is_not_read(tmp_path: Path, size: int) -> None:
    with Cache(str(tmp_path / "out" / JOURNAL)) as cache:
        cache["a"] = (Bomb(tmp_path / "trace"), bytes(size))
    assert kept(tmp_path / "out", "a") == {}
    assert not (tmp_path / "trace").exists()


def test_a_result_does_not_pass_for_that_of_another_call(tmp_path: Path) -> None:
    keep(tmp_path / "out", "a", 1)
    with Cache(str(tmp_path / "out" / JOURNAL)) as cache:
        cache["b"] = cache["a"]
        cache["c"] = bytes(40) + pickle.dumps(2)
        cache["d"] = "text"
    assert [kept(tmp_path / "out", key) for key in "abcd"] == [{"a": 1}, {}, {}, {}]


def test_where_no_secret_can_be_kept_nothing_is_known_afterwards(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("no folder")
    keep(tmp_path / "out", "a", 1)
    assert kept(tmp_path / "out", "a") == {}
