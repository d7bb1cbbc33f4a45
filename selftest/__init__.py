"""Who judges the judge: the oracles, the strategies, the mutants, and that nothing is left untested."""
