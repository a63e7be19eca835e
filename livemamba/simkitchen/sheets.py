"""Contact sheets: one row for each act and each mistake, to see whether it can be seen. No torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from livemamba.files import whole_folder
from livemamba.simkitchen.acts import instruction_text
from livemamba.simkitchen.cooks import EpisodePlan, Performance
from livemamba.simkitchen.drawing import Pixels
from livemamba.simkitchen.episodes import Session, play
from livemamba.simkitchen.menu import Dish, all_dishes
from livemamba.simkitchen.mistakes import Mistake
from livemamba.simkitchen.renderer import Renderer, check_size
from livemamba.simkitchen.world import BEATS_PER_S
from livemamba.timeline import MISTAKE_CATEGORIES

COLUMNS = 6
_STEP_S = 9.0
_CAPTION_PX = 16


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of a sheet.

    Attributes:
        caption: what is shown.
        plan: an episode that ends with it.
        node: the step that it is about.
    """

    caption: str
    plan: EpisodePlan
    node: str


def act_rows(seed: int = 0) -> list[Row]:
    """Every kind of act, done right, after what its recipe asks for before it."""
    return [
        Row(caption=instruction_text(dish[node].act), plan=_plan(dish, node, seed + number), node=node)
        for number, (dish, node) in enumerate(_one_of_each_kind())
    ]


def mistake_rows(seed: int = 0) -> list[Row]:
    """Every mistake of every kind of act."""
    rows: list[Row] = []
    for dish, node in _one_of_each_kind():
        plan = _plan(dish, node, seed + len(rows))
        for mistake in _different(dish.mistakes(node)):
            caption = f"{mistake.category}: {instruction_text(dish[node].act)} -> {mistake.texts[0]}"
            rows.append(Row(caption=caption, plan=plan.with_mistake(node, mistake), node=node))
    return rows


def _different(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """One of each manner and changed field, so that a sheet stays short."""
    found: dict[tuple[str, ...], Mistake] = {}
    for mistake in mistakes:
        key = (mistake.category, mistake.flaw, mistake.done.level, str(mistake.done.count), mistake.done.tool)
        found.setdefault((*key, str(mistake.done.minutes)), mistake)
    return list(found.values())


def _one_of_each_kind() -> list[tuple[Dish, str]]:
    found: dict[str, tuple[Dish, str]] = {}
    for dish in all_dishes():
        for step in dish.steps:
            found.setdefault(step.act.kind, (dish, step.id))
    return list(found.values())


def _plan(dish: Dish, node: str, seed: int) -> EpisodePlan:
    before = [step.id for step in dish.steps if step.id in dish.recipe.ancestors(node)]
    return EpisodePlan(
        key=(seed,),
        dish=dish,
        kitchen_number=seed,
        performances=tuple(Performance(node=one, duration_s=_STEP_S, gap_s=0.5) for one in (*before, node)),
        lead_in_s=0.5,
        tail_s=1.5,
    )


def row_pictures(row: Row, size: int) -> list[Pixels]:
    """A row's pictures: the moment before the step, four within it (evidence among them), and after it."""
    step = next(one for one in play(row.plan).steps if one.performance.node == row.node)
    length = step.end_s - step.start_s
    inner = [step.start_s + share * length for share in (0.2, 0.45, 0.65, 0.85)]
    if (seen_s := step.seen_s) is not None:
        nearest = min(inner, key=lambda time_s: abs(time_s - seen_s))
        inner[inner.index(nearest)] = seen_s
    session = Session(row.plan)
    renderer = Renderer(session.world.kitchen, size)
    pictures = []
    for time_s in (step.start_s - 0.3, *inner, step.end_s + 1.2):
        session.advance_to(round(time_s * BEATS_PER_S))
        pictures.append(renderer.draw(session.world))
    return pictures


def sheet(rows: Sequence[Row], size: int) -> Image.Image:
    """Rows under each other, each with its caption."""
    height = size + _CAPTION_PX
    image = Image.new("RGB", (COLUMNS * size, height * len(rows)), (255, 255, 255))
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(11)
    for number, row in enumerate(rows):
        draw.text((3, number * height + 1), row.caption, fill=(0, 0, 0), font=font)
        strip = np.concatenate(row_pictures(row, size), axis=1)
        image.paste(Image.fromarray(strip), (0, number * height + _CAPTION_PX))
    return image


def write_sheets(out: str | Path, *, size: int, seed: int = 0) -> list[Path]:
    """Write acts.jpg, and a sheet for each category of mistakes.

    Args:
        out: folder to make.
        size: of each picture.
        seed: of the kitchens.

    Raises:
        InputError: if the folder is there, or the size is out of range.
    """
    check_size(size)
    sheets = {"acts": act_rows(seed)}
    for category in MISTAKE_CATEGORIES:
        sheets[category] = [row for row in mistake_rows(seed) if row.caption.startswith(category)]
    with whole_folder(out) as folder:
        for name, rows in sheets.items():
            sheet(rows, size).save(folder / f"{name}.jpg", quality=80)
    return [Path(out) / f"{name}.jpg" for name in sheets]
