"""The tests run as commands do."""

from labelwise.common.environment import prepare

prepare()
