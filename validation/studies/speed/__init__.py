"""How fast the batch is, beside Pinocchio, the plain sources and the engines; every ratio is measured in one run."""
