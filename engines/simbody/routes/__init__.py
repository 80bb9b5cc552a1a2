"""Routes of this engine, one file each: the class whose `name` is `simbody/<file>` is found by its place."""
