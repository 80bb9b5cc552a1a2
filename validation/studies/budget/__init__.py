"""Parts of the error of unmodified simulations."""
