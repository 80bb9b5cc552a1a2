"""Studies: each computes tables over many cases and draws a page and verdicts from them."""
