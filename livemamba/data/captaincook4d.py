"""CaptainCook4D's annotations as they are: recordings, actions, error tags, splits, task graphs. No torch.

Only reading and checking happens here; what the benchmark makes of them is `interactive_cooking`. The
hazards of the real files are listed in spec/interactive_cooking.md.
"""

import csv
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from livemamba.errors import InputError, MissingError
from livemamba.recipe import Recipe, recipe_from_task_graph
from livemamba.timeline import MistakeCategory

SPLITS = ("train", "validation", "test")
_SPLIT_KEYS = {"train": "train", "validation": "val", "test": "test"}
UNSEEN_SPLIT = "test_unseen"
"""With recipes and kitchens of its own; simulated corpora have it, CaptainCook4D doesn't."""

STEPS_FILE = "annotation_json/error_annotations.json"
NAMES_FILE = "annotation_json/complete_step_annotations.json"
TEXTS_FILE = "annotation_json/step_idx_description.json"
SPLITS_FILE = "data_splits/recordings_data_split_combined.json"
VIDEOS_FILE = "metadata/video_information.csv"
GRAPHS_FOLDER = "task_graphs"
EXACT_FILE = "simkitchen.json"
"""What a simulated corpus has beside these files: the exact times of its mistakes (docs/simkitchen.md)."""

MISTAKE_TAGS: dict[str, MistakeCategory] = {
    "Technique Error": "technique",
    "Preparation Error": "preparation",
    "Measurement Error": "measurement",
    "Timing Error": "timing",
    "Temperature Error": "temperature",
}
"""The tags that are mistakes in carrying out a step, and what the benchmark calls them."""

ORDER_TAG = "Order Error"
MISSING_TAG = "Missing Step"
TAGS = (*MISTAKE_TAGS, ORDER_TAG, MISSING_TAG, "Other")


@dataclass(frozen=True, kw_only=True)
class Tag:
    """An error tag of an action.

    Attributes:
        name: one of `TAGS`.
        text: what went wrong, in the annotator's words.
    """

    name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Action:
    """One step of a recording, performed or not.

    Attributes:
        place: position in the recording's list, from 1; names the action in reports.
        description: "Verb-text", as annotated.
        step_id: the corpus's own number of the step; it disagrees with the description in seven places.
        start_s: seconds from the video's start; -1 for an action that wasn't performed.
        end_s: likewise.
        tags: in the file's order; a category can come twice.
        seen_s: moment by which its mistake can be seen; None where there is none or the corpus doesn't say.
        has_modified_text: whether the file also carries a `modified_description`. It is never used: it says
            "Skipped this step" on performed steps.
    """

    place: int
    description: str
    step_id: int
    start_s: float
    end_s: float
    tags: tuple[Tag, ...] = ()
    has_modified_text: bool = False
    seen_s: float | None = None

    def has_tag(self, name: str) -> bool:
        """Whether a tag of that name is among them."""
        return any(tag.name == name for tag in self.tags)

    @property
    def mistakes(self) -> tuple[Tag, ...]:
        """The tags of the five mistake categories."""
        return tuple(tag for tag in self.tags if tag.name in MISTAKE_TAGS)


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One video.

    Attributes:
        id: activity number and recording number, "10_46".
        activity: the recipe's name.
        duration_s: of the whole video.
        actions: as listed, which isn't always in order of time.
    """

    id: str
    activity: str
    duration_s: float
    actions: tuple[Action, ...]


@dataclass(frozen=True, kw_only=True)
class TaskGraph:
    """A recipe's graph with the descriptions as annotated.

    Attributes:
        recipe: the graph in the project's own words; node ids are the file's, START and END dropped.
        descriptions: node id -> "Verb-text".
    """

    recipe: Recipe
    descriptions: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Annotations:
    """Everything that is read of the corpus.

    Attributes:
        recordings: by id, in the file's order.
        splits: split -> recording ids, in the file's order; `UNSEEN_SPLIT` only where the file has it.
        step_texts: step id -> description, where the recording's own text fails.
        graphs: activity name -> its task graph.
    """

    recordings: Mapping[str, Recording]
    splits: Mapping[str, tuple[str, ...]]
    step_texts: Mapping[int, str]
    graphs: Mapping[str, TaskGraph]


def graph_file(activity: str) -> str:
    """The file of an activity's task graph: its name in lower case, letters only."""
    return f"{GRAPHS_FOLDER}/{''.join(letter for letter in activity.lower() if letter.isalpha())}.json"


