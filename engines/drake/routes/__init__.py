"""Routes of this engine, one file each: the class whose `name` is `drake/<file>` is found by its place."""
