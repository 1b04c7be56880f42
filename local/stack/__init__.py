"""Starts, checks and stops everything that the worker needs, on one machine.

`async with Stack(StackOptions(run_folder, app_folder)) as stack:` or `with running_stack(options) as running:`;
`python -m local.stack up` for people.
"""

from local.stack.blocking import BlockingStack, running_stack
from local.stack.stack import Host, Stack, StackOptions
from local.stack.supervisor import StackError

__all__ = ["BlockingStack", "Host", "Stack", "StackError", "StackOptions", "running_stack"]
