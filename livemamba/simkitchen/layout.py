"""Episodes as CaptainCook4D's own files. No torch.

Source: the annotations' documentation and the files themselves (spec/interactive_cooking.md, hazards).
"""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from livemamba.simkitchen.acts import description, instruction_text
from livemamba.simkitchen.corpus import SPLITS, CorpusSettings, Planned
from livemamba.simkitchen.episodes import Episode, StepRecord
from livemamba.simkitchen.menu import Dish
from livemamba.simkitchen.state import FIELDS

DETAILS_FILE = "simkitchen.json"
VIDEOS_FOLDER = "videos"
STATES_FOLDER = "states"
_TAGS = (
    "Preparation Error",
    "Measurement Error",
    "Order Error",
    "Timing Error",
    "Technique Error",
    "Temperature Error",
    "Missing Step",
    "Other",
)
_NOT_DONE = "Skipped this step"

Played = Sequence[tuple[Planned, Episode]]


def write_layout(folder: Path, played: Played, settings: CorpusSettings, *, size: int, fps: int) -> None:
    """Write everything but the videos.

    Args:
        folder: that exists and is empty.
        played: episodes of a corpus, played.
        settings: that they follow from.
        size: pixels of the videos' width and height.
        fps: their rate.
    """
    dishes = {planned.plan.dish.activity_id: planned.plan.dish for planned, _ in played}
    annotations = {planned.id: _steps(episode) for planned, episode in played}
    _write_annotations(folder / "annotation_json", played, dishes, annotations)
    for dish in dishes.values():
        _write_json(folder / "task_graphs" / dish.graph_file, dish.task_graph())
    _write_splits(folder / "data_splits", played, annotations)
    _write_metadata(folder / "metadata", played, dishes)
    _write_json(folder / DETAILS_FILE, _details(played, settings, size=size, fps=fps))


def _steps(episode: Episode) -> list[dict[str, Any]]:
    """All steps of a recording as error_annotations.json lists them: done ones in order, then those left out."""
    dish = episode.plan.dish
    done = sorted(episode.steps, key=lambda step: step.start_s)
    return [_done(dish, step) for step in done] + [_left_out(dish, node) for node in episode.plan.skipped]


def _done(dish: Dish, step: StepRecord) -> dict[str, Any]:
    asked, one = dish[step.performance.node], step.performance
    errors = []
    if one.mistake:
        errors.append({"tag": f"{one.mistake.category.capitalize()} Error", "description": one.mistake_text})
    if one.order_text:
        errors.append({"tag": "Order Error", "description": one.order_text})
    values: dict[str, Any] = {"description": description(asked.act), "step_id": asked.step_id}
    if errors:
        values["errors"] = errors
    values.update(start_time=step.start_s, end_time=step.end_s)
    if one.mistake and not one.mistake.flaw:
        values["modified_description"] = instruction_text(one.mistake.done)
    return values


def _left_out(dish: Dish, node: str) -> dict[str, Any]:
    return {
        "description": description(dish[node].act),
        "step_id": dish[node].step_id,
        "errors": [{"tag": "Missing Step", "description": _NOT_DONE}],
        "start_time": -1.0,
        "end_time": -1.0,
        "modified_description": _NOT_DONE,
    }


