"""Formulas for pools of spot nodes: the one that HASTE's pools have, and one without its mistakes."""


def on_active_tasks(maximum: int, minimum: int = 0) -> str:
    """As HASTE's pools scale: on the tasks that wait, seen through 15 minutes."""
    return f"""
        // below 70 % of the samples the newest one has to do
        window  = 15 * TimeInterval_Minute;
        seen    = $ActiveTasks.GetSamplePercent(window);
        waiting = seen < 70
            ? max(0, $ActiveTasks.GetSample(1))
            : max($ActiveTasks.GetSample(1), avg($ActiveTasks.GetSample(window)));
        $TargetLowPriorityNodes = max({minimum}, min({maximum}, waiting));
        $TargetDedicatedNodes = 0;
        $NodeDeallocationOption = taskcompletion;
    """


def on_pending_tasks(maximum: int, minimum: int = 0) -> str:
    """The corrected one: tasks that run count, slots count, lost nodes hold no place, no samples change nothing."""
    return f"""
        floor = {minimum}; cap = {maximum}; window = 5 * TimeInterval_Minute;
        seen   = $PendingTasks.GetSamplePercent(window);
        newest = seen < 1 ? 0 : max(0, $PendingTasks.GetSample(1));
        tasks  = seen < 60 ? newest : max(newest, avg($PendingTasks.GetSample(window)));
        nodes  = (tasks + $TaskSlotsPerNode - 0.01) / $TaskSlotsPerNode;
        pseen  = $PreemptedNodeCount.GetSamplePercent(window);
        lost   = (pseen < 1 || nodes < 1) ? 0 : max(0, $PreemptedNodeCount.GetSample(1));
        $TargetLowPriorityNodes = seen < 1
            ? min(cap, max(floor, $TargetLowPriorityNodes)) : max(floor, min(cap, nodes + lost));
        $TargetDedicatedNodes = 0;
        $NodeDeallocationOption = taskcompletion;
    """
