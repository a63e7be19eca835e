"""Run and score Interactive Cooking's sanity rows: silent, chatty, timer, oracle. No video is needed.

python eval/sanity_rows.py --data DIR --plan_set main --split test --out rows.json
"""

import argparse
import re
import sys
from pathlib import Path

from livemamba.cli import run_safely
from livemamba.data.official_rows import ALL_SPLITS, PLAN_SETS, load_rows
from livemamba.evaluation.predictions import write_predictions
from livemamba.evaluation.report import evaluate, labels_of, table, write_result
from livemamba.evaluation.rules import PROTOCOLS, add_rule_arguments, rules_of
from livemamba.evaluation.sanity import run_row, sanity_rows, step_durations
from livemamba.evaluation.text_scores import BertChoice


def parse_arguments() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description="Run and score Interactive Cooking's sanity rows.")
    parser.add_argument("--data", required=True, metavar="DIR", help="the folder with the benchmark's official rows")
    parser.add_argument("--plan_set", required=True, choices=PLAN_SETS)
    parser.add_argument("--split", required=True, choices=ALL_SPLITS)
    parser.add_argument("--out", required=True, metavar="FILE", help="the scores, as JSON")
    parser.add_argument(
        "--predictions_dir", metavar="DIR", help="also write each row's predictions there, in the official format"
    )
    parser.add_argument("--protocol", default="both", choices=("both", *PROTOCOLS))
    parser.add_argument("--seed", type=int, default=0, help="of the oracle's jitter (default 0)")
    parser.add_argument("--bert_model", metavar="DIR", help="a local encoder for BERTScore (default: left out)")
    parser.add_argument("--bert_layers", type=int, metavar="N", help="which layer of --bert_model is compared")
    add_rule_arguments(parser)
    return parser.parse_args()


def main(arguments: argparse.Namespace) -> int:
    """Run, score, write, print."""
    rules = rules_of(arguments)
    truth = load_rows(arguments.data, arguments.plan_set, arguments.split)
    durations = step_durations(load_rows(arguments.data, arguments.plan_set, "train"))
    bert = BertChoice(wanted=arguments.bert_model is not None, model=arguments.bert_model, layers=arguments.bert_layers)
    protocols = PROTOCOLS if arguments.protocol == "both" else (arguments.protocol,)
    rows = sanity_rows(durations, seed=arguments.seed)
    results = []
    for protocol in protocols:
        for row in rows:
            said = run_row(row, truth, protocol)
            if arguments.predictions_dir:
                name = re.sub(r"[^a-z0-9]+", "_", row.name.lower())
                write_predictions(Path(arguments.predictions_dir) / protocol / f"{name}.json", said.values())
            results.append(evaluate(row.name, truth, said, protocol=protocol, rules=rules, bert=bert))
            print(f"{protocol}: {row.name} scored", file=sys.stderr)
    content = {
        "benchmark": "interactive_cooking",
        "plan_set": arguments.plan_set,
        "split": arguments.split,
        "data": arguments.data,
        "labels": labels_of(arguments.data),
        "seed": arguments.seed,
        "rules": rules.to_dict(),
        "systems": {row.name: row.about for row in rows},
        "rows": [result.to_dict(per_video=False) for result in results],
    }
    write_result(arguments.out, content)
    print(f"{arguments.plan_set}/{arguments.split}, {len(truth)} videos")
    print(table(results))
    for row in rows:
        print(f"{row.name}: {row.about}")
    print(f"written to {arguments.out}")
    return 0


if __name__ == "__main__":
    chosen = parse_arguments()
    sys.exit(run_safely(lambda: main(chosen)))
