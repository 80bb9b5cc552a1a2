"""Routes of this engine, one file each: the class with the `name` `mujoco_warp/<file>` is found by its place."""
