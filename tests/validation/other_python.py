"""An environment in the role of another Python: this interpreter, isolated, with the packages of this environment."""

import platform
import sysconfig
import venv
from pathlib import Path

import numpy as np

from loopcheck.validation.execution.environments import MARKER, Environment, interpreter_in


def share_packages(place: Path) -> None:
    """A virtual environment with the packages of this environment."""
    venv.create(place, symlinks=True, with_pip=False)
    (site,) = place.glob("lib/*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")


def make_environment(folder: Path, engine: str, version: str = "1.0", *, whole: bool = True) -> Environment:
    """An environment of an engine, unless its making is to be cut short."""
    place = folder / f"{engine}-{version}-py311"
    share_packages(place)
    (site,) = place.glob("lib/*/site-packages")
    (site / "numpy-1.0.dist-info").mkdir()
    environment = Environment(
        folder=place,
        engine=engine,
        version=version,
        python=platform.python_version(),
        numpy=np.__version__,
        size=1_000_000,
        request={"version": "", "python": "", "find_links": ""},
    )
    environment.write(place)
    if not whole:
        (place / MARKER).unlink()
    assert interpreter_in(place).exists()
    return environment
