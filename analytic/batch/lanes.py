"""Tracks the samples of a batch: each alone, or those of a path in lanes.

Every lane starts from a pose that `Equations._starts` finds along the path, so that it keeps the working mode, and must
end at the start of the next lane.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from loopcheck.analytic.batch.plain import MEETING
from loopcheck.analytic.batch.tracking import Columns, Track
from loopcheck.robots.arrays import AnyArray, Array, JointPositions, PositionSeries
from loopcheck.robots.motion import Drive

PLACES = 16
"""Samples of a lane in which cells are looked for at first [-]: all are, if two of them are in cells apart."""

AT_ONCE = 4096
"""Ways that are followed at once [-], for the sake of memory."""


CELLS = 128
"""Cells of a turn of a drive, or of 2π lengths of a mechanism [-]: a step from one to the next crosses no singularity
unseen, see `tracking.CONTRACTION`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equations:
    """The tapes of a mechanism, ready to run on records of samples, see `tracking.Columns`."""

    track: Track
    tolerance: float
    """Largest closure residual, relative to the largest position if above 1 [-]."""
    columns: Columns
    lengths: Array
    """Length of the mechanism for drives that slide, 1 for those that turn [m or -], shape (drives,)."""
    turning: AnyArray
    """Mask of the drives that whole turns do not change [-], shape (drives,)."""
    hinges: AnyArray
    """Mask of the joint positions that whole turns do not change [-], shape (nq,)."""
    quaternions: tuple[slice, ...]
    """Joint positions that are quaternions, which a change of all signs does not change."""

    def settle(self, drive: Drive, records: Array) -> None:
        """Track samples each alone, from their own guesses.

        Args:
            drive: Motion of the drives [m or rad, per s, per s²], each of shape (nt, drives).
            records: To be filled in, with a guess [m or rad, N or N m, -], shape (nt, columns).
        """
        self.track(self.tolerance, Drive(*(x[:, None] for x in drive)), records[:, None])

    def follow(self, drive: Drive, records: Array, span: int) -> None:
        """Track a path in lanes; what they lose is left to the plain version, which knows singularities.

        Args:
            drive: Motion of the drives [m or rad, per s, per s²], each of shape (nt, drives).
            records: To be filled in, with a guess of the first sample [m or rad, N or N m, -], shape (nt, columns).
            span: Samples of a lane.
        """
        if span < len(records):
            self._follow(drive, records, span)
        else:
            self._follow_lane(drive, records)

    def _follow_lane(self, drive: Drive, records: Array) -> None:
        """Track a path in a single lane."""
        self.track(self.tolerance, Drive(*[x[None] for x in drive]), records[None])

    @np.errstate(all="ignore")  # a lane that is lost may hold anything
    def _follow(self, drive: Drive, records: Array, span: int) -> None:
        """Track the lanes of a path; the marks of all samples behind the first that does not meet are 0.

        Args:
            drive: Motion of the drives [m or rad, per s, per s²], each of shape (nt, drives).
            records: As of `follow`.
            span: Samples of a lane.
        """
        nt, q = len(records), records[:, self.columns.q]
        starts = self._starts(drive.q, q[0], span)
        lanes, whole = len(starts), min(len(starts), nt // span)
        q[: lanes * span : span] = starts
        if whole:
            self.track(
                self.tolerance, Drive(*(_in_lanes(x, whole, span) for x in drive)), _in_lanes(records, whole, span)
            )
        if lanes > whole:
            rest = slice(whole * span, None)
            self._follow_lane(Drive(*(x[rest] for x in drive)), records[rest])
        ends = span * np.arange(1, lanes)
        arrived, states = self._moved(drive.q[ends], q[ends - 1])
        missed = np.flatnonzero((states == 0) | (np.abs(arrived - starts[1:]) > MEETING).any(axis=1))
        met = min((int(missed[0]) + 1 if missed.size else lanes) * span, nt)
        records[met:, self.columns.marks] = 0

    def _close(self, driven: Array, guess: PositionSeries) -> tuple[Array, Array]:
        """Close the loops at the ends of lanes at rest.

        Args:
            driven: Positions of the drives [m or rad], shape (n, samples, drives).
            guess: Joint positions near the first samples [m or rad], shape (n, nq).

        Returns:
            Joint positions [m or rad], shape (n, nq), and states, see `tracking.track`, shape (n,).
        """
        rest, records = np.zeros_like(driven), np.zeros((*driven.shape[:2], self.columns.marks.stop))
        records[:, 0, self.columns.q] = guess
        self.track(self.tolerance, Drive(driven, rest, rest), records)
        return records[:, -1, self.columns.q], records[:, -1, self.columns.marks.start]

    def _moved(self, to: Array, poses: PositionSeries) -> tuple[Array, Array]:
        """Move the drives of poses by Newton's method.

        Args:
            to: Positions to move them to, or whole turns away [m or rad], shape (n, drives).
            poses: Joint positions with closed loops [m or rad], shape (n, nq).

        Returns:
            As from `_close`.
        """
        moved, states = np.empty_like(poses), np.zeros(len(poses))
        for some in np.split(np.arange(len(poses)), range(AT_ONCE, len(poses), AT_ONCE)):
            moved[some], states[some] = self._close(to[some, None], poses[some])
        return moved, states

    def _starts(self, driven: Array, guess: JointPositions, span: int) -> Array:
        """Joint positions at the starts of lanes, from poses in cells of the space of the drives.

        A path of many turns returns to its cells: each takes a single search, from a cell beside it on the path.

        Args:
            driven: Positions of the drives [m or rad], shape (nt, drives).
            guess: Joint positions near the first sample.
            span: Samples of a lane.

        Returns:
            Joint positions [m or rad], shape (lanes, nq); anything if two samples of the path are too far apart.
        """
        for every in (max(span // PLACES, 1), 1):
            cells = np.floor(driven[::every] * (CELLS / (2 * np.pi * self.lengths)))
            steps = np.diff(cells, axis=0)
            if np.abs(steps).max(initial=0.0) <= 1:
                break
        changes = np.flatnonzero(steps) // len(self.lengths)  # faster than `any` along the drives
        entries = np.unique(np.append(0, changes + 1))
        cells = cells[entries]
        cells[:, self.turning] %= CELLS
        entries *= every
        _, first, visited = np.unique(cells, axis=0, return_index=True, return_inverse=True)
        visited = visited.ravel()  # NumPy 2.0 keeps the axis
        centers = driven[entries[first]]
        path = self._poses(centers, visited, guess)[visited]
        path[:, self.hinges] = np.unwrap(path[:, self.hinges], axis=0)
        for place in self.quaternions:
            turned = np.vecdot(path[1:, place], path[:-1, place]) < 0
            path[1:, place] *= 1.0 - 2.0 * (np.cumsum(turned)[:, None] % 2)
        samples = np.arange(0, len(driven), span)
        entry = np.searchsorted(entries, samples, side="right") - 1
        return self._moved(driven[samples], path[entry])[0]

    def _poses(self, centers: Array, visited: AnyArray, guess: JointPositions) -> Array:
        """A pose in each cell, from that in a cell just before or after it on the path.

        Args:
            centers: Positions of the drives in each cell [m or rad], shape (cells, drives).
            visited: Cells along the path [-], shape (n,).
            guess: Joint positions near those in the first of them.

        Returns:
            Joint positions [m or rad], shape (cells, nq).
        """
        n, first = len(centers), visited[:1]
        poses, states = np.tile(guess, (n, 1)), np.zeros(n)
        poses[first], states[first] = self._close(centers[first, None], guess[None])
        sides = csr_array((np.ones(len(visited) - 1), (visited[:-1], visited[1:])), shape=(n, n))
        far, beside = dijkstra(sides, directed=False, unweighted=True, indices=first[0], return_predecessors=True)
        order = np.argsort(far, kind="stable")
        for cells in np.split(order, np.flatnonzero(np.diff(far[order])) + 1)[1:]:
            left = cells[states[beside[cells]] != 0]
            before = beside[left]
            poses[left], states[left] = self._moved(centers[left], poses[before])
        return poses


def _in_lanes(x: Array, lanes: int, span: int) -> Array:
    """An array of samples (nt, columns) as an array of lanes, shape (lanes, span, columns)."""
    step, side = x.strides
    return as_strided(x, (lanes, span, x.shape[1]), (span * step, step, side))
