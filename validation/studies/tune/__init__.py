"""The cheapest settings with which a simulation reaches an accuracy, proven on motions that it has not seen."""
