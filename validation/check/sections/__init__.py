"""The sections of a run's page, a file each: functions of the results alone."""
