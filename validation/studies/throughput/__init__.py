"""Many robots in one batch: do they agree, how fast are they, and what does that cost in effort."""