def _write_annotations(
    folder: Path, played: Played, dishes: dict[int, Dish], annotations: dict[str, list[dict[str, Any]]]
) -> None:
    plain = {key: [_plain(step) for step in steps] for key, steps in annotations.items()}
    step_ids = {key: [step["step_id"] for step in steps] for key, steps in annotations.items()}
    complete, errors, simple = {}, [], {}
    for planned, _ in played:
        activity = planned.plan.dish.activity_id
        who = {
            "recording_id": planned.id,
            "activity_id": activity,
            "activity_name": planned.plan.dish.name,
            "person_id": planned.plan.kitchen_number,
            "environment": planned.plan.kitchen_number,
        }
        complete[planned.id] = {**who, "steps": plain[planned.id]}
        simple[planned.id] = {"recording_id": planned.id, "steps": plain[planned.id]}
        errors.append(
            {
                "recording_id": planned.id,
                "activity_id": activity,
                "is_error": any("errors" in step for step in annotations[planned.id]),
                "step_annotations": annotations[planned.id],
            }
        )
    texts = {str(step.step_id): description(step.act) for dish in dishes.values() for step in dish.steps}
    by_activity: dict[str, list[int]] = {str(activity): [] for activity in dishes}
    for planned, _ in played:
        by_activity[str(planned.plan.dish.activity_id)] += step_ids[planned.id]
    _write_json(folder / "complete_step_annotations.json", complete)
    _write_json(folder / "error_annotations.json", errors)
    _write_json(folder / "step_annotations.json", simple)
    _write_json(folder / "step_idx_description.json", texts)
    _write_json(folder / "recording_id_step_idx.json", step_ids)
    _write_json(folder / "activity_idx_step_idx.json", by_activity)
    _write_json(folder / "error_category_idx.json", {tag: number for number, tag in enumerate(_TAGS)})


def _plain(step: dict[str, Any]) -> dict[str, Any]:
    return {
        "step_id": step["step_id"],
        "start_time": step["start_time"],
        "end_time": step["end_time"],
        "description": step["description"],
        "has_errors": "errors" in step,
    }


def _write_splits(folder: Path, played: Played, annotations: dict[str, list[dict[str, Any]]]) -> None:
    """By recordings, all and those without errors; by recipes, where the test is on unseen ones."""
    ids = {split: [planned.id for planned, _ in played if planned.split == split] for split in SPLITS}
    right = {key for key, steps in annotations.items() if not any("errors" in step for step in steps)}
    normal = {split: [key for key in keys if key in right] for split, keys in ids.items()}
    for name, listed in (("combined", ids), ("normal", normal)):
        _write_json(folder / f"recordings_data_split_{name}.json", listed)
        by_recipe = {"train": listed["train"], "val": listed["val"], "test": listed["test_unseen"]}
        _write_json(folder / f"recipes_data_split_{name}.json", by_recipe)


def _write_metadata(folder: Path, played: Played, dishes: dict[int, Dish]) -> None:
    folder.mkdir()
    with (folder / "video_information.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["recording_id", "environment_id", "person_id", "duration(min)", "duration(sec)"])
        for planned, episode in played:
            where, seconds = planned.plan.kitchen_number, episode.duration_s
            writer.writerow([planned.id, where, where, f"{seconds / 60:.2f}", f"{seconds:.2f}"])
    lengths: dict[int, list[float]] = {activity: [] for activity in dishes}
    for planned, episode in played:
        lengths[planned.plan.dish.activity_id] += [step.end_s - step.start_s for step in episode.steps]
    with (folder / "average_segment_length.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for activity, seconds_of_steps in lengths.items():
            mean_s = sum(seconds_of_steps) / len(seconds_of_steps) if seconds_of_steps else 0.0
            writer.writerow([activity, dishes[activity].name, mean_s])


def _details(played: Played, settings: CorpusSettings, *, size: int, fps: int) -> dict[str, Any]:
    rates = settings.rates
    return {
        "note": "SimKitchen, a simulated kitchen. Nothing shown on it is a result on people.",
        "seed": settings.seed,
        "time_factor": settings.time_factor,
        "varied": settings.varied,
        "size": size,
        "fps": fps,
        "state_fields": {name: list(classes) for name, classes in FIELDS.items()},
        "rates": {
            "mistakes": dict(rates.mistakes),
            "skip": rates.skip,
            "order": rates.order,
            "alternative": rates.alternative,
            "together": rates.together,
            "normal": rates.normal,
        },
        "recordings": {planned.id: {"split": planned.split, **episode.details()} for planned, episode in played},
    }


def _write_json(path: Path, data: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
