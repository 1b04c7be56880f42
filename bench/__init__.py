"""Benchmarks: the worker as it is deployed, on services in this process that answer at once and count what they are
asked. So calls and service time are exact; seconds of computing are reported and never asserted by a test.
"""
