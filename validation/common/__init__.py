"""What all commands share: names of sources, tables and limits, verdicts."""
