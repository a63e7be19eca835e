"""Benchmarks: their files, pure scoring, reports and the published rows."""
