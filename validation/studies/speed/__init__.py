"""Speed of the batch compared with Pinocchio, the plain sources and the engines; each ratio is measured in one run."""
