"""The demo: HASTE's three kinds of work run through the worker on this machine, and a training loses its node.

`python -m local.demo` (or `make demo`) plays it, checks it from outside, and writes `.local/demo/summary.json`.
"""
