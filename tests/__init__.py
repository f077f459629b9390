"""The tests run as commands do."""

from labelwise.commands.environment import prepare

prepare()
