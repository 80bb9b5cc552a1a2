"""Positions and possible motions: the tree, the loops that close it, redundancy and mobility."""