def read_annotations(folder: str | Path) -> Annotations:
    """Read the annotations folder of CaptainCook4D, or one of the same layout.

    The recordings split gives the benchmark's 213/62/109 videos; the other split files don't.

    Raises:
        MissingError: if files are missing; one error that lists all of them.
        InputError: if a file's content isn't what it should be.
    """
    folder = Path(folder)
    _check_there(folder, [STEPS_FILE, NAMES_FILE, TEXTS_FILE, SPLITS_FILE, VIDEOS_FILE])
    names = _read_names(folder)
    _check_there(folder, sorted({graph_file(name) for name in names.values()}))
    durations = _read_durations(folder)
    recordings = _read_recordings(folder, names, durations)
    if (folder / EXACT_FILE).is_file():
        recordings = _with_exact_times(folder, recordings)
    return Annotations(
        recordings=recordings,
        splits=_read_splits(folder, recordings),
        step_texts=_read_step_texts(folder),
        graphs={name: _read_graph(folder, name) for name in dict.fromkeys(names.values())},
    )


def _check_there(folder: Path, names: list[str]) -> None:
    if not folder.is_dir():
        raise MissingError(f"{folder} is no folder; give the CaptainCook4D annotations (with annotation_json/)")
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise MissingError(
            f"{folder} lacks {len(missing)} of the CaptainCook4D annotation files: {', '.join(missing)}; "
            "give a full copy of github.com/CaptainCook4D/annotations"
        )


# --- one file each -----------------------------------------------------------------------------------


