"""Routes of this engine, one file each: the class whose `name` is `mujoco_warp/<file>` is found by its place."""
