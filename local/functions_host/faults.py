"""Why the host refuses to start."""

from collections.abc import Sequence


class HostFaults(Exception):
    """The app, its settings or its host.json cannot be hosted; `faults` holds one sentence for each reason."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)
