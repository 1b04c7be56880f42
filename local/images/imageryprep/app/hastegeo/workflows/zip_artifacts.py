"""zip_artifacts: packs the downloaded outputs of a model's training and inference tasks into two zip files.

INPUT_DIR holds one folder per task; ``trn-*`` folders go to OUTPUT_TRAINING_ZIP_NAME, ``inf-*`` folders to
OUTPUT_INFERENCE_ZIP_NAME (names without ``.zip``), others are left out.
"""

import json
import os
import sys
import zipfile
from pathlib import Path

from local.images.pacing import Pace, fail_if_asked

_ZIPS = {
    "training_zip": ("trn-", "OUTPUT_TRAINING_ZIP_NAME"),
    "inference_zip": ("inf-", "OUTPUT_INFERENCE_ZIP_NAME"),
}


def main() -> int:
    """Write ``outputs/*.zip`` and ``outputs/zip_manifest.json``; returns the exit code."""
    source = Path(os.environ["INPUT_DIR"])
    if not source.is_dir():
        print(f"{source} does not exist", file=sys.stderr)
        return 1
    Pace(1).step()
    fail_if_asked()
    outputs = Path("outputs")
    outputs.mkdir(exist_ok=True)
    manifest: dict[str, dict[str, str | int]] = {}
    for key, (prefix, setting) in _ZIPS.items():
        folders = sorted(folder for folder in source.iterdir() if folder.is_dir() and folder.name.startswith(prefix))
        if folders:
            path = outputs / f"{os.environ[setting]}.zip"
            _pack(path, folders)
            manifest[key] = {"filename": path.name, "size_bytes": path.stat().st_size}
    (outputs / "zip_manifest.json").write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    return 0


def _pack(path: Path, folders: list[Path]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in folders:
            for file in sorted(folder.rglob("*")):
                if file.is_file():
                    archive.write(file, file.relative_to(folder.parent))


if __name__ == "__main__":
    sys.exit(main())
