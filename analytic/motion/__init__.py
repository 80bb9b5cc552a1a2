"""Motions of a mechanism: laws, recordings and generated motions, carried through the closed loops."""
