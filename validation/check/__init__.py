"""Do the engines agree with the reference? From a case to its verdicts, tables and page."""