def _read_json(folder: Path, name: str, kind: type[dict[Any, Any]] | type[list[Any]]) -> Any:
    try:
        data = json.loads((folder / name).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{folder / name}: not JSON ({error})") from None
    if not isinstance(data, kind):
        raise InputError(f"{folder / name}: holds a {type(data).__name__} where a {kind.__name__} belongs")
    return data


def _read_names(folder: Path) -> dict[str, str]:
    data = _read_json(folder, NAMES_FILE, dict)
    names = {}
    for key, recording in data.items():
        name = recording.get("activity_name") if isinstance(recording, dict) else None
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{folder / NAMES_FILE}: recording {key} has no activity_name")
        names[key] = name.strip()
    return names


def _read_durations(folder: Path) -> dict[str, float]:
    with (folder / VIDEOS_FILE).open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        lacking = {"recording_id", "duration(sec)"} - set(rows.fieldnames or ())
        if lacking:
            raise InputError(f"{folder / VIDEOS_FILE}: lacks the column {', '.join(sorted(lacking))}")
        durations = {}
        for row in rows:
            try:
                duration_s = float(row["duration(sec)"])
            except (TypeError, ValueError):
                duration_s = math.nan
            if not (math.isfinite(duration_s) and duration_s > 0):
                raise InputError(
                    f"{folder / VIDEOS_FILE}: line {rows.line_num}: duration {row['duration(sec)']!r} of "
                    f"{row['recording_id']} is not a number of seconds above 0"
                )
            durations[row["recording_id"]] = duration_s
    return durations


def _read_recordings(folder: Path, names: dict[str, str], durations: dict[str, float]) -> dict[str, Recording]:
    file = folder / STEPS_FILE
    recordings: dict[str, Recording] = {}
    for number, data in enumerate(_read_json(folder, STEPS_FILE, list), 1):
        if (
            not isinstance(data, dict)
            or "recording_id" not in data
            or not isinstance(data.get("step_annotations"), list)
        ):
            raise InputError(f"{file}: entry {number} needs recording_id and step_annotations")
        key = str(data["recording_id"])
        lacking = [name for name, known in ((NAMES_FILE, names), (VIDEOS_FILE, durations)) if key not in known]
        if lacking:
            raise InputError(f"recording {key} of {file} is not in {', '.join(lacking)}")
        if key in recordings:
            raise InputError(f"{file}: recording {key} stands twice")
        steps = enumerate(data["step_annotations"], 1)
        actions = tuple(_read_action(step, place, f"{file}: {key} step {place}") for place, step in steps)
        recordings[key] = Recording(id=key, activity=names[key], duration_s=durations[key], actions=actions)
    return recordings


def _with_exact_times(folder: Path, recordings: Mapping[str, Recording]) -> dict[str, Recording]:
    details = _read_json(folder, EXACT_FILE, dict)
    try:
        seen = {
            (key, step["step_id"], step["start_s"], step["end_s"]): float(step["mistake"]["seen_s"])
            for key, recording in details["recordings"].items()
            for step in recording["steps"]
            if "mistake" in step
        }
        if not all(map(math.isfinite, seen.values())):
            raise ValueError("seen_s is no finite number of seconds")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{folder / EXACT_FILE}: no exact times in it ({error}); generate the corpus anew") from None
    return {
        key: replace(
            recording,
            actions=tuple(
                replace(action, seen_s=seen.get((key, action.step_id, action.start_s, action.end_s)))
                for action in recording.actions
            ),
        )
        for key, recording in recordings.items()
    }


def _read_action(data: Any, place: int, where: str) -> Action:
    try:
        tags = tuple(Tag(name=error["tag"], text=error["description"].strip()) for error in data.get("errors", ()))
        action = Action(
            place=place,
            description=data["description"].strip(),
            step_id=int(data["step_id"]),
            start_s=float(data["start_time"]),
            end_s=float(data["end_time"]),
            tags=tags,
            has_modified_text="modified_description" in data,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{where}: not a step ({type(error).__name__}: {error})") from None
    if not action.description:
        raise InputError(f"{where}: the description is empty")
    for tag in tags:
        if tag.name not in TAGS:
            raise InputError(f"{where}: error tag {tag.name!r} is not one of {', '.join(TAGS)}")
        if tag.name in MISTAKE_TAGS and not tag.text:
            raise InputError(f"{where}: the {tag.name} has no description")
    return action


def _read_splits(folder: Path, recordings: Mapping[str, Recording]) -> dict[str, tuple[str, ...]]:
    data = _read_json(folder, SPLITS_FILE, dict)
    splits: dict[str, tuple[str, ...]] = {}
    extra = {UNSEEN_SPLIT: UNSEEN_SPLIT} if UNSEEN_SPLIT in data else {}
    for split, key in {**_SPLIT_KEYS, **extra}.items():
        if not isinstance(data.get(key), list):
            raise InputError(f"{folder / SPLITS_FILE}: has no list {key!r}")
        splits[split] = tuple(map(str, data[key]))
    listed = [key for keys in splits.values() for key in keys]
    unknown = sorted(set(listed) - set(recordings))
    twice = sorted({key for key in listed if listed.count(key) > 1})
    if unknown or twice:
        what = f"unknown recordings {', '.join(unknown)}" if unknown else f"{', '.join(twice)} more than once"
        raise InputError(f"{folder / SPLITS_FILE}: lists {what}")
    return splits


def _read_step_texts(folder: Path) -> dict[int, str]:
    data = _read_json(folder, TEXTS_FILE, dict)
    try:
        return {int(number): text.strip() for number, text in data.items()}
    except (ValueError, AttributeError) as error:
        raise InputError(f"{folder / TEXTS_FILE}: not step id -> description ({error})") from None


def _read_graph(folder: Path, activity: str) -> TaskGraph:
    name = graph_file(activity)
    data = _read_json(folder, name, dict)
    if not isinstance(data.get("steps"), dict) or not isinstance(data.get("edges"), list):
        raise InputError(f"{folder / name}: a task graph has 'steps' and 'edges'")
    try:
        recipe = recipe_from_task_graph(data, name=activity)
    except InputError as error:
        raise InputError(f"{folder / name}: {error}") from None
    descriptions = {str(node): str(text).strip() for node, text in data["steps"].items() if str(node) in recipe}
    return TaskGraph(recipe=recipe, descriptions=descriptions)
