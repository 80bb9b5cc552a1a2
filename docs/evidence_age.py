"""Print the age of the stored figures: `python -m docs.evidence_age [--release]`.

Exit status 1 if the code has changed since figures were computed, for a release or after 30 days.
"""

import sys

from loopcheck.validation.studies.evidence.age import ages


def main() -> int:
    """Exit status."""
    collections = ages()
    for age in collections:
        print(age.text)  # noqa: T201
    is_release = "--release" in sys.argv
    return int(any(age.is_too_old or (is_release and age.is_stale) for age in collections))


if __name__ == "__main__":
    sys.exit(main())
