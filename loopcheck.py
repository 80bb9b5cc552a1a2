"""The command `loopcheck`, and `python -m loopcheck`.

The rooms have plain names, `robots` and `validation` among them. A package of the same name on a user's PYTHONPATH must
not be taken for ours, neither here nor in the worker processes, which take this path over.
"""

import sys
from pathlib import Path


def main() -> None:
    """Run the command line with our own rooms before all others."""
    sys.path.insert(0, str(Path(__file__).parent))
    from validation import cli

    cli.main()


if __name__ == "__main__":
    main()
