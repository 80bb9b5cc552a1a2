"""Routes of this engine, one file each: the class with the `name` `simbody/<file>` is found by its place."""
