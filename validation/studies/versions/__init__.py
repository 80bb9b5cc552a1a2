"""The same robots in several versions of an engine, each in its own environment: effects of an upgrade."""
