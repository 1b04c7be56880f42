"""The property names of Batch's resources: those that `$select` knows, and those that `$filter` may use."""


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


POOL = _names(
    """
    id displayName url eTag lastModified creationTime state stateTransitionTime allocationState
    allocationStateTransitionTime vmSize virtualMachineConfiguration resizeTimeout resizeErrors
    currentDedicatedNodes currentLowPriorityNodes targetDedicatedNodes targetLowPriorityNodes enableAutoScale
    autoScaleFormula autoScaleEvaluationInterval autoScaleRun enableInterNodeCommunication
    networkConfiguration startTask applicationPackageReferences taskSlotsPerNode taskSchedulingPolicy
    userAccounts metadata stats mountConfiguration identity upgradePolicy
    """
)
POOL_FILTERS = _names(
    """
    id displayName state stateTransitionTime allocationState allocationStateTransitionTime creationTime
    lastModified vmSize enableAutoScale
    """
)
NODE = _names(
    """
    id url state schedulingState stateTransitionTime lastBootTime allocationTime ipAddress ipv6Address
    affinityId vmSize totalTasksRun totalTasksSucceeded runningTasksCount runningTaskSlotsCount recentTasks
    startTask startTaskInfo errors isDedicated endpointConfiguration nodeAgentInfo virtualMachineInfo
    """
)
NODE_FILTERS = _names(
    """
    id state schedulingState stateTransitionTime lastBootTime allocationTime isDedicated
    """
)
JOB = _names(
    """
    id displayName usesTaskDependencies url eTag lastModified creationTime state stateTransitionTime
    previousState previousStateTransitionTime priority allowTaskPreemption maxParallelTasks constraints
    jobManagerTask jobPreparationTask jobReleaseTask commonEnvironmentSettings poolInfo onAllTasksComplete
    onTaskFailure networkConfiguration metadata executionInfo stats
    """
)
JOB_FILTERS = _names(
    """
    id displayName state stateTransitionTime previousState previousStateTransitionTime creationTime
    lastModified priority executionInfo/poolId executionInfo/startTime executionInfo/endTime
    """
)
TASK = _names(
    """
    id displayName url eTag lastModified creationTime exitConditions state stateTransitionTime previousState
    previousStateTransitionTime commandLine containerSettings resourceFiles outputFiles environmentSettings
    affinityInfo constraints requiredSlots userIdentity executionInfo nodeInfo multiInstanceSettings stats
    dependsOn applicationPackageReferences
    """
)
TASK_FILTERS = _names(
    """
    id displayName state stateTransitionTime previousState previousStateTransitionTime creationTime
    lastModified executionInfo/startTime executionInfo/endTime executionInfo/exitCode executionInfo/retryCount
    executionInfo/requeueCount executionInfo/result executionInfo/failureInfo/category
    executionInfo/failureInfo/code nodeInfo/poolId nodeInfo/nodeId
    """
)
FILE = ("name", "url", "isDirectory", "properties")
FILE_FILTERS = ("name",)
NODE_COUNTS = ("poolId", "dedicated", "lowPriority")
NODE_COUNTS_FILTERS = ("poolId",)
