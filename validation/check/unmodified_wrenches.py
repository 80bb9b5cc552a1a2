"""Forces in the joints of unmodified simulations, whose pins are soft: judged by the accuracy, as their efforts."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from loopcheck.analytic.logs.closing.closed_log import closed_log
from loopcheck.analytic.logs.logged_wrenches import residual_wrenches, wrench_log
from loopcheck.analytic.motion.assembly import finely_sampled
from loopcheck.analytic.motion.configurations import normal
from loopcheck.robots.efforts import ReadsWrenches, run_of
from loopcheck.robots.log import COMMON, Instantaneous
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.as_is import Settled
from loopcheck.validation.common import sources
from loopcheck.validation.common.wrench_errors import PARTS, wrench_errors

SAMPLES = 400
"""Most judged samples, evenly spread [-]."""


def unmodified_loads(
    case: Case, motion: Motion, source: str, settled: Settled, accuracy: float | None
) -> Iterator[Mapping[str, Any]]:
    """Rows of the table of connections, without the case and the source; none of a route without readings.

    The wrenches that its own motion requires are those of `analytic/noc`; the same samples are judged as of its
    efforts. Errors are relative to the largest required moment or force of the connection.

    Args:
        settled: Errors of its efforts, and the time from which the run is judged.
        accuracy: Largest error that agrees [-]; None if it is not judged.
    """
    route = sources.load(source)
    if not isinstance(route, ReadsWrenches):
        return
    history = route.with_wrenches().compute_efforts(case, finely_sampled(case.mechanism, motion))
    log = run_of(history).log
    closed = closed_log(case.mechanism, log, log.q[0])
    start = log.t[0] + (settled.window if np.isfinite(settled.window) else 0.0)
    wrenches = wrench_log(closed, COMMON, normal(case.mechanism))
    residual, _ = residual_wrenches(closed, wrenches, Instantaneous(), start=start, noiseless=True, most=SAMPLES)
    errors = wrench_errors(wrenches, residual)
    lengths, largest, divisor = errors.lengths(residual.effort), errors.figures["largest"], errors.required.divisor
    for place, (name, k, (verdict, note)) in enumerate(errors.verdicts(accuracy or np.inf)):
        if settled.reason and verdict != "agree":
            verdict, note = "not comparable", settled.reason  # noqa: PLW2901
        elif accuracy is None and verdict in ("agree", "disagree"):
            verdict, note = "informational", ""  # noqa: PLW2901
        figures: dict[str, float] = {}
        for part, column in zip(PARTS, (2 * place, 2 * place + 1), strict=True):
            figures |= {
                part: lengths[:, column].max(),
                f"{part}_t": residual.motion.t[lengths[:, column].argmax()],
                f"{part}_error": largest[column],
            }
        yield {
            "connection": name,
            **figures,
            "error": largest[k] / divisor[k] if divisor[k] else np.nan,
            "tolerance": np.nan if accuracy is None else accuracy,
            "verdict": verdict,
            "note": note,
        }
