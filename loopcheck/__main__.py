"""The command `loopcheck`, and `python -m loopcheck`."""

import atexit
import gc
import os
import signal
import sys

from loopcheck.robots.releases import too_old

BAD_INPUT = 2


def main() -> None:
    """Run the command line; a package older than declared gives one line on stderr and exit status 2."""
    message = too_old()
    if message:
        sys.stderr.write(f"loopcheck: {message}\n")
        sys.exit(BAD_INPUT)
    # as Ctrl-C does: workers are stopped, what they share is released, and the results so far are written
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from loopcheck.validation.execution.forkserver import ONE_THREAD, RARE, abandon

    os.environ.update(ONE_THREAD | os.environ)  # before numpy is imported
    gc.set_threshold(*RARE)
    atexit.register(gc.freeze)  # half a second: at the end, nothing needs a search for cycles
    from loopcheck.validation import cli

    try:
        cli.main()
    except SystemExit as end:
        if end.code == BAD_INPUT:
            abandon()
        raise


if __name__ == "__main__":
    main()
