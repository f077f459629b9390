"""Benchmarks of F1, speed and memory; README.md lists them."""

from labelwise.base.environment import configure

configure()
