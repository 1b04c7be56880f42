"""Benchmarks: ratios of things measured side by side in one run. Seconds are printed, never asserted."""
