"""Commands that are no studies, a file each: its `command`."""
