"""The names that Azure Batch documents for formulas."""

DEDICATED, LOW_PRIORITY, OPTION = "$TargetDedicatedNodes", "$TargetLowPriorityNodes", "$NodeDeallocationOption"

#: Variables that a formula may set, each with the name that counts. A full name wins over its alias.
WRITABLE = {
    DEDICATED: DEDICATED,
    LOW_PRIORITY: LOW_PRIORITY,
    OPTION: OPTION,
    "$TargetDedicated": DEDICATED,
    "$TargetLowPriority": LOW_PRIORITY,
}

#: What the service samples of a pool's tasks.
TASK_METRICS = ("$ActiveTasks", "$RunningTasks", "$PendingTasks", "$SucceededTasks", "$FailedTasks")
#: What it samples of a pool's nodes. These can be used as plain numbers, too: their present value.
NODE_METRICS = (
    "$CurrentDedicatedNodes",
    "$CurrentLowPriorityNodes",
    "$PreemptedNodeCount",
    "$UsableNodeCount",
    "$SampleNodeCount",
    "$TaskSlotsPerNode",
)
#: What it samples of the machines. The emulator's nodes have no such load, so there are never samples of it.
MACHINE_METRICS = tuple(
    f"${name}"
    for name in (
        *("CPUPercent", "WallClockSeconds", "MemoryBytes", "DiskBytes", "DiskReadBytes", "DiskWriteBytes"),
        *("DiskReadOps", "DiskWriteOps", "NetworkInBytes", "NetworkOutBytes"),
    )
)
METRICS = frozenset((*TASK_METRICS, *NODE_METRICS, *MACHINE_METRICS))

OPTIONS = ("requeue", "terminate", "taskcompletion", "retaineddata")

#: Seconds in each named interval. 100 ns are less than the emulator's clock can tell apart.
INTERVALS = {
    "TimeInterval_Zero": 0.0,
    "TimeInterval_100ns": 1e-7,
    "TimeInterval_Microsecond": 1e-6,
    "TimeInterval_Millisecond": 1e-3,
    "TimeInterval_Second": 1.0,
    "TimeInterval_Minute": 60.0,
    "TimeInterval_Hour": 3600.0,
    "TimeInterval_Day": 86400.0,
    "TimeInterval_Week": 7 * 86400.0,
    "TimeInterval_Year": 365 * 86400.0,
}
