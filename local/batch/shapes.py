"""The shapes of Batch's request bodies (REST API 2025-06-01)."""

from local.batch.checking import (
    anything,
    boolean,
    duration,
    duration_between,
    formula_text,
    integer,
    many,
    not_emulated,
    one_of,
    record,
    text,
)

_ID = text(64, r"[A-Za-z0-9_-]+")
_NAME = text(1024)
_COUNT = integer(0, 2**31 - 1)
_RETRIES = integer(-1, 2**31 - 1)
_METADATA = many(record("name value", name=text(), value=text()))
_IDENTITY = record(resourceId=text())
_REGISTRY = record(username=text(), password=text(), registryServer=text(), identityReference=_IDENTITY)
_CONTAINER = record(
    "imageName",
    containerRunOptions=text(),
    imageName=text(),
    registry=_REGISTRY,
    workingDirectory=one_of("taskWorkingDirectory", "containerImageDefault"),
    containerHostBatchBindMounts=many(
        record(
            source=one_of("Shared", "Startup", "VfsMounts", "Task", "JobPrep", "Applications"),
            isReadOnly=boolean,
        )
    ),
)
_RESOURCE_FILE = record(
    autoStorageContainerName=not_emulated,
    storageContainerUrl=text(),
    httpUrl=text(),
    blobPrefix=text(),
    filePath=text(),
    fileMode=text(4, r"[0-7]{3,4}"),
    identityReference=_IDENTITY,
)
_OUTPUT_FILE = record(
    "filePattern destination uploadOptions",
    filePattern=text(),
    destination=record(
        "container",
        container=record(
            "containerUrl",
            path=text(),
            containerUrl=text(),
            identityReference=_IDENTITY,
            uploadHeaders=not_emulated,
        ),
    ),
    uploadOptions=record("uploadCondition", uploadCondition=one_of("tasksuccess", "taskfailure", "taskcompletion")),
)
_ENVIRONMENT = many(record("name", name=text(), value=text()))
_USER = record(
    username=text(),
    autoUser=record(scope=one_of("task", "pool"), elevationLevel=one_of("nonadmin", "admin")),
)
_EXIT_OPTIONS = record(jobAction=one_of("none", "disable", "terminate"), dependencyAction=one_of("satisfy", "block"))
_EXIT_CODE = integer(-(2**31), 2**31 - 1)
_EXIT_CONDITIONS = record(
    exitCodes=many(record("code exitOptions", code=_EXIT_CODE, exitOptions=_EXIT_OPTIONS)),
    exitCodeRanges=many(record("start end exitOptions", start=_EXIT_CODE, end=_EXIT_CODE, exitOptions=_EXIT_OPTIONS)),
    preProcessingError=_EXIT_OPTIONS,
    fileUploadError=_EXIT_OPTIONS,
    default=_EXIT_OPTIONS,
)
_TASK_CONSTRAINTS = record(maxWallClockTime=duration, retentionTime=duration, maxTaskRetryCount=_RETRIES)
_PACKAGES = many(record("applicationId", applicationId=text(), version=text()))

NEW_TASK = record(
    "id commandLine",
    id=_ID,
    displayName=_NAME,
    exitConditions=_EXIT_CONDITIONS,
    commandLine=text(32768),
    containerSettings=_CONTAINER,
    resourceFiles=many(_RESOURCE_FILE),
    outputFiles=many(_OUTPUT_FILE),
    environmentSettings=_ENVIRONMENT,
    affinityInfo=record("affinityId", affinityId=text()),
    constraints=_TASK_CONSTRAINTS,
    requiredSlots=integer(1, 256),
    userIdentity=_USER,
    multiInstanceSettings=not_emulated,
    dependsOn=not_emulated,
    applicationPackageReferences=_PACKAGES,
)
TASK_REPLACEMENT = record(constraints=_TASK_CONSTRAINTS)
TASK_COLLECTION = record("value", value=many(anything, 100))

