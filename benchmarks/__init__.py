"""What measures speed and memory; README.md here has the results, each with its command."""

from labelwise.base.environment import configure

configure()
