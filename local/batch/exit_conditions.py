"""What a failed task does to its job, when the job has onTaskFailure = performexitoptionsjobaction."""

from local.batch.state import Job, Spec, Task


def job_action(job: Job, task: Task) -> str:
    """none, disable or terminate: by the task's exit conditions; without a matching one Batch terminates the job."""
    reacts = str(job.spec.get("onTaskFailure") or "").lower() == "performexitoptionsjobaction"
    if task.failure is None or not reacts:
        return "none"
    options = _options(task.spec.get("exitConditions") or {}, task.failure.stage, task.exit_code)
    return str(options.get("jobAction") or "terminate").lower()


def _options(conditions: Spec, stage: str, exit_code: int | None) -> Spec:
    if stage == "before" and conditions.get("preProcessingError"):
        return dict(conditions["preProcessingError"])
    if stage == "upload" and conditions.get("fileUploadError"):
        return dict(conditions["fileUploadError"])
    if stage == "program" and exit_code is not None:
        for mapping in conditions.get("exitCodes") or ():
            if mapping["code"] == exit_code:
                return dict(mapping["exitOptions"])
        for mapping in conditions.get("exitCodeRanges") or ():
            if mapping["start"] <= exit_code <= mapping["end"]:
                return dict(mapping["exitOptions"])
    return dict(conditions.get("default") or {})