_JOB_CONSTRAINTS = record(maxWallClockTime=duration, maxTaskRetryCount=_RETRIES)
_POOL_INFO = record("poolId", poolId=_ID, autoPoolSpecification=not_emulated)
_ON_ALL_COMPLETE = one_of("noaction", "terminatejob")
_JOB_NETWORK = record("subnetId", subnetId=text(), skipWithdrawFromVNet=boolean)
_PRIORITY = integer(-1000, 1000, "OutOfRangePriority")
NEW_JOB = record(
    "id poolInfo",
    id=_ID,
    displayName=_NAME,
    usesTaskDependencies=boolean,
    priority=_PRIORITY,
    allowTaskPreemption=boolean,
    maxParallelTasks=_RETRIES,
    constraints=_JOB_CONSTRAINTS,
    jobManagerTask=not_emulated,
    jobPreparationTask=not_emulated,
    jobReleaseTask=not_emulated,
    commonEnvironmentSettings=_ENVIRONMENT,
    poolInfo=_POOL_INFO,
    onAllTasksComplete=_ON_ALL_COMPLETE,
    onTaskFailure=one_of("noaction", "performexitoptionsjobaction"),
    networkConfiguration=_JOB_NETWORK,
    metadata=_METADATA,
)
JOB_PATCH = record(
    priority=_PRIORITY,
    allowTaskPreemption=boolean,
    maxParallelTasks=_RETRIES,
    constraints=_JOB_CONSTRAINTS,
    poolInfo=_POOL_INFO,
    onAllTasksComplete=_ON_ALL_COMPLETE,
    metadata=_METADATA,
    networkConfiguration=_JOB_NETWORK,
)
JOB_REPLACEMENT = record(
    "poolInfo",
    priority=_PRIORITY,
    allowTaskPreemption=boolean,
    maxParallelTasks=_RETRIES,
    constraints=_JOB_CONSTRAINTS,
    poolInfo=_POOL_INFO,
    onAllTasksComplete=_ON_ALL_COMPLETE,
    metadata=_METADATA,
)
JOB_DISABLE = record("disableTasks", disableTasks=one_of("requeue", "terminate", "wait"))
JOB_TERMINATE = record(terminateReason=text())

_MACHINE = record(
    "imageReference nodeAgentSKUId",
    imageReference=record(
        publisher=text(),
        offer=text(),
        sku=text(),
        version=text(),
        virtualMachineImageId=text(),
        sharedGalleryImageId=text(),
        communityGalleryImageId=text(),
    ),
    nodeAgentSKUId=text(),
    windowsConfiguration=record(enableAutomaticUpdates=boolean),
    dataDisks=anything,
    licenseType=text(),
    containerConfiguration=record(
        "type",
        type=one_of("dockerCompatible", "criCompatible"),
        containerImageNames=many(text()),
        containerRegistries=many(_REGISTRY),
    ),
    diskEncryptionConfiguration=anything,
    nodePlacementConfiguration=record(policy=one_of("regional", "zonal")),
    extensions=anything,
    osDisk=anything,
    securityProfile=anything,
    serviceArtifactReference=record("id", id=text()),
)
_INTERVAL = duration_between(300, 168 * 3600)
_START_TASK = record(
    "commandLine",
    commandLine=text(32768),
    containerSettings=_CONTAINER,
    resourceFiles=many(_RESOURCE_FILE),
    environmentSettings=_ENVIRONMENT,
    userIdentity=_USER,
    maxTaskRetryCount=_RETRIES,
    waitForSuccess=boolean,
)
_POOL_PARTS = {
    "displayName": _NAME,
    "vmSize": text(),
    "virtualMachineConfiguration": _MACHINE,
    "enableInterNodeCommunication": boolean,
    "networkConfiguration": anything,
    "startTask": _START_TASK,
    "applicationPackageReferences": _PACKAGES,
    "taskSlotsPerNode": integer(1, 256),
    "taskSchedulingPolicy": record(
        jobDefaultOrder=one_of("none", "creationtime"), nodeFillType=one_of("spread", "pack")
    ),
    "userAccounts": anything,
    "metadata": _METADATA,
    "mountConfiguration": anything,
    "upgradePolicy": anything,
}
NEW_POOL = record(
    "id vmSize",
    id=_ID,
    resizeTimeout=duration,
    targetDedicatedNodes=_COUNT,
    targetLowPriorityNodes=_COUNT,
    enableAutoScale=boolean,
    autoScaleFormula=formula_text,
    autoScaleEvaluationInterval=_INTERVAL,
    **_POOL_PARTS,
)
POOL_PATCH = record(**_POOL_PARTS)
_DEALLOCATION = one_of("requeue", "terminate", "taskcompletion", "retaineddata")
POOL_RESIZE = record(
    targetDedicatedNodes=_COUNT,
    targetLowPriorityNodes=_COUNT,
    resizeTimeout=duration,
    nodeDeallocationOption=_DEALLOCATION,
)
POOL_ENABLE_AUTOSCALE = record(autoScaleFormula=formula_text, autoScaleEvaluationInterval=_INTERVAL)
POOL_EVALUATE_AUTOSCALE = record("autoScaleFormula", autoScaleFormula=formula_text)
POOL_REMOVE_NODES = record(
    "nodeList", nodeList=many(text(), 100), resizeTimeout=duration, nodeDeallocationOption=_DEALLOCATION
)
POOL_PROPERTIES = record(
    "applicationPackageReferences metadata",
    startTask=_START_TASK,
    applicationPackageReferences=_PACKAGES,
    certificateReferences=anything,
    metadata=_METADATA,
    targetNodeCommunicationMode=anything,
)
NODE_ACTIONS = {
    name: record(**{name: _DEALLOCATION}) for name in ("nodeRebootOption", "nodeReimageOption", "nodeDeallocateOption")
}
NODE_DISABLE_SCHEDULING = record(nodeDisableSchedulingOption=one_of("requeue", "terminate", "taskcompletion"))
