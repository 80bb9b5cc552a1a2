"""Pages of the published transmissions: one table of all, and a page each with figures, factors and efforts by pose."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure

from docs.kept_tables import ROOT
from docs.transmission_tables import FILE, domain_of
from loopcheck.analytic.transmission.bounds import Domain
from loopcheck.robots.transmission import Transmission, load_transmission
from loopcheck.validation.report.figures import COLORS, as_svg
from loopcheck.validation.serial.report import TRANSMISSION as EXPLANATION
from loopcheck.validation.serial.rows.rows import WAYS
from loopcheck.validation.serial.rows.transmission_rows import BEST, BEST_ERROR, FACTOR, GIVEN_ERROR, NO_ERROR

POINTS = 121
"""Of a map along each joint."""
LEVELS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TransmissionEntry:
    """A published transmission and its computed figures."""

    transmission: Transmission
    rows: pd.DataFrame

    @property
    def name(self) -> str:
        """Name of its file."""
        return self.transmission.name

    @property
    def address(self) -> str:
        """Address of its source."""
        source = self.transmission.source
        return f"https://github.com/{source.repository}/blob/{source.commit}/{source.path}"

    @property
    def joints(self) -> Iterator[Mapping[str, Any]]:
        """Figures of each joint for the table of all."""
        for joint in self.transmission.joint_names:
            own = self.rows[self.rows["part"] == joint].set_index("quantity")
            safe = own.loc["effort limit, all together"]
            yield {
                "name": joint,
                "factor": own.loc[FACTOR],
                "best": own.loc[BEST, "median"],
                "limit": safe["bound"],
                "unit": safe["unit"],
            }

    @property
    def rotor_errors(self) -> Sequence[float | None]:
        """Errors of the rotors' efforts without armature, with the public factor, and with the best constant [-]."""
        high = {row["quantity"]: row["high"] for row in self.rows.to_dict("records")}
        return [high.get(kind) for kind in (NO_ERROR, GIVEN_ERROR, BEST_ERROR)]

    @property
    def effects(self) -> Iterator[tuple[str, float, float, str]]:
        """Serial models with the constants of each format: mean and largest error, and kinds of constants."""
        of_kind = {row["quantity"]: row for row in self.rows.to_dict("records")}
        for way, words in WAYS.items():
            if row := of_kind.get(f"effort error, {way}"):
                yield words, row["median"], row["high"], row["note"]


def transmission_entries(root: Path) -> list[TransmissionEntry]:
    """Published transmissions with stored figures.

    Args:
        root: Folder of the sources; without figures there are no entries.
    """
    path = root / FILE.relative_to(ROOT)
    if not path.is_file():
        return []
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    table[["part", "note"]] = table[["part", "note"]].fillna("")
    names = table["transmission"].unique()
    return [
        TransmissionEntry(transmission=load_transmission(name), rows=table[table["transmission"] == name])
        for name in names
    ]


def context(entry: TransmissionEntry) -> Mapping[str, Any]:
    """Data of the page of a transmission.

    Args:
        entry: The transmission.
    """
    rows: Sequence[Any] = entry.rows.to_dict("records")
    return {"entry": entry, "rows": rows, "root": "../../../", "explanation": EXPLANATION}


@as_svg
def factor_map(name: str) -> Figure | None:
    """Armature factor of each joint over the pose, and of two joints the efforts that the motors can exert.

    Args:
        name: Of a transmission.
    """
    domain = domain_of(name)
    joints = domain.transmission.joints
    has_polygons = len(joints) == 2
    number = len(joints) + has_polygons
    figure = Figure(figsize=(4.6 * number + 0.8 * has_polygons, 3.4), layout="constrained")
    panels = figure.subplots(1, number, squeeze=False)[0]
    if has_polygons:
        _draw_efforts(panels[-1], domain, load_transmission(name))
    labels = [f"{joint.name} [{'m' if joint.slides else 'rad'}]" for joint in joints]
    axes_of = [np.linspace(low, high, POINTS) for low, high in zip(domain.low, domain.high, strict=True)]
    for k, axes in enumerate(panels[: len(joints)]):
        factors = _factors(domain, axes_of, k)
        if len(joints) == 1:
            axes.plot(axes_of[0], factors, color=COLORS[0])
            axes.set(xlabel=labels[0], ylabel="armature factor [-]")
            continue
        shown = factors.reshape([POINTS] * len(joints))
        while shown.ndim > 2:  # of three joints, the third in its middle
            shown = shown[..., POINTS // 2]
        levels = np.unique(np.round(np.nanquantile(shown, np.linspace(0, 0.98, LEVELS)), 2))
        norm = BoundaryNorm(levels, ncolors=256, extend="both")
        look = {"levels": levels, "cmap": "cividis", "norm": norm, "extend": "both"}
        filled = axes.contourf(axes_of[0], axes_of[1], shown.T, **look)
        figure.colorbar(filled, ax=axes, label="armature factor [-]", spacing="uniform", ticks=levels[::2])
        axes.plot(0, 0, "+", color="white", markersize=9)
        axes.set(title=joints[k].name, xlabel=labels[0], ylabel=labels[1])
        axes.grid(visible=False)
    return figure


def _draw_efforts(axes: Any, domain: Domain, transmission: Transmission) -> None:
    """Joint efforts that motors within their limits can exert, at zero and far from it."""
    limits = [leg.effort_limit for leg in transmission.leg]
    most = [limit or 1.0 for limit in limits] if all(limits) else [1.0] * len(limits)
    unit = "N m" if all(limits) else "N m per N m of the motors"
    box = domain.inner_box()
    poses = np.array([np.zeros(2), *(np.array([x, y]) for x in box[0] for y in box[1])])
    polygons = domain.transmission.effort_corners(poses, most)
    for k, (pose, corners) in enumerate(zip(poses, polygons, strict=True)):
        closed = np.vstack([corners, corners[:1]])
        label = ", ".join(f"{value:.2g}" for value in pose)
        axes.plot(*closed.T, color=COLORS[k % len(COLORS)], linewidth=2.2 if k == 0 else 1.2, label=label)
    names = [joint.name for joint in domain.transmission.joints]
    axes.set(title="joint efforts within the motors' limits")
    axes.set(xlabel=f"{names[0]} [{unit}]", ylabel=f"{names[1]} [{unit}]")
    beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False}
    axes.legend(title=f"{names[0]},\n{names[1]} [rad]", fontsize="x-small", title_fontsize="x-small", **beside)


def _factors(domain: Domain, axes_of: Sequence[Any], k: int) -> Any:
    x = np.stack(np.meshgrid(*axes_of, indexing="ij"), axis=-1).reshape(-1, len(axes_of))
    factors = (domain.transmission.motor_state(x).transmission[..., k] ** 2).sum(axis=-1)
    return np.where(domain.contains(x), factors, np.nan)
