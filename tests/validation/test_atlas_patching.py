"""Patches by rule: their changes, the unchanged rest, and the resulting digests in the manifest."""

import hashlib
from pathlib import Path

import pytest

from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats.mjcf import compile_model
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.validation.public_models.fetching import FetchError, fetched
from loopcheck.validation.public_models.manifest import AtlasModel, Entry, Repository
from loopcheck.validation.public_models.patching import Rule, patched_text
from loopcheck.validation.studies.atlas.reading import read_model
from tests.validation.atlas_repository import NAME

MEDIUM = """<mujoco>
  <option viscosity="0.1" timestep="0.003" density="1.2"/> <!-- <adhesion name="grip"/> -->
  <worldbody><body name="arm"><joint name="j" axis="0 1 0"/><geom size="0.1"/></body></worldbody>
  <actuator>
    <motor name="m" joint="j"/><adhesion name="grip" body="arm" ctrlrange="0 1"/><adhesion name="hold" body="arm"
      ctrlrange="0 1" ></adhesion></actuator>
</mujoco>
"""
VACUUM = Rule(rule="vacuum")
GRIP, HOLD = (Rule(rule="without", element="adhesion", name=name) for name in ("grip", "hold"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model that drags and sticks."""
    path = tmp_path / "model.xml"
    path.write_text(MEDIUM, encoding="utf-8")
    return path


def test_rules_change_what_they_name_alone(path: Path) -> None:
    before, without, after = (
        compile_model(ModelFile(path=_written(path, f"{k}.xml", text)))
        for k, text in enumerate((MEDIUM, _text(path, GRIP), _text(path, VACUUM, GRIP, HOLD)))
    )
    assert (before.nu, before.opt.density, before.opt.viscosity) == (3, 1.2, 0.1)
    assert (after.nu, after.opt.density, after.opt.viscosity, after.opt.timestep) == (1, 0, 0, 0.003)
    assert after.actuator(0).name == "m"
    assert without.actuator(1).name == "hold"
    assert '<!-- <adhesion name="grip"/> -->' in _text(path, GRIP, HOLD)


def test_a_model_that_was_refused_is_read_with_its_patches(path: Path) -> None:
    assert "a medium" in read_model(AtlasModel(id="model", path="model.xml"), path).reason
    path.write_text(_text(path, VACUUM, GRIP, HOLD), encoding="utf-8")
    assert read_model(AtlasModel(id="model", path="model.xml"), path).case is not None


def test_a_rule_that_finds_nothing_is_refused(path: Path) -> None:
    other = Rule(rule="without", element="adhesion", name="no such")
    with pytest.raises(HarnessError, match=r"model.xml: must have exactly 1 adhesion 'no such' to remove it, got 0"):
        patched_text(path, (other,))
    path.write_text("<mujoco/>", encoding="utf-8")
    with pytest.raises(HarnessError, match=r"model.xml: must have a medium"):
        patched_text(path, (VACUUM,))
    path.write_text("<mujoco>", encoding="utf-8")
    for rule in (VACUUM, GRIP):
        with pytest.raises(HarnessError, match=r"model.xml: must be a readable XML file"):
            patched_text(path, (rule,))


@pytest.mark.parametrize(
    "values",
    [
        {"rule": "without", "name": "grip"},
        {"rule": "without", "element": "adhesion"},
        {"rule": "vacuum", "name": "grip"},
        {"rule": "heavier"},
    ],
)
def test_a_rule_has_its_arguments(values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"must have an element|Input should be"):
        Rule.model_validate(values)


def test_the_cache_holds_the_patched_file_beside_the_other(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    commit = "0" * 40
    place = tmp_path / f"cache/loopcheck/atlas/{NAME}/{commit}"
    place.mkdir(parents=True)
    path.rename(place / "model.xml")  # as if it had been fetched
    text = _text(place / "model.xml", VACUUM).encode()

    def entry(digest: str) -> Entry:
        model = AtlasModel(id="arm", path="model.xml", patches=(VACUUM,), patched_sha256=digest)
        files = {"model.xml": hashlib.sha256(MEDIUM.encode()).hexdigest()}
        return Entry(repository=Repository(repository=NAME, commit=commit, models=(model,), files=files), model=model)

    right = entry(hashlib.sha256(text).hexdigest())
    patched = fetched(right)
    assert (patched, patched.read_bytes()) == (place / "arm.patched.xml", text)
    assert (place / "model.xml").read_text(encoding="utf-8") == MEDIUM
    patched.write_text("spoilt", encoding="utf-8")
    assert fetched(right).read_bytes() == text
    with pytest.raises(FetchError, match=r"arm\.patched\.xml: must have the SHA-256 1111"):
        fetched(entry("1" * 64))


def test_patches_and_their_hash_come_together() -> None:
    with pytest.raises(ValueError, match="'arm' must have both patches and the SHA-256"):
        AtlasModel(id="arm", path="model.xml", patches=(VACUUM,))
    with pytest.raises(ValueError, match="'arm' must have both patches and the SHA-256"):
        AtlasModel(id="arm", path="model.xml", patched_sha256="1" * 64)


def _written(path: Path, name: str, text: str) -> Path:
    path.with_name(name).write_text(text, encoding="utf-8")
    return path.with_name(name)


def _text(path: Path, *rules: Rule) -> str:
    return patched_text(path, rules).decode()
