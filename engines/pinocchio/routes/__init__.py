"""Routes of this engine, one file each: the class whose `name` is `pinocchio/<file>` is found by its place."""
