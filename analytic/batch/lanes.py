"""Tracks the samples of a batch: in a single lane, each in its own, or a long path in many lanes at once.

Every lane of a long path starts from a state that `_starts` finds, so that it keeps the working mode, and must end at
the start of the next lane.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from loopcheck.analytic.batch.plain import MEETING
from loopcheck.analytic.batch.tape import HISTORY
from loopcheck.analytic.batch.tracking import WEIGHTS, Columns, Track
from loopcheck.robots.arrays import AnyArray, Array, JointPositions, PositionSeries
from loopcheck.robots.motion import Drive

AHEAD = 8
"""Samples tried at once in the search for the starts of lanes: the vector length of the largest processors."""
STRIDES = 64
"""Strides at the beginning of the search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equations:
    """The tapes of a mechanism, ready to run on records of samples, see `tracking.Columns`."""

    track: Track
    tolerance: float
    """Largest closure residual, relative to the largest position if above 1 [-]."""
    columns: Columns

    def settle(self, drive: Drive, records: Array) -> None:
        """Track samples each alone, from their own guesses.

        Args:
            drive: Motion of the drives [m or rad, per s, per s²], each of shape (nt, drives).
            records: To be filled in, with a guess [m or rad, N or N m, -], shape (nt, columns).
        """
        self.track(self.tolerance, Drive(*(x[:, None] for x in drive)), records[:, None])

    def follow(self, drive: Drive, records: Array) -> None:
        """Track a path in a single lane, from a guess of its first sample.

        Args:
            drive: Motion of the drives [m or rad, per s, per s²], each of shape (nt, drives).
            records: To be filled in, with a guess [m or rad, N or N m, -], shape (nt, columns).
        """
        self.track(self.tolerance, Drive(*[x[None] for x in drive]), records[None])

    @np.errstate(all="ignore")  # a lane that is lost may hold anything
    def follow_in_lanes(self, drive: Drive, records: Array, span: int) -> None:
        """Track a path in many lanes. If a lane does not end at the start of the next, all later results are invalid.

        Args:
            drive: Motion of the drives [m or rad, per s, per s²], each of shape (nt, drives).
            records: To be filled in, with a guess [m or rad, N or N m, -], shape (nt, columns).
            span: Samples of a lane.
        """
        starts = self._starts(drive, records[0, self.columns.q], span)
        lanes, whole = len(starts), min(len(starts), len(records) // span)
        records[: lanes * span : span, self.columns.q] = starts
        if whole:
            given = Drive(*(_in_lanes(x, whole, span) for x in drive))
            self.track(self.tolerance, given, _in_lanes(records, whole, span))
        if lanes > whole:
            self.follow(Drive(*(x[whole * span :] for x in drive)), records[whole * span :])
        missed = np.flatnonzero(~self._arrivals(drive, starts, span, records[:, self.columns.q]))
        settled = (int(missed[0]) + 1 if missed.size else lanes) * span
        records[settled:, self.columns.marks] = 0

    def _close(self, drive: Drive, samples: AnyArray, guess: PositionSeries) -> tuple[Array, AnyArray]:
        """Close the loops of some samples.

        Args:
            drive: Motion of the drives [m or rad, per s, per s²], each of shape (nt, drives).
            samples: Indices of the samples [-], shape (n,).
            guess: Joint positions near each [m or rad], shape (n, nq).

        Returns:
            Joint positions [m or rad], shape (n, nq), and a mask of the valid samples [-], shape (n,).
        """
        records = np.zeros((len(samples), self.columns.marks.stop))
        records[:, self.columns.q] = guess
        self.settle(Drive(*(x[samples] for x in drive)), records)
        return records[:, self.columns.q], records[:, self.columns.marks.start] != 0

    def _starts(self, drive: Drive, guess: JointPositions, span: int) -> Array:
        """Follow the path in strides as long as Newton's method contracts, to the start of each lane.

        Args:
            drive: Motion of the drives [m or rad, per s, per s²], each of shape (nt, drives).
            guess: Joint positions near the first sample [m or rad], shape (nq,).
            span: Samples of a lane.

        Returns:
            Joint positions at the starts of lanes [m or rad], shape (lanes, nq): of fewer lanes if two samples of the
            path are
            too far apart.
        """
        nt = len(drive.q)
        first, sound = self._close(drive, np.zeros(1, dtype=int), guess[None])
        if not sound[0]:
            return first[:0]
        places, poses = [0], [first[0]]
        stride = max(nt // STRIDES, 1)
        while places[-1] < nt - 1:
            ahead = np.unique(np.minimum(places[-1] + stride * np.arange(1, AHEAD + 1), nt - 1))
            slope = (poses[-1] - poses[-2]) / (places[-1] - places[-2]) if len(places) > 1 else np.zeros_like(first[0])
            closed, sound = self._close(drive, ahead, poses[-1] + np.outer(ahead - places[-1], slope))
            reached = len(ahead) if sound.all() else int(sound.argmin())
            places += ahead[:reached].tolist()
            poses += list(closed[:reached])
            if not reached and stride == 1:
                break
            stride = stride if reached else max(stride // 4, 1)
        starts = np.arange(0, places[-1] + 1, span)
        between = np.stack([np.interp(starts, places, column) for column in np.array(poses).T], axis=1)
        closed, sound = self._close(drive, starts, between)
        return closed if sound.all() else closed[: sound.argmin()]

    def _arrivals(self, drive: Drive, starts: Array, span: int, q: PositionSeries) -> AnyArray:
        """Mask of the lanes that end at the start of the next lane, shape (lanes,); the last lane counts.

        Args:
            drive: Motion of the drives [m or rad, per s, per s²], each of shape (nt, drives).
            starts: Joint positions at the starts of lanes [m or rad], shape (lanes, nq).
            span: Samples of a lane.
            q: Joint positions along the lanes [m or rad], shape (nt, nq).
        """
        ends = span * np.arange(1, len(starts))
        weights = WEIGHTS[min(HISTORY, span), : min(HISTORY, span)]
        before = q[ends - 1 - np.arange(len(weights))[:, None]]
        arrived, sound = self._close(drive, ends, np.tensordot(weights, before, 1))
        met = sound & (np.abs(arrived - starts[1:]) <= MEETING).all(axis=1)
        return np.append(met, True)


def _in_lanes(x: Array, lanes: int, span: int) -> Array:
    """An array of samples (nt, columns) as an array of lanes, shape (lanes, span, columns)."""
    step, side = x.strides
    return as_strided(x, (lanes, span, x.shape[1]), (span * step, step, side))
