"""Training: fits a model to the labels of an image layer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from shared.batch.task_spec import ResourceFile, TaskSpec
from shared.errors import InvalidMessage, Refused
from shared.haste import artifacts, container_log, experiment_config, labels, messages, paths, records, task_spec
from shared.haste.checked_json import validated
from shared.haste.event_files import AT_NODE, AT_UPLOADED, EventFiles, Look
from shared.haste.inference import queue_inference
from shared.haste.jobs import LatestJob
from shared.haste.log_text import entry, timestamp
from shared.haste.status_fields import IN_PROGRESS, MAIN, STATUS_OF_RESULT
from shared.haste.training_inputs import training_inputs
from shared.haste.training_metrics import History, estimate, final_block, final_fields
from shared.haste.workload import Blobs, Change, JsonObject, Shown, TaskFiles
from shared.kinds import Entity, Kind
from shared.protocol.outcome import Outcome, Result, Run, TaskEnd

_EVENT_FILE = "events.out.tfevents"
_ERROR_WORDS = ("error", "failed", "unexpected")


def read_message(fields: JsonObject) -> messages.HasteMessage:
    """What a message on the queue of training asks for. Raises InvalidMessage."""
    model = validated(messages.Model, fields)
    if model.modelType == "embedding":
        # HASTE's API puts the cancel of an embedding on the training queue too
        raise InvalidMessage("modelType: 'embedding' is not handled by this version of haste-worker")
    entity = Entity(Kind.TRAINING, model.projectId, model.modelId)
    return messages.wished(entity, "status", model.status, "trainingJob", model.trainingJob)


def _new_job(run: Run, at: datetime) -> JsonObject:
    """A new TrainingJob, in progress. HASTE keeps its numbers as text."""
    return {
        "trainingjobUid": None,
        "jobId": run.job_id,
        "taskId": run.task_id,
        "modelId": run.entity.entity_id,
        "projectId": run.entity.project_id,
        "status": IN_PROGRESS,
        "trainStartTime": None,
        "completedEpochs": "0",
        "approxMinutesToComplete": "",
        "totalElapsedTime": "",
        "timePerEpoch": "",
        "logs": None,
        "artifactZipJobUid": None,
        "creationDate": timestamp(at),
        "completedDate": None,
        "dependsOn": ["Model", "modelId"],
    }


_JOB = LatestJob("trainingJob", _new_job)


class Training:
    """See `Workload`. The record is the Model; its `trainingJob` names the task."""

    kind = Kind.TRAINING

    def __init__(self, blobs: Blobs, *, image_name: str, isolated: bool = False) -> None:
        """`isolated`: the record names the task's own copy of the labels; HASTE's blob is written at the end."""
        self._blobs = blobs
        self._image_name = image_name
        self._isolated = isolated
        self._event_files = EventFiles()

    def record_name(self, entity: Entity) -> str:
        """Blob name of the Model."""
        return paths.model_record(entity.project_id, entity.entity_id)

    def shown(self, record: JsonObject) -> Shown:
        """Status of the training and its job."""
        return _JOB.shown(record, MAIN.status)

    def check(self, entity: Entity) -> None:
        """Layer, classes, labels, base weights and hyper-parameters are there and make sense."""
        training_inputs(self._blobs, entity)

    def prepare(self, run: Run, resign: Callable[[str], str]) -> TaskSpec:  # noqa: ARG002 (no URL in these files)
        """Labels and config go into two blobs each: HASTE's, and the task's own. Inference reads HASTE's config.

        HASTE's labels are read by nobody: isolated, they wait for the end, and a submission costs a call less.
        """
        inputs = training_inputs(self._blobs, run.entity)
        model_id = run.entity.entity_id
        content = records.dump(labels.geojson(inputs.label_project))
        labels_file = self._write(run, labels.file_name(run.entity), content, for_haste=not self._isolated)
        config = experiment_config.training_config(
            model_id,
            inputs.imagery,
            inputs.classes,
            inputs.parameters,
            labels_path=labels_file.file_path,
            weights_path=inputs.weights.file_path if inputs.weights else None,
        )
        config_file = self._write(
            run, f"experiment_config_{model_id}.yaml", experiment_config.dump(config), for_haste=True
        )
        weights = [inputs.weights] if inputs.weights else []
        return TaskSpec(
            command_line=task_spec.workflow_command(config_file.file_path, "training"),
            image_name=self._image_name,
            resource_files=(labels_file, *inputs.imagery.files, *weights, config_file),
            output_files=task_spec.output_files(run.entity.project_id, run.own_task_id, "**/*", logs=False),
        )

    def submitted(self, run: Run, at: datetime) -> Change:
        """In progress at step 0. An earlier run's output path goes; its checkpoint stays until this run has one."""
        labels_url = self._blobs.reading_url(self._labels_name(run))

        def change(record: JsonObject) -> JsonObject:
            changed = dict(record)
            if not _JOB.has(record, run):
                changed.update(trainDate=timestamp(at), trainingOutputPath=None, labelsUrl=labels_url)
                MAIN.set_step(changed, 0, _max_epochs(record) + 1)
            MAIN.set_status(changed, IN_PROGRESS)
            _JOB.place(changed, run, at)
            MAIN.add_line(changed, f"Training submitted with task id {run.task_id}", at)
            return changed

        return change

    def progress(self, run: Run, files: TaskFiles, at: datetime) -> Change | None:
        """Metrics from the event file; a block of lines for the user whenever another epoch has begun."""
        event_files = [path for path in files.names("wd/logs") if _file_name(path).startswith(_EVENT_FILE)]
        past = self._history(run, event_files, files.read, AT_NODE)
        if past is None:
            return None
        submitted = self.submitted(run, run.placed_at or at)

        def change(record: JsonObject) -> JsonObject:
            changed = submitted(record)
            now = estimate(past, _max_epochs(record))
            changed["trainingJob"].update(trainStartTime=past.start_time, logs=past.logs(), **now.job_fields())
            step = now.completed_epochs + 1
            if step > records.count(changed, MAIN.step):
                MAIN.set_step(changed, step, _max_epochs(record) + 1)
                block = (
                    f"trainStartTime: {past.start_time}",
                    f"epoch: {step}",
                    f"elapsedDurationInMinutes: {now.total_elapsed_minutes or 'n/a'}",
                    f"approxMinutesToComplete: {now.minutes_left or 'calculating...'}",
                )
                MAIN.add_entries(changed, [entry("Training job in progress", at, *block)])
            return changed

        return change

    def noted(self, run: Run, sentence: str, at: datetime) -> Change:  # noqa: ARG002 (the line stands by itself)
        """One more line for the user."""
        return MAIN.noting(sentence, at)

    def outcome(self, run: Run, end: TaskEnd) -> Outcome:
        """Completed only with a checkpoint: inference needs it."""
        return task_spec.judged("Training job", end, lambda: self._fault(run))

    def finished(self, run: Run, outcome: Outcome, *, shown_before: bool = False) -> Change:
        """The end; after success with the final metrics and, if it follows by itself, inference queued.

        Inference is queued only by the change that first shows this run as processed: later ones may find the
        inference itself running or done.
        """
        if self._isolated and run.task_id is not None:
            labels.copy_for_haste(self._blobs, run.entity, self._labels_name(run))
        past = self._final_history(run) if outcome.result is Result.COMPLETED else None
        errors = self._errors(run) if outcome.result is Result.FAILED else []
        return self._end(run, outcome, past, errors, shown_before=shown_before)

    def plain_end(self, run: Run, outcome: Outcome, *, shown_before: bool = False) -> Change:
        """See `PlainlyEnding`."""
        return self._end(run, outcome, None, [], shown_before=shown_before)

    def _end(
        self, run: Run, outcome: Outcome, past: History | None, errors: list[str], *, shown_before: bool
    ) -> Change:
        status = STATUS_OF_RESULT[outcome.result]
        completed = outcome.result is Result.COMPLETED

        def change(record: JsonObject) -> JsonObject:
            changed = dict(record)
            MAIN.set_status(changed, status)
            _JOB.end(changed, run, status, outcome.at)
            job = records.child(changed, _JOB.field)
            if run.task_id is not None:
                changed["trainingOutputPath"] = paths.task_folder(run.entity.project_id, run.task_id)
            if completed and job is not None:
                job.update(final_fields(past, _max_epochs(record)))
                MAIN.set_step(changed, _max_epochs(record) + 1, _max_epochs(record) + 1)
                changed["checkpointPath"] = _checkpoint_path(run)
                lines = final_block(job, _max_epochs(record))
            else:
                lines = errors
            MAIN.add_entries(changed, [entry(outcome.sentence, outcome.at, *lines)])
            if completed and _infers_next(record) and not shown_before and self.shown(record) != self.shown(changed):
                queue_inference(changed, outcome.at)
            return changed

        return change

    def follow_up(self, run: Run, outcome: Outcome) -> Kind | None:
        """Inference, if the user has asked for it."""
        if outcome.result is not Result.COMPLETED:
            return None
        model = records.read(self._blobs, self.record_name(run.entity))
        return Kind.INFERENCE if model is not None and _infers_next(model) else None

    def to_zip(self, run: Run, outcome: Outcome) -> JsonObject | None:
        """The model, after a failure or a cancel that has left something. After success HASTE waits for inference."""
        if outcome.result not in (Result.FAILED, Result.CANCELLED) or not self._left_outputs(run):
            return None
        return artifacts.model_to_zip(self._blobs, run, "trainingOutputPath")

    def _fault(self, run: Run) -> str | None:
        is_there = self._blobs.size_bytes(f"{_checkpoint_path(run)}/last.ckpt") is not None
        return None if is_there else "Training job failed: it left no checkpoint"

    def _labels_name(self, run: Run) -> str:
        """Blob of the labels that this run trains on."""
        if self._isolated and run.task_id is not None:
            return paths.task_input(run.entity.project_id, run.task_id, labels.file_name(run.entity))
        return labels.blob_for_haste(run.entity)

    def _write(self, run: Run, file_name: str, content: bytes, *, for_haste: bool) -> ResourceFile:
        """Write the task's copy, and HASTE's own blob if `for_haste`."""
        if for_haste:
            self._blobs.write(paths.shared_input(run.entity.project_id, file_name), content)
        return task_spec.write_input(
            self._blobs, run.entity.project_id, run.own_task_id, f"inputs/{file_name}", content
        )

    def _left_outputs(self, run: Run) -> bool:
        """The task has run and left something: more than `inputs/`, which is there before it starts."""
        folders = ("", "logs/", "checkpoint/") if run.task_id is not None else ()
        return any(self._blobs.names(f"{_output_path(run)}/{folder}") for folder in folders)

    def _final_history(self, run: Run) -> History | None:
        """From the uploaded event file."""
        folder = f"{_output_path(run)}/logs/model_{run.entity.entity_id}/version_0"
        names = self._blobs.names(f"{folder}/{_EVENT_FILE}")
        return self._history(run, names, self._blobs.read_range, AT_UPLOADED)

    def _history(
        self, run: Run, event_files: list[str], read: Callable[[str, int, int], bytes | None], look: Look
    ) -> History | None:
        """From the newest event file, which keeps its name when it is uploaded."""
        if not event_files:
            return None
        path = max(event_files, key=_file_name)
        return self._event_files.history(run.own_task_id, _file_name(path), partial(read, path), look)

    def _errors(self, run: Run) -> list[str]:
        """The lines of the uploaded log that say what went wrong; the container writes only harmless ones there."""
        content = self._blobs.read(f"{_output_path(run)}/logs/workflow_progress.log") if run.task_id else None
        lines = container_log.parse(content or b"", complete=True)
        return [line.text for line in lines if any(word in line.text.lower() for word in _ERROR_WORDS)]


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _output_path(run: Run) -> str:
    return paths.task_folder(run.entity.project_id, run.own_task_id)


def _checkpoint_path(run: Run) -> str:
    return f"{_output_path(run)}/checkpoint"


def _max_epochs(model: JsonObject) -> int:
    """For showing progress; a training that could not have started has one epoch."""
    try:
        return experiment_config.whole_number(model, "maxEpochs", fallback=1)
    except Refused:
        return 1


def _infers_next(model: JsonObject) -> bool:
    return records.flag(model, "autoRunInference", default=True)
