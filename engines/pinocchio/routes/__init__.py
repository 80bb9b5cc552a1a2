"""Routes of this engine, one file each: the class with the `name` `pinocchio/<file>` is found by its place."""
