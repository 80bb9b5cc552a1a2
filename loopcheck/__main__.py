"""The command `loopcheck`, and `python -m loopcheck`."""

import os
import signal


def main() -> None:
    """Run the command line."""
    # as Ctrl-C does: workers are stopped, what they share is released, and the results so far are written
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from loopcheck.validation.execution.forkserver import ONE_THREAD

    os.environ.update(ONE_THREAD | os.environ)  # before numpy is imported
    from loopcheck.validation import cli

    cli.main()


if __name__ == "__main__":
    main()
