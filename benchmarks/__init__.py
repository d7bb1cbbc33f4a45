"""Measurements: accuracy, speed, and how other test styles fare. Nothing here asserts on time."""
