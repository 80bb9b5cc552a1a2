"""Motion files: the law between the samples and past the ends."""

from pathlib import Path

import numpy as np
import pytest

from analytic.motion.recorded import read_recording
from robots.mechanism import Mechanism, ModelFile
from robots.mjcf import read_mechanism
from robots.motion import Drive
from tests.conftest import MODELS


@pytest.fixture(scope="module")
def four_bar() -> Mechanism:
    return read_mechanism(ModelFile(path=MODELS / "four_bar.xml"))


def law_of(t: np.ndarray, four_bar: Mechanism, folder: Path) -> Drive:
    """At times t, the law of a file of a cubic from 1 s to 2 s: its acceleration changes all the time."""
    samples = np.linspace(1.0, 2.0, 11)
    columns = np.stack([samples, samples**3, 3 * samples**2, 6 * samples], axis=1)
    header = "t,crank.q,crank.qd,crank.qdd"
    np.savetxt(folder / "m.csv", columns, delimiter=",", header=header, comments="", fmt="%.17g")
    return read_recording(folder / "m.csv", four_bar).law(t)


def test_between_the_samples_a_cubic_is_met(four_bar: Mechanism, tmp_path: Path) -> None:
    t = np.linspace(1.0, 2.0, 37)
    for values, exact in zip(law_of(t, four_bar, tmp_path), (t**3, 3 * t**2, 6 * t), strict=True):
        np.testing.assert_allclose(values[:, 0], exact, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("end", [1.0, 2.0])
def test_past_its_ends_the_acceleration_stays_what_it_is_there(four_bar: Mechanism, tmp_path: Path, end: float) -> None:
    ahead = np.array([0.01, 0.1, 0.5]) * (1 if end == 2.0 else -1)
    q, qd, qdd = law_of(end + ahead, four_bar, tmp_path)
    np.testing.assert_allclose(qdd[:, 0], 6 * end, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(qd[:, 0], 3 * end**2 + 6 * end * ahead, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(q[:, 0], end**3 + 3 * end**2 * ahead + 3 * end * ahead**2, rtol=1e-11, atol=1e-11)
