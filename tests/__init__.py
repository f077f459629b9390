"""The tests run as commands do."""

from labelwise.environment import prepare

prepare()
