"""Routes of this engine, one file each: the class with the `name` `pybullet/<file>` is found by its place."""
