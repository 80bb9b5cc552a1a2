"""Routes of this engine, one file each: the class with the `name` `dart/<file>` is found by its place."""
