"""Sweeps: laws held in bulk, millions of rows a second, where properties draw one case at a time.

A sweep asks law 1 of every row that its source makes: `sources` (every gap, every pair, random rows) or `climbing` (the
search for the worst). Rows are judged in float64 on the device that they live on; only those too near the bound go to
mpmath (`judging`). What is found is kept as it is found (`totals`).
"""
