"""A stack for programs that are not asynchronous: tests, the demo, benchmarks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from local.stack.stack import Stack, StackOptions


class BlockingStack:
    """A started stack whose operations wait. `stack` holds everything there is to read."""

    def __init__(self, stack: Stack, runner: asyncio.Runner) -> None:
        self.stack = stack
        self._runner = runner

    def kill_host(self, index: int) -> None:
        """See `Stack.kill_host`."""
        self._runner.run(self.stack.kill_host(index))

    def restart_host(self, index: int) -> None:
        """See `Stack.restart_host`."""
        self._runner.run(self.stack.restart_host(index))


@contextlib.contextmanager
def running_stack(options: StackOptions) -> Iterator[BlockingStack]:
    """Start a stack, and stop it when the block ends. Not for use inside a running event loop."""
    stack = Stack(options)
    with asyncio.Runner() as runner:
        runner.run(stack.start())
        try:
            yield BlockingStack(stack, runner)
        finally:
            runner.run(stack.stop())
