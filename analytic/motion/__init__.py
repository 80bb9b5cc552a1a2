"""What is asked of a mechanism: laws, recordings and motions of our own, carried through the closed loops."""
