"""Routes of this engine, one file each: the class whose `name` is `exudyn/<file>` is found by its place."""
