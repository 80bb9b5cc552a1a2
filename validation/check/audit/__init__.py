"""The model in each engine, held against the reference."""
