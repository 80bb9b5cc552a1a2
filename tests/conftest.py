"""Options and fixtures of all tests."""

import gc
import importlib.metadata
import os
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from packaging.version import Version
from threadpoolctl import threadpool_limits

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, Robot, load, make_case
from loopcheck.validation.common.targets import robot_with_closed_loops
from loopcheck.validation.execution.folders import user_folder
from loopcheck.validation.execution.forkserver import RARE
from loopcheck.validation.execution.invocation import UV, UV_RUN
from tests.cpu_time import TOLERANCE, Kinds

threadpool_limits(1)  # as in workers; two threads of each of two test processes wait for each other most of the time

MODELS = Path(__file__).parent / "models"
MUJOCO = Version(importlib.metadata.version("mujoco"))
ZOO = tuple(sorted(path.stem for path in MODELS.glob("*.xml")))
"""Small mechanisms with elements that no robot of the catalogue has."""
AMPLITUDES = {"six_legs": 0.02}
"""Half swing of the actuated joints [m or rad] for mechanisms that cannot move by 0.1."""


def want_engine(name: str, config: pytest.Config) -> None:
    """Skip a test of a missing engine, or fail it if engines are required and this engine is in the group dev.

    Args:
        name: Name of the engine.
        config: Of the tests.
    """
    if engines.installed(name):
        return
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    if (
        config.getoption("--require-engines")
        and f"loopcheck[{engines.extra(name)}]" in project["dependency-groups"]["dev"]
    ):
        pytest.fail(f"{name} is not installed")
    pytest.skip(f"{name} is not installed")


def since_mujoco(release: str, reason: str) -> pytest.MarkDecorator:
    """Skip a test with an older MuJoCo."""
    return pytest.mark.skipif(Version(release) > MUJOCO, reason=f"MuJoCo before {release} {reason}")


def pytest_configure(config: pytest.Config) -> None:
    """Choose tests by kind; compile functions of JAX quickly, and share them between all processes."""
    config.pluginmanager.register(
        Kinds(
            extended=config.getoption("--extended") or config.getoption("--every-case"),
            tolerance=inf if config.getoption("--robots") else config.getoption("--cpu-tolerance"),
        ),
        "kinds of tests",
    )
    for name in (UV, UV_RUN):  # commands in outputs begin with `loopcheck`, whatever has called the tests
        os.environ.pop(name, None)
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    os.environ["LOOPCHECK_ENGINES"] = os.devnull  # environments of the user are none of the tests'
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")
    os.environ["LOKY_MAX_CPU_COUNT"] = "1"  # default of `--jobs`: the other cores run other tests
    with suppress(OSError):  # without a cache, the same takes longer; the keys contain the version of JAX
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(user_folder("jax")))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")


def pytest_collection_finish() -> None:
    """Search rarely for cycles of objects, and never among those of the collection: equations make millions."""
    gc.set_threshold(*RARE)
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--extended", action="store_true", help="Run the extended tests too.")
    parser.addoption(
        "--every-case", action="store_true", help="Run the extended tests, and simulations in all modes of each robot."
    )
    parser.addoption(
        "--cpu-tolerance",
        type=float,
        default=TOLERANCE,
        metavar="FACTOR",
        help="A test fails above so many times the CPU time that it may take; `inf` lets tests take any time.",
    )
    parser.addoption(
        "--require-engines",
        action="store_true",
        help="A source whose engine is not installed fails instead of being skipped.",
    )
    parser.addoption(
        "--all-commands",
        action="store_true",
        help="Run every command of README.md and of the how-to, which takes half an hour.",
    )
    parser.addoption(
        "--logs", type=int, default=40, metavar="N", help="Number of generated logs without and with a fault each."
    )
    parser.addoption("--kills", type=int, default=1, metavar="N", help="How often each command is killed and resumed.")
    parser.addoption(
        "--robots",
        action="append",
        type=Path,
        default=[],
        metavar="DIR",
        help="Folder of robots besides the catalogue, DIR/NAME/robot.toml; may repeat.",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrized = {name for mark in metafunc.definition.iter_markers("parametrize") for name in mark.args[0]}
    if "zoo_name" in metafunc.fixturenames and "zoo_name" not in parametrized:
        metafunc.parametrize("zoo_name", ZOO, scope="session")


settings.register_profile("suite", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("thousand", settings.get_profile("suite"), max_examples=1000)
settings.load_profile("suite")

CaseMaker = Callable[..., Case]
Prescribed = Callable[[str], tuple[Case, Motion]]


@pytest.fixture(scope="session")
def model_case() -> CaseMaker:
    """Makes a case of any MJCF, moved by the sine law."""

    def make(path: Path, *, mode: str = "home", configuration: str = "horizontal", **law: Any) -> Case:
        spec = {"law": "sine", "parameters": law}
        robot = Robot(name=path.stem, folder=path.parent, title="", mjcf=path.name, motion=spec, source="test")  # type: ignore[arg-type]
        return make_case(robot_with_closed_loops(robot), variant="default", mode=mode, configuration=configuration)

    return make


@pytest.fixture(scope="session")
def zoo_case(zoo_name: str, model_case: CaseMaker) -> Case:
    """A mechanism of the zoo, upright."""
    path = MODELS / f"{zoo_name}.xml"
    return model_case(path, configuration="vertical", amplitude=AMPLITUDES.get(zoo_name, 0.1))


@pytest.fixture(scope="session")
def zoo_motion(zoo_case: Case) -> Motion:
    return prescribe(zoo_case)


@pytest.fixture(scope="session")
def prr() -> Case:
    """The 3-PRR, upright, in mode plus."""
    return make_case(load("3prr"), variant="default", mode="plus", configuration="vertical")


@pytest.fixture(scope="session")
def prr_motion(prr: Case) -> Motion:
    return prescribe(prr)


@pytest.fixture
def prescribed(model_case: CaseMaker, tmp_path: Path) -> Prescribed:
    """A case of a model with a motion of few samples; drives on tendons move by 4 mm."""

    def make(text: str) -> tuple[Case, Motion]:
        file = tmp_path / "model.xml"
        file.write_text(text, encoding="utf-8")
        case = model_case(file, amplitude=0.004 if "tendon=" in text else 0.1)
        return case, prescribe(case, dt=0.05)

    return make
