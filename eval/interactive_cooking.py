"""Score a predictions file on Interactive Cooking.

    python eval/interactive_cooking.py --data DIR --plan_set main --split test \
        --predictions_file_path predictions.json --out result.json

The first four names of options are the official evaluation's.
"""

import argparse
import sys
from pathlib import Path

from livemamba.cli import run_safely
from livemamba.data.official_rows import ALL_SPLITS, PLAN_SETS, load_rows
from livemamba.evaluation.interactive_cooking import Prediction
from livemamba.evaluation.predictions import ReadPredictions, read_predictions
from livemamba.evaluation.report import differences_table, evaluate, labels_of, table, write_result
from livemamba.evaluation.rules import PROTOCOLS, add_rule_arguments, rules_of
from livemamba.evaluation.text_scores import DEFAULT_BERT, BertChoice
from livemamba.timeline import Timeline


def parse_arguments() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description="Score a predictions file on Interactive Cooking.")
    parser.add_argument("--data", required=True, metavar="DIR", help="the folder with the benchmark's official rows")
    parser.add_argument("--plan_set", required=True, choices=PLAN_SETS)
    parser.add_argument("--split", required=True, choices=ALL_SPLITS)
    parser.add_argument("--predictions_file_path", required=True, metavar="FILE", help="in the official format")
    parser.add_argument("--out", required=True, metavar="FILE", help="the result, as JSON")
    parser.add_argument(
        "--protocol",
        default="streaming",
        choices=PROTOCOLS,
        help="how the predictions were made (turn_based: turns may overlap in time)",
    )
    parser.add_argument(
        "--missing_videos",
        default="refuse",
        choices=("refuse", "empty"),
        help="videos of the split without predictions: refuse the file (default), or score them as silent",
    )
    parser.add_argument(
        "--compare_with", metavar="FILE", help="another system's predictions: a row of its own, and the difference"
    )
    parser.add_argument("--system", help="a name for the result (default: the file's)")
    parser.add_argument(
        "--bert_model", metavar="DIR", help=f"a local encoder for BERTScore, raw (default: {DEFAULT_BERT}, rescaled)"
    )
    parser.add_argument("--bert_layers", type=int, metavar="N", help="which layer of --bert_model is compared")
    parser.add_argument("--no_bert", action="store_true", help="leave BERTScore out")
    add_rule_arguments(parser)
    return parser.parse_args()


def main(arguments: argparse.Namespace) -> int:
    """Read, score, write, print."""
    rules = rules_of(arguments)
    truth = load_rows(arguments.data, arguments.plan_set, arguments.split)
    read = read_predictions(arguments.predictions_file_path, protocol=arguments.protocol)
    predictions, missing = _filled(read, truth, arguments.missing_videos)
    name = arguments.system or Path(arguments.predictions_file_path).stem
    bert = BertChoice(wanted=not arguments.no_bert, model=arguments.bert_model, layers=arguments.bert_layers)
    result = evaluate(name, truth, predictions, protocol=arguments.protocol, rules=rules, bert=bert)
    results, differences = [result], []
    if arguments.compare_with:
        theirs = read_predictions(arguments.compare_with, protocol=arguments.protocol)
        predictions, _ = _filled(theirs, truth, arguments.missing_videos)
        label = Path(arguments.compare_with).stem
        other = evaluate(label, truth, predictions, protocol=arguments.protocol, rules=rules, bert=bert)
        results, differences = [result, other], [result.less(other)]
    about = {
        "benchmark": "interactive_cooking",
        "plan_set": arguments.plan_set,
        "split": arguments.split,
        "data": arguments.data,
        "labels": labels_of(arguments.data),
        "predictions_file": arguments.predictions_file_path,
        "missing_videos": missing,
        "messages_without_text": read.without_text,
        "ignored_keys": read.ignored_keys,
    }
    compared = {"compared_with": [other.to_dict(per_video=False) for other in results[1:]], "differences": differences}
    write_result(arguments.out, {**about, **result.to_dict(), **(compared if differences else {})})
    print(table(results))
    if differences:
        print(differences_table(name, differences))
    print(f"{result.counts.videos} videos ({len(missing)} without predictions); BERTScore: {result.text.bert}")
    for note in result.text.notes:
        print(f"note: {note}")
    print(f"written to {arguments.out}")
    return 0


def _filled(
    read: ReadPredictions, truth: list[Timeline], missing_videos: str
) -> tuple[dict[str, Prediction], list[str]]:
    """The predictions, and the videos that lack any: as silent where that is asked for."""
    missing = [row.video_id for row in truth if row.video_id not in read.videos]
    empty = {video_id: Timeline(video_id=video_id) for video_id in missing} if missing_videos == "empty" else {}
    return {**read.videos, **empty}, missing


if __name__ == "__main__":
    chosen = parse_arguments()
    sys.exit(run_safely(lambda: main(chosen)))
