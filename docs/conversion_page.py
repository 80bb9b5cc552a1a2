"""Write `docs/conversions/README.md` from its tables: `python -m docs.conversion_page`."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from docs.conversion_tables import FILE, FOLDER, mechanisms
from docs.reader_scores import FILE as READERS
from docs.reader_scores import FLOATING, RIGHT
from loopcheck.validation.convert.conversion import LIMIT
from loopcheck.validation.convert.converting import FLOATS

PAGE = FOLDER / "README.md"
DONE = ("same", "same but for losses")
"""Verdicts of a right conversion."""
UNSCORED = (
    (
        "Isaac Sim's importers",
        "not run: Isaac Sim needs an RTX GPU and packages of NVIDIA's own index",
    ),
    (
        "onshape-to-robot 1.8.3",
        "installed, not scored: it reads a CAD document over Onshape's API, with a key, and no model file. Its exports "
        "are among the public files (`onshape-to-robot-examples-planar-2dof`): MJCF with the loops as equalities; its "
        "URDF and SDF exports have no loops",
    ),
    ("SDF", "no reader here keeps its loops: Pinocchio's wheel has no SDF, Drake 1.51 refuses a link with two parents"),
)
"""Readers without rows, each with the reason."""
WITHOUT_FILES = (
    "`<constraint>` in URDF (urdfdom_headers pull request 108)",
    "solidworks_urdf_exporter2",
    "robonex (Humanoid-Project/robonex-description is public, but was not at hand)",
)
"""Dialects of loops without a file among those tried."""


def main() -> None:
    """Write the page."""
    PAGE.write_text(text(), encoding="utf-8")


def text() -> str:
    """The page, from the tables."""
    run = json.loads((FOLDER / "run.json").read_text(encoding="utf-8"))
    conversions, readers = pd.read_csv(FILE), pd.read_csv(READERS)
    parts = [*_head(run, conversions), *_kinds(conversions), *_failures(conversions), *_scores(readers)]
    return "\n\n".join(parts) + "\n"


def _head(run: dict[str, Any], table: pd.DataFrame) -> Iterator[str]:
    files = table.groupby("model").agg(form=("format", "first"), read=("to", "count"), right=("verdict", _all_done))
    counts = files.groupby("form").agg(
        tried=("read", "size"), read=("read", lambda n: (n > 0).sum()), right=("right", "sum")
    )
    counts.loc["all"] = counts.sum()
    yield "# Public files, converted and proven"
    yield (
        "Each file is converted to MJCF, URDF with a loop file, SDF and USD by `loopcheck convert`, which compares "
        f"both files at 100 random closed states. All rows of both tables are of commit `{run['commit'][:12]}`, with "
        f"{', '.join(f'{name} {version}' for name, version in run['versions'].items())}. No public file is in the "
        "repository: `models/` and the atlas have addresses, commits and hashes."
    )
    yield _table(
        ["format", "files tried", "files read", "converted to all four formats"],
        [[form, *row] for form, row in zip(counts.index, counts.to_numpy().tolist(), strict=True)],
    )
    yield _accuracy(table[table["verdict"].isin(DONE)])
    yield f"Dialects of loops without a file in the table, tested on their examples: {', '.join(WITHOUT_FILES)}."


def _all_done(verdicts: "pd.Series[str]") -> bool:
    return bool(verdicts.isin(DONE).all())


def _accuracy(judged: pd.DataFrame) -> str:
    exact = judged["largest_error"] <= LIMIT
    floats = judged["from_floats"].dropna()
    lost = (judged["verdict"] == DONE[1]).sum()
    return (
        f"{exact.sum()} of the {len(judged)} right conversions have errors of at most {LIMIT:.0e} of the scale in all "
        f"rows, the median is {judged['largest_error'].median():.1e}. The others have up to "
        f"{judged['largest_error'].max():.1e} in informational rows: redundant loops of a rounded file contradict each "
        f"other. From the floats of USD alone, {(floats <= FLOATS).sum()} of {len(floats)} have at most {FLOATS:.0e}; "
        f"the others are at poses near a singularity. {lost} right conversions list elements that the target does not "
        "carry, as rotor inertia in URDF and SDF."
    )


def _kinds(table: pd.DataFrame) -> Iterator[str]:
    rows = []
    for kind in mechanisms():
        found = table[table["model"].isin(kind["models"])].groupby("model", sort=False)
        right = [rows_of for _, rows_of in found if _all_done(rows_of["verdict"])]
        if right:
            first = right[0].iloc[0]
            where = f"[{first['repository']}](https://github.com/{first['repository']}/blob/{first['commit']}/{first['path']})"
            where = where.replace(" ", "%20")
            size = " / ".join(f"{first[name]:.0f}" for name in ("joints", "loops", "motors"))
            rows.append(
                [kind["name"], kind["form"], f"{where} `{first['commit'][:8]}`", first["format"], size, len(right)]
            )
    yield "## Kinds of mechanisms"
    yield f"{len(rows)} kinds, each with a file that converts to all four formats:"
    yield _table(["kind", "form", "file", "format", "joints / loops / motors", "files"], rows)


def _failures(table: pd.DataFrame) -> Iterator[str]:
    wrong = table[~table["verdict"].isin(DONE)]
    groups = wrong.groupby(["model", "verdict", "note"], sort=False)
    rows = [
        [model, verdict, ", ".join(of["to"].dropna()) or "all", str(note).replace("|", "/")]
        for (model, verdict, note), of in groups
    ]
    yield "## Files without a right conversion"
    yield (
        "`differs` is round-off at poses near a singularity. The model that is read back from the MJCF of AmazingHand "
        "equals the input within 4e-16, and the poses amplify this to 2e-5. Since this run, `convert` reads the row of "
        "the engine as informational at such poses, up to its limit over the conditioning."
    )
    yield _table(["file", "verdict", "to", "reason"], rows)


def _scores(readers: pd.DataFrame) -> Iterator[str]:
    yield "## Other readers"
    yield (
        "The efforts of the closed loop from the tree that another reader makes: as it reads the file, and with the "
        "loops of loopcheck added. A converter's output is read back. Errors are relative to the scale of each motor. "
        "A reader is right below 1e-8, a converter below 2e-6, Newton below 1e-4 or a hundred times the rounding of "
        "its numbers to single precision."
    )
    rows = []
    for reader, of in readers[readers["reader"] != "all"].groupby("reader", sort=False):
        scored = of[of["error_as_read"].notna()]
        is_tree = scored["error_with_our_loops"].notna()
        error = scored["error_with_our_loops"].where(is_tree, scored["error_as_read"])
        limit = _limit(str(reader), scored)
        kept = scored["loops_kept"].sum()
        rows.append(
            [
                reader,
                len(of),
                len(scored),
                f"{kept:.0f} of {scored['loops'].sum():.0f}",
                (error <= limit).sum(),
                f"{error.max():.1e}" if len(error) else "",
            ]
        )
    yield _table(["reader", "files", "scored", "loops kept", "right", "largest error"], rows)
    yield "Causes of wrong efforts, found by changing the file until they are right:"
    causes = readers[readers["note"].fillna("").str.startswith("cause")]
    yield _table(
        ["reader", "file", "error", "cause"],
        [
            [r["reader"], r["model"], f"{r['error_with_our_loops']:.1e}", str(r["note"]).removeprefix("cause: ")]
            for r in causes.to_dict("records")
        ],
    )
    yield (
        "- **Bodies with several joints.** Drake gives the pose of the body to the last of its joints alone; the "
        "others turn about the origin of the parent. Newton puts slides before hinges, whatever their order in the "
        "file.\n"
        "- **Gravity.** The readers of MJCF in Newton and Pinocchio keep 9.81 m/s² along -Z.\n"
        "- **Tendons.** Springs of tendons are not read.\n"
        "- **Small inertias.** Newton raises a principal inertia below 1e-6 of the largest, or below 1e-10 kg m², by "
        "1e-6 kg m². Massless frames of a loop in a URDF then have an inertia, and move the efforts."
    )
    yield "Reasons why files are not scored:"
    reasons = readers[readers["error_as_read"].isna()]["note"].fillna("").str.replace(r"['\"/].*|: .*", "", regex=True)
    yield _table(["reason", "rows"], [[str(reason), count] for reason, count in reasons.value_counts().items()])
    yield "Not scored at all:"
    yield _table(["reader", "reason"], UNSCORED)


def _limit(reader: str, scored: pd.DataFrame) -> Any:
    if reader.startswith("Newton"):
        return (FLOATING * scored["of_floats"]).clip(lower=RIGHT["newton"])
    return FLOATS if "converter" in reader else 1e-8


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


if __name__ == "__main__":
    main()
