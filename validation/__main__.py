"""`python -m validation` is the command `loopcheck`."""

from validation.cli import main

main()
