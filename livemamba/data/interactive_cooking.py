"""The Main and the Advanced Planning set of Interactive Cooking, from CaptainCook4D's annotations. No torch.

Rules: spec/interactive_cooking.md, found by counting against the paper's Tables 2 and 7. The paper cleaned
mistake tags, set mistake times and decided re-plans by hand; what stands in for that is said where it is
done: tags as they are, a mistake at its action's end or middle, a step kept once and then removed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from livemamba.data.advanced_planning import build_advanced, in_test_split
from livemamba.data.captaincook4d import MISSING_TAG, ORDER_TAG, UNSEEN_SPLIT, Action, Annotations, Recording
from livemamba.data.notes import Notes
from livemamba.data.official_rows import recipe_from_plan
from livemamba.data.playing import BuiltVideo, MistakeTime, play
from livemamba.errors import InputError
from livemamba.recipe import Plan
from livemamba.wording import action_text

# Nine real actions end up to 0.01 s after their video. One that ends later by more than a tick is wrong.
_PAST_END_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """Both sets.

    Attributes:
        videos: plan set -> split -> videos, in the order of the split file.
        mistake_time: the stand-in that was used.
        notes: plan set -> what was left out or mended; "annotations" for the files themselves.
    """

    videos: Mapping[str, Mapping[str, Sequence[BuiltVideo]]]
    mistake_time: MistakeTime
    notes: Mapping[str, Notes]


def build_benchmark(annotations: Annotations, *, mistake_time: MistakeTime = "end") -> Benchmark:
    """Build both sets.

    Args:
        annotations: all of CaptainCook4D, or of a corpus in its format.
        mistake_time: where a mistake is put: at its action's "end", or in its "middle". The official times were
            set by hand and can't be derived.

    Raises:
        InputError: if no split gets a single video.
    """
    notes = {name: Notes() for name in ("annotations", "main", "advanced_planning")}
    note_annotations(annotations, notes["annotations"])
    main: dict[str, list[BuiltVideo]] = {}
    advanced: dict[str, list[BuiltVideo]] = {}
    for split, keys in annotations.splits.items():
        main[split], advanced[split] = [], []
        for key in keys:
            recording = annotations.recordings[key]
            groups = grouped(performed(recording, notes["main"]))
            if not groups:
                notes["main"].add("left out: nothing was performed", key)
                continue
            main[split].append(build_main(recording, groups, mistake_time, notes["main"]))
            video = build_advanced(recording, groups, annotations, mistake_time, notes["advanced_planning"])
            if video and (split not in ("test", UNSEEN_SPLIT) or in_test_split(video, notes["advanced_planning"])):
                advanced[split].append(video)
    if not any(main.values()):
        raise InputError("no recording of the splits has a performed action; nothing to build")
    return Benchmark(videos={"main": main, "advanced_planning": advanced}, mistake_time=mistake_time, notes=notes)


def build_main(
    recording: Recording, groups: Sequence[Sequence[Action]], mistake_time: MistakeTime, notes: Notes
) -> BuiltVideo:
    """A video of the Main set: the plan is what was done, in that order, one step for each group.

    Args:
        recording: the video.
        groups: its performed actions, at least one.
        mistake_time: see `play`.
        notes: takes what had to be mended.
    """
    recipe = recipe_from_plan(
        recording.activity, [[action_text(action.description) for action in group] for group in groups]
    )
    nodes = iter(recipe.steps)
    done = [tuple((next(nodes).id, action) for action in group) for group in groups]
    plan = Plan(tuple(tuple(node for node, _ in group) for group in done))
    return play(recording, recipe, plan, done, mistake_time, notes)


# --- what was done, in which order -------------------------------------------------------------------


def performed(recording: Recording, notes: Notes) -> list[Action]:
    """The actions that were done and can be used, by start (ascending), then end (descending)."""
    done = []
    for action in recording.actions:
        place = f"{recording.id} step {action.place}"
        reason = _unusable(action, recording.duration_s)
        if reason:
            notes.add(reason, place)
            continue
        if action.end_s > recording.duration_s:
            notes.add("end moved back to the end of the video", place)
        done.append(replace(action, end_s=min(action.end_s, recording.duration_s)))
    return sorted(done, key=lambda action: (action.start_s, -action.end_s))


def _unusable(action: Action, duration_s: float) -> str | None:
    # One recording (4_43) has a step that was first missed, then done out of order, and carries both tags.
    if action.has_tag(MISSING_TAG) and not action.has_tag(ORDER_TAG):
        return f"not performed: tagged {MISSING_TAG}"
    if action.start_s == action.end_s == -1:
        return f"not performed: no times, and no tag {MISSING_TAG}"
    if not 0 <= action.start_s <= action.end_s:  # refuses NaN too
        return "rejected: start and end are no stretch of time"
    if action.start_s > duration_s or action.end_s > duration_s + _PAST_END_S:
        return "rejected: lies after the end of the video"
    return None


def grouped(actions: Sequence[Action]) -> list[tuple[Action, ...]]:
    """Actions in parallel, together: one that ends no later than its group's first one belongs to it.

    Args:
        actions: in the order that `performed` gives.
    """
    groups: list[list[Action]] = []
    for action in actions:
        if groups and action.end_s <= groups[-1][0].end_s:
            groups[-1].append(action)
        else:
            groups.append([action])
    return [tuple(group) for group in groups]


def note_annotations(annotations: Annotations, notes: Notes) -> None:
    """Note what is odd in the files, whether or not it changes the result."""
    listed = {key for keys in annotations.splits.values() for key in keys}
    for recording in annotations.recordings.values():
        if recording.id not in listed:
            notes.add("left out: recording in no split", recording.id)
        for action in recording.actions:
            place = f"{recording.id} step {action.place}"
            if annotations.step_texts.get(action.step_id) != action.description:
                notes.add("description and step id disagree: the description counts", place)
            if action.has_modified_text and not action.tags:
                notes.add("modified_description without errors: not used", place)
            counts = Counter(tag.name for tag in action.mistakes)
            if any(count > 1 for count in counts.values()):
                notes.add("a mistake category twice on one step: each is a message", place)
            for tag in action.tags:
                if tag not in action.mistakes:
                    notes.add(f"tag without a message: {tag.name}", place)
