"""Questions asked of many cases: each study says what is computed, and what its tables, page and verdicts are."""
