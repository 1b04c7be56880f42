"""Bicep templates of the worker and of the pools, and their check."""
