"""Many robots in one batch: agreement of the worlds, throughput, and effort error."""
