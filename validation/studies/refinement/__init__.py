"""Orders of convergence: claims with their sources, what is observed, and the numerical uncertainty."""
