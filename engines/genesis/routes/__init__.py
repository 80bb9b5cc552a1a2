"""Routes of this engine, one file each: the class with the `name` `genesis/<file>` is found by its place."""
