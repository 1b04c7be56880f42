"""The demo: HASTE's three kinds of work run through the worker on this machine, on the pools that infra deploys.

A pool is at its quota, a job waits for capacity, and a training loses its node twice. `python -m local.demo` (or
`make demo`) plays it, checks it from outside, and writes `.local/demo/summary.json`.
"""
