"""Routes of this engine, one file each: the class with the `name` `drake/<file>` is found by its place."""
