"""The tests run as commands do."""

from labelwise.base.environment import configure

configure()
