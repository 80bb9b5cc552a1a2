"""The same robots in several versions of MuJoCo, each in an environment of its own: what an upgrade does to them."""
