"""Inference: predicts damage on the imagery of a layer with a trained model."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from shared.batch.task_spec import TaskSpec
from shared.errors import Refused
from shared.haste import artifacts, container_log, experiment_config, log_text, messages, paths, records, task_spec
from shared.haste.checked_json import validated
from shared.haste.inference_inputs import config_file_name, inference_inputs
from shared.haste.jobs import JobHistory
from shared.haste.status_fields import IN_PROGRESS, INFERENCE, QUEUED, STATUS_OF_RESULT
from shared.haste.workload import Blobs, Change, JsonObject, Shown, TaskFiles
from shared.kinds import Entity, Kind
from shared.protocol.outcome import Outcome, Result, Run, TaskEnd

_LOG = "logs/workflow_progress.log"


def read_message(fields: JsonObject) -> messages.HasteMessage:
    """What a message on the queue of inference asks for. Raises InvalidMessage."""
    model = validated(messages.Model, fields)
    entity = Entity(Kind.INFERENCE, model.projectId, model.modelId)
    named = [job for job in model.inferenceJobs or [] if job.taskId == model.currentInferenceTaskId]
    job = named[-1] if named else None
    return messages.wished(
        entity, INFERENCE.status, model.inferenceStatus, "inferenceJobs[currentInferenceTaskId]", job
    )


def _new_job(run: Run, at: datetime) -> JsonObject:
    """A new InferenceJob, in progress."""
    return {
        "uid": None,
        "jobId": run.job_id,
        "taskId": run.task_id,
        "modelId": run.entity.entity_id,
        "projectId": run.entity.project_id,
        "status": IN_PROGRESS,
        "creationDate": log_text.timestamp(at),
        "completedDate": None,
        "logs": "",
        "artifactZipJobUid": None,
        "dependsOn": ["Model", "modelId"],
    }


_JOBS = JobHistory("inferenceJobs", "currentInferenceTaskId", _new_job)


class Inference:
    """See `Workload`. The record is the Model; `currentInferenceTaskId` names the task in `inferenceJobs`."""

    kind = Kind.INFERENCE

    def __init__(self, blobs: Blobs, *, image_name: str, gdal_translate_params: str) -> None:
        self._blobs = blobs
        self._image_name = image_name
        self._gdal_translate_params = gdal_translate_params

    def record_name(self, entity: Entity) -> str:
        """Blob name of the Model."""
        return paths.model_record(entity.project_id, entity.entity_id)

    def shown(self, record: JsonObject) -> Shown:
        """Status of the inference and its current job."""
        return _JOBS.shown(record, INFERENCE.status)

    def check(self, entity: Entity) -> None:
        """The model is trained and has a checkpoint, the layer has imagery and footprints."""
        inference_inputs(self._blobs, entity)

    def prepare(self, run: Run, resign: Callable[[str], str]) -> TaskSpec:  # noqa: ARG002 (no URL in this file)
        """The config goes into two blobs: HASTE's, shared with the training, and the task's own."""
        inputs = inference_inputs(self._blobs, run.entity)
        prefix = experiment_config.gpkg_prefix(inputs.model_name or f"model_{run.entity.entity_id}")
        config = experiment_config.inference_config(inputs.trained, inputs.checkpoint.file_path, prefix)
        content = experiment_config.dump(config)
        file_name = config_file_name(run.entity)
        self._blobs.write(paths.shared_input(run.entity.project_id, file_name), content)
        config_file = task_spec.write_input(
            self._blobs, run.entity.project_id, run.own_task_id, f"inputs/{file_name}", content
        )
        return TaskSpec(
            command_line=task_spec.workflow_command(config_file.file_path, "inference"),
            image_name=self._image_name,
            resource_files=(*inputs.imagery.files, inputs.footprints, inputs.checkpoint, config_file),
            output_files=task_spec.output_files(run.entity.project_id, run.own_task_id, "inference/**/*", logs=True),
            environment={"GDAL_TRANSLATE_PARAMS": self._gdal_translate_params},
        )

    def submitted(self, run: Run, at: datetime) -> Change:
        """In progress at step 0, with an entry in `inferenceJobs`; the results of an earlier run are gone."""

        def change(record: JsonObject) -> JsonObject:
            changed = dict(record)
            if not _JOBS.has(record, run):
                changed.update(inferenceOutputPath=None, predictedDamageLayerUrl=None, gpkgUrl=None)
                INFERENCE.set_step(changed, 0)
            _JOBS.place(changed, run, at)
            INFERENCE.set_status(changed, IN_PROGRESS)
            INFERENCE.add_line(changed, f"Inference submitted with task id {run.task_id}", at)
            return changed

        return change

    def progress(self, run: Run, files: TaskFiles, at: datetime) -> Change | None:
        """One step for every new line of the container's log."""
        entries = container_log.entries(files.read(f"wd/{_LOG}"), complete=False)
        if not entries:
            return None
        submitted = self.submitted(run, run.placed_at or at)

        def change(record: JsonObject) -> JsonObject:
            changed = submitted(record)
            INFERENCE.add_steps(changed, entries)
            _JOBS.set_logs(changed, run, changed[INFERENCE.log])
            return changed

        return change

    def noted(self, run: Run, sentence: str, at: datetime) -> Change:  # noqa: ARG002 (the line stands by itself)
        """One more line for the user."""
        return INFERENCE.noting(sentence, at)

    def outcome(self, run: Run, end: TaskEnd) -> Outcome:
        """Completed only with the visualizer raster and the predictions file."""
        return task_spec.judged("Inference job", end, lambda: self._fault(run))

    def finished(self, run: Run, outcome: Outcome, *, shown_before: bool = False) -> Change:  # noqa: ARG002 (nothing follows)
        """The end; after success with the URLs of the results."""
        return self._end(run, outcome, self._results(run, outcome), self._log_entries(run))

    def plain_end(self, run: Run, outcome: Outcome, *, shown_before: bool = False) -> Change:  # noqa: ARG002 (as above)
        """See `PlainlyEnding`."""
        return self._end(run, outcome, {}, [])

    def _end(self, run: Run, outcome: Outcome, results: JsonObject, entries: list[str]) -> Change:
        def change(record: JsonObject) -> JsonObject:
            changed = {**record, **results}
            INFERENCE.set_end(changed, outcome, entries)
            _JOBS.end(changed, run, STATUS_OF_RESULT[outcome.result], outcome.at)
            _JOBS.set_logs(changed, run, changed[INFERENCE.log])
            return changed

        return change

    def follow_up(self, run: Run, outcome: Outcome) -> Kind | None:  # noqa: ARG002 (nothing follows inference)
        """Nothing follows by itself."""
        return None

    def to_zip(self, run: Run, outcome: Outcome) -> JsonObject | None:
        """The model, after success and failure alike; with its results HASTE zips those of the training."""
        if outcome.result not in (Result.COMPLETED, Result.FAILED):
            return None
        return artifacts.model_to_zip(self._blobs, run, "inferenceOutputPath")

    def _fault(self, run: Run) -> str | None:
        names = self._result_names(run)
        is_whole = names is not None and all(self._blobs.size_bytes(name) is not None for name in names)
        return None if is_whole else "Inference job failed: it left no complete results"

    def _results(self, run: Run, outcome: Outcome) -> JsonObject:
        if run.task_id is None or outcome.result is Result.CANCELLED:
            return {}
        results: JsonObject = {"inferenceOutputPath": paths.task_folder(run.entity.project_id, run.task_id)}
        names = self._result_names(run) if outcome.result is Result.COMPLETED else None
        if names is not None:
            visualizer, gpkg = names
            results["predictedDamageLayerUrl"] = self._blobs.reading_url(visualizer)
            results["gpkgUrl"] = self._blobs.reading_url(gpkg)
        return results

    def _result_names(self, run: Run) -> tuple[str, str] | None:
        """Blob names of visualizer and predictions by the config that the task was given; the name of the model may
        have changed since. A task that HASTE's own app has started has no config of its own.
        """
        project_id, file_name = run.entity.project_id, config_file_name(run.entity)
        config = self._config(paths.task_input(project_id, run.own_task_id, file_name))
        config = config or self._config(paths.shared_input(project_id, file_name)) or {}
        mosaic = records.text(records.child(config, "imagery") or {}, "raw_fn").rpartition("/")[2].removesuffix(".tif")
        prefix = records.text(records.child(config, "inference") or {}, "predictions_gpkg_fileprefix")
        if not mosaic or not prefix or "/" in prefix:
            return None
        folder = paths.task_folder(project_id, run.own_task_id)
        return f"{folder}/{mosaic}_visualizer.tif", f"{folder}/{prefix}.gpkg"

    def _config(self, name: str) -> JsonObject | None:
        try:
            return records.read(self._blobs, name)
        except Refused:
            return None

    def _log_entries(self, run: Run) -> list[str]:
        if run.task_id is None:
            return []
        folder = paths.task_folder(run.entity.project_id, run.task_id)
        return container_log.entries(self._blobs.read(f"{folder}/{_LOG}"), complete=True)


def queue_inference(model: JsonObject, at: datetime) -> None:
    """Put the model into the state that HASTE's app gives it when inference follows a training."""
    model[INFERENCE.status] = QUEUED
    model[INFERENCE.log] = log_text.append("", log_text.entry("Queued for inference", at))
    model[INFERENCE.total] = INFERENCE.usual_total
    INFERENCE.set_step(model, 0)
