"""The tests run as commands do."""

import sys

from labelwise.base.environment import configure

configure()
sys.dont_write_bytecode = False  # pytest keeps what it has made of the tests, which takes it seconds
