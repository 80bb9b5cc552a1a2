"""The command `loopcheck`, and `python -m loopcheck`."""

import os


def main() -> None:
    """Run the command line."""
    from loopcheck.validation.execution.forkserver import ONE_THREAD

    os.environ.update(ONE_THREAD | os.environ)  # before numpy is imported
    from loopcheck.validation import cli

    cli.main()


if __name__ == "__main__":
    main()
