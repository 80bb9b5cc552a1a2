"""Routes of this engine, one file each: the class with the `name` `exudyn/<file>` is found by its place."""
