"""Presentation of results: blocks, figures, pages, terminal; independent of studies."""
