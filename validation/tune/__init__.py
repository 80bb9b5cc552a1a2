"""The cheapest settings of a simulation for an accuracy, proven on held-out motions."""
