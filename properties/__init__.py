"""The laws of merging attention states as properties, with the strategies, calls and checks that they share."""
