"""Recomputation of all figures of the documents from one commit."""
