"""Imagery preparation: turns the imagery of an image layer into mosaics, footprints and a label project."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from shared.batch.task_spec import TaskSpec
from shared.errors import NotThere, Refused
from shared.haste import container_log, messages, paths, records, task_spec
from shared.haste.checked_json import validated
from shared.haste.imagery_manifest import Manifest, layer_fields, read_manifest
from shared.haste.jobs import LatestJob
from shared.haste.label_project import LabelledLayer, TileServer, ensure_label_project
from shared.haste.log_text import timestamp
from shared.haste.raster import outline
from shared.haste.status_fields import IN_PROGRESS, MAIN, STATUS_OF_RESULT
from shared.haste.task_spec import WORKING_DIRECTORY
from shared.haste.workload import Blobs, Change, JsonObject, Shown, TaskFiles
from shared.kinds import Entity, Kind
from shared.protocol.outcome import Outcome, Result, Run, TaskEnd

_LOG = "logs/imagery_friendly.log"


def read_message(fields: JsonObject) -> messages.HasteMessage:
    """What a message on the queue of imagery preparation asks for. Raises InvalidMessage."""
    layer = validated(messages.ImageLayer, fields)
    entity = Entity(Kind.IMAGERYPREP, layer.projectId, layer.imageLayerId)
    return messages.wished(entity, "status", layer.status, "preprocessJob", layer.preprocessJob)


def _new_job(run: Run, at: datetime) -> JsonObject:
    """A new ImageryPreprocessJob, in progress."""
    return {
        "projectId": run.entity.project_id,
        "imageLayerId": run.entity.entity_id,
        "jobId": run.job_id,
        "taskId": run.task_id,
        "status": IN_PROGRESS,
        "logs": None,
        "creationDate": timestamp(at),
        "completedDate": None,
        "dependsOn": ["ImageLayer", "imageLayerId"],
    }


_JOB = LatestJob("preprocessJob", _new_job)


class Imageryprep:
    """See `Workload`. The record is the ImageLayer; its `preprocessJob` names the task."""

    kind = Kind.IMAGERYPREP

    def __init__(self, blobs: Blobs, *, image_name: str, titiler_url: str, tile_size: int) -> None:
        self._blobs = blobs
        self._image_name = image_name
        self._tiles = TileServer(titiler_url, tile_size)

    def record_name(self, entity: Entity) -> str:
        """Blob name of the ImageLayer."""
        return paths.layer_record(entity.project_id, entity.entity_id)

    def shown(self, record: JsonObject) -> Shown:
        """Status of the layer and its job."""
        return _JOB.shown(record, MAIN.status)

    def check(self, entity: Entity) -> None:
        """The layer names post-event imagery."""
        self._config(entity)

    def prepare(self, run: Run, resign: Callable[[str], str]) -> TaskSpec:
        """The config goes into two blobs: HASTE's, as HASTE writes it, and the task's own with fresh credentials."""
        project_id, layer_id = run.entity.project_id, run.entity.entity_id
        config = self._config(run.entity)
        file_name = f"imageryprep_config_{layer_id}.yaml"
        # JSON in spite of the name: the container reads this file with a JSON parser
        self._blobs.write(paths.shared_input(project_id, file_name), records.dump(config))
        own_config = records.dump(_resigned(config, resign))
        config_file = task_spec.write_input(self._blobs, project_id, run.own_task_id, file_name, own_config)
        directory = WORKING_DIRECTORY
        return TaskSpec(
            command_line=f'"mkdir -p {directory} && cd {directory}'
            f' && prepare-imagery --config {directory}/{config_file.file_path}"',
            image_name=self._image_name,
            resource_files=(config_file,),
            output_files=task_spec.output_files(project_id, run.own_task_id, "outputs/*.*", logs=True),
        )

    def submitted(self, run: Run, at: datetime) -> Change:
        """In progress, at step 0."""

        def change(record: JsonObject) -> JsonObject:
            changed = dict(record)
            MAIN.set_status(changed, IN_PROGRESS)
            if not _JOB.has(record, run):
                MAIN.set_step(changed, 0)
            _JOB.place(changed, run, at)
            MAIN.add_line(changed, f"Image preprocessing submitted with task id {run.task_id}", at)
            return changed

        return change

    def progress(self, run: Run, files: TaskFiles, at: datetime) -> Change | None:
        """One step for every new line of the container's log."""
        entries = container_log.entries(files.read(f"wd/{_LOG}"), complete=False, continuations=True)
        if not entries:
            return None
        submitted = self.submitted(run, run.placed_at or at)

        def change(record: JsonObject) -> JsonObject:
            changed = submitted(record)
            MAIN.add_steps(changed, entries)
            return changed

        return change

    def noted(self, run: Run, sentence: str, at: datetime) -> Change:  # noqa: ARG002 (the line stands by itself)
        """One more line for the user."""
        return MAIN.noting(sentence, at)

    def outcome(self, run: Run, end: TaskEnd) -> Outcome:
        """Completed only with a usable manifest, its imagery, normalization values and footprints."""
        return task_spec.judged("Image preprocessing", end, lambda: self._fault(run))

    def finished(self, run: Run, outcome: Outcome, *, shown_before: bool = False) -> Change:  # noqa: ARG002 (nothing follows)
        """The end; after success with the label project. Results are set whenever the manifest is usable."""
        if run.task_id is None:
            return self.plain_end(run, outcome)
        return self._end(run, outcome, self._results(run, outcome), self._log_entries(run))

    def plain_end(self, run: Run, outcome: Outcome, *, shown_before: bool = False) -> Change:  # noqa: ARG002 (as above)
        """See `PlainlyEnding`."""
        return self._end(run, outcome, {}, [])

    def _end(self, run: Run, outcome: Outcome, results: JsonObject, entries: list[str]) -> Change:
        def change(record: JsonObject) -> JsonObject:
            changed = {**record, **results}
            MAIN.set_end(changed, outcome, entries)
            _JOB.end(changed, run, STATUS_OF_RESULT[outcome.result], outcome.at)
            _JOB.set_logs(changed, run, changed[MAIN.log])
            return changed

        return change

    def follow_up(self, run: Run, outcome: Outcome) -> Kind | None:  # noqa: ARG002 (nothing follows imagery)
        """Nothing follows by itself."""
        return None

    def to_zip(self, run: Run, outcome: Outcome) -> JsonObject | None:  # noqa: ARG002 (HASTE zips models only)
        """Nothing is zipped."""
        return None

    def _config(self, entity: Entity) -> JsonObject:
        """The container's config with HASTE's own URLs."""
        name = self.record_name(entity)
        layer = records.read(self._blobs, name)
        if layer is None:
            raise NotThere(name)
        post_event_urls = _urls(layer, "postEventImageryUrls")
        if not post_event_urls:
            raise Refused("The image layer names no post-event imagery (postEventImageryUrls).")
        return {
            "project_id": entity.project_id,
            "image_layer_id": entity.entity_id,
            "pre_event_imagery_urls": _urls(layer, "preEventImageryUrls"),
            "post_event_imagery_urls": post_event_urls,
            "source_type_pre_event": layer.get("sourceTypePreEvent"),
            "source_type_post_event": layer.get("sourceTypePostEvent"),
            "fine_tune": records.flag(layer, "autoFineTune", default=False),
            "user_building_footprints_url": layer.get("userBuildingFootprintsUrl"),
            "clip_bbox": layer.get("clipBbox"),
        }

    def _fault(self, run: Run) -> str | None:
        """Why a task that succeeded has no usable result; None if it has."""
        manifest = read_manifest(self._blobs, run.entity, run.own_task_id)
        if manifest is None:
            return "Image preprocessing failed: it left no usable list of its results."
        if not self._has_imagery(run, manifest):
            return "Image preprocessing failed: it left no post-event imagery."
        if not manifest.means or len(manifest.means) != len(manifest.stds) or min(manifest.stds) <= 0:
            return "Image preprocessing failed: it found no normalization values in the post-event imagery."
        if manifest.footprints_error:
            return f"Building footprints unavailable — {manifest.footprints_error}"
        if outline(self._blobs, self._result(run, manifest.post_event_processed)) is None:
            return "Image preprocessing failed: the processed post-event imagery has no position on the map."
        return None

    def _has_imagery(self, run: Run, manifest: Manifest) -> bool:
        names = (manifest.post_event_mosaic, manifest.post_event_processed)
        return all(name and self._blobs.size_bytes(self._result(run, name)) is not None for name in names)

    def _results(self, run: Run, outcome: Outcome) -> JsonObject:
        """Fields that follow from the manifest, and from the label project after success."""
        if outcome.result is Result.CANCELLED:
            return {}
        manifest = read_manifest(self._blobs, run.entity, run.own_task_id)
        fields = layer_fields(self._blobs, run.entity, run.own_task_id, manifest) if manifest else {}
        if outcome.result is Result.FAILED:
            return {**fields, "labelsUrl": None}
        corners = outline(self._blobs, self._result(run, manifest.post_event_processed)) if manifest else None
        layer = records.read(self._blobs, self.record_name(run.entity))
        if corners is None or layer is None:
            return fields  # deleted since: nothing may be made again
        label_project_id, labels_url = ensure_label_project(
            self._blobs,
            self._tiles,
            LabelledLayer(
                run.entity.project_id,
                run.entity.entity_id,
                records.text(layer, "name"),
                post_event_url=fields["postEventProcessedImageryUrl"],
                pre_event_url=fields["preEventProcessedImageryUrl"],
                outline=corners,
            ),
            run.request_id,
            outcome.at,
        )
        return {**fields, "labelProjectId": label_project_id, "labelsUrl": labels_url}

    def _result(self, run: Run, file_name: str) -> str:
        return f"{paths.task_folder(run.entity.project_id, run.own_task_id)}/{file_name}"

    def _log_entries(self, run: Run) -> list[str]:
        return container_log.entries(self._blobs.read(self._result(run, _LOG)), complete=True, continuations=True)


def _urls(layer: JsonObject, field: str) -> list[str] | None:
    urls = layer.get(field)
    if urls is None:
        return None
    if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
        raise Refused(f"The image layer's {field} is not a list of addresses.")
    return urls


def _resigned(config: JsonObject, resign: Callable[[str], str]) -> JsonObject:
    """The config with fresh credentials in every URL that the container reads from."""
    changed = dict(config)
    for key in ("pre_event_imagery_urls", "post_event_imagery_urls"):
        if config[key] is not None:
            changed[key] = [resign(url) for url in config[key]]
    if config["user_building_footprints_url"]:
        changed["user_building_footprints_url"] = resign(config["user_building_footprints_url"])
    return changed
