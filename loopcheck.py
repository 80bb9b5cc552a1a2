"""The command `loopcheck`, and `python -m loopcheck`; `from loopcheck import judge` for logs in notebooks and tests.

The rooms have plain names, `robots` and `validation` among them. A package of the same name on a user's PYTHONPATH must
not be taken for ours, neither here nor in the worker processes, which take this path over.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from validation.studies.judge.library import Judgement, judge

__all__ = ["Judgement", "judge", "main"]


def main() -> None:
    """Run the command line with our own rooms before all others."""
    sys.path.insert(0, str(Path(__file__).parent))
    from validation.execution.forkserver import ONE_THREAD

    os.environ.update(ONE_THREAD | os.environ)  # before numpy is imported
    from validation import cli

    cli.main()


def __getattr__(name: str) -> Any:
    """What other projects import, loaded when it is first asked for, so that the command line answers at once."""
    if name not in ("Judgement", "judge"):
        raise AttributeError(f"module 'loopcheck' has no attribute '{name}'")
    from validation.studies.judge import library

    return getattr(library, name)


if __name__ == "__main__":
    main()
