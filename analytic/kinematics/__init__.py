"""Where things are and how they may move: the tree, the loops that close it, redundancy and mobility."""
