"""The same robots in several versions of an engine, each in an environment of its own: what an upgrade does to them."""
