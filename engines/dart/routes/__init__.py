"""Routes of this engine, one file each: the class whose `name` is `dart/<file>` is found by its place."""
