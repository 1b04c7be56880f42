"""Errors that Azure Batch answers with: HTTP status and text by code."""

STATUS_AND_TEXT: dict[str, tuple[int, str]] = {
    "NotModified": (304, "The resource has not changed."),
    "InvalidRequestBody": (400, "The request body cannot be read."),
    "InvalidPropertyValue": (400, "A property of the request body has a value that is not allowed."),
    "MissingRequiredProperty": (400, "A required property is missing in the request body."),
    "OutOfRangeInput": (400, "A value is out of range."),
    "OutOfRangePriority": (400, "The priority is out of range."),
    "InvalidQueryParameterValue": (400, "A query parameter has a value that is not allowed."),
    "MissingRequiredQueryParameter": (400, "A required query parameter is missing."),
    "InvalidHeaderValue": (400, "A request header has a value that is not allowed."),
    "TaskDependenciesNotSpecifiedOnJob": (400, "The job does not allow task dependencies."),
    "InvalidAutoScalingSettings": (400, "The auto-scale settings are not allowed."),
    "AutoScalingFormulaSyntaxError": (400, "The auto-scale formula cannot be read."),
    "AutoScalingFormulaTooLong": (400, "The auto-scale formula is too long."),
    "MissingAuthentication": (401, "The request carries no credentials."),
    "AuthenticationFailed": (403, "The request's credentials are not valid."),
    "ResourceNotFound": (404, "There is no such resource."),
    "PoolNotFound": (404, "There is no such pool."),
    "NodeNotFound": (404, "There is no such node."),
    "JobNotFound": (404, "There is no such job."),
    "TaskNotFound": (404, "There is no such task."),
    "FileNotFound": (404, "There is no such file."),
    "UnsupportedHttpVerb": (405, "The resource does not know this verb."),
    "PoolExists": (409, "A pool with this id exists."),
    "PoolBeingDeleted": (409, "The pool is being deleted."),
    "PoolBeingResized": (409, "The pool is being resized."),
    "PoolQuotaReached": (409, "The account has as many pools as it may have."),
    "OperationNotValidOnPool": (409, "The pool is not of the kind that allows this operation."),
    "OperationInvalidForCurrentState": (409, "The resource is in a state that does not allow this operation."),
    "NodeAlreadyInTargetSchedulingState": (409, "The node's scheduling state is this already."),
    "NodeStateUnusable": (409, "The node cannot be used."),
    "NodeBeingCreated": (409, "The node is being created."),
    "NodeBeingStarted": (409, "The node is being started."),
    "NodeBeingRebooted": (409, "The node is being rebooted."),
    "NodeBeingReimaged": (409, "The node is being reimaged."),
    "JobPreparationTaskNotSpecified": (409, "The job has no job preparation task."),
    "JobExists": (409, "A job with this id exists."),
    "JobBeingDeleted": (409, "The job is being deleted."),
    "JobBeingTerminated": (409, "The job is being terminated."),
    "JobCompleted": (409, "The job is completed."),
    "JobDisabled": (409, "The job is disabled."),
    "ActiveJobAndScheduleQuotaReached": (409, "The account has as many active jobs as it may have."),
    "TaskExists": (409, "A task with this id exists in the job."),
    "TaskCompleted": (409, "The task is completed."),
    "TaskNotCompleted": (409, "The task is not completed."),
    "TaskSucceeded": (409, "The task has succeeded."),
    "TaskFilesUnavailable": (409, "The task has no files: it has not run, or its node is gone."),
    "TaskFilesCleanedup": (409, "The task's files are gone: their retention time is over."),
    "ConditionNotMet": (412, "A condition in the request's headers is not met."),
    "RequestBodyTooLarge": (413, "The request body is too large."),
    "InvalidRange": (416, "The range starts behind the end of the file."),
    "TooManyRequests": (429, "Too many requests."),
    "InternalError": (500, "The server met an internal error."),
    "OperationTimedOut": (500, "The operation could not be completed in time."),
    "NotImplementedByEmulator": (501, "Azure Batch can do this; the emulator cannot."),
    "ServerBusy": (503, "The server is busy."),
    "TooManyEnableAutoScaleRequests": (503, "Auto-scale was enabled less than 30 seconds ago."),
}


class BatchError(Exception):
    """A request that Batch refuses. `details` become the `values` of the error body, so they must hold no secret."""

    def __init__(self, code: str, message: str = "", *, status: int = 0, **details: object) -> None:
        known_status, text = STATUS_AND_TEXT.get(code, (status, code))
        super().__init__(message or text)
        self.status = status or known_status
        self.code = code
        self.message = message or text
        self.details = {name: str(value) for name, value in details.items()}
