"""How results are shown: blocks, figures, pages, terminal. Knows no study."""
