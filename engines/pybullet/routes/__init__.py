"""Routes of this engine, one file each: the class whose `name` is `pybullet/<file>` is found by its place."""
