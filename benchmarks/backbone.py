"""The backbone's 32 tokens onto a saved state, against transformers' only correct way: 32 single steps.

    python benchmarks/backbone.py --repeats 5 --out runs/backbone.json

Both run in this process with the same random weights, taking turns; a time alone means little, the ratio is
what counts (spec: performance, backbone). Where others use the machine too, `--clock cpu` counts this process's
own time, best with OMP_NUM_THREADS=1. Prints a table and writes it as JSON.
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import torch
from tqdm import tqdm
from transformers import MambaConfig as TheirConfig
from transformers import MambaForCausalLM

from livemamba.config import LiveMambaConfig, load_config
from livemamba.files import whole_file
from livemamba.model.mamba import MambaBackbone
from livemamba.model.weights import load_strictly
from livemamba.ops import FORMS, use_form

TOKENS = 32
LEFT_OUT = ("layer_norm_epsilon",)
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="configs/model/livemamba_130m.yaml", help="a model config")
    parser.add_argument("--repeats", type=int, default=5, help="turns; the median counts")
    parser.add_argument("--forms", nargs="+", default=[*reversed(FORMS)], help="of the scan")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="what is counted")
    parser.add_argument("--out", default="runs/backbone.json", help="where the JSON goes")
    arguments = parser.parse_args()
    config = load_config(LiveMambaConfig, arguments.config).backbone
    sizes = {name: value for name, value in vars(config).items() if not name.startswith("_") and name not in LEFT_OUT}
    theirs = MambaForCausalLM(TheirConfig(**sizes, layer_norm_epsilon=config.layer_norm_epsilon)).eval()
    ours = MambaBackbone(config).eval()
    load_strictly(ours, theirs.state_dict(), source="transformers")
    embeds = torch.randn(1, TOKENS, config.hidden_size)

    def single_steps() -> torch.Tensor:
        cache, outputs = None, []
        for place in range(TOKENS):
            result = theirs.backbone(inputs_embeds=embeds[:, place : place + 1], cache=cache, use_cache=True)
            cache = result.cache
            outputs.append(result.last_hidden_state)
        return torch.cat(outputs, 1)

    def at_once(form: str) -> torch.Tensor:
        with use_form(form):
            hidden: torch.Tensor = ours(embeds)[0]
            return hidden

    paths: dict[str, Callable[[], torch.Tensor]] = {"transformers, single steps": single_steps}
    paths |= {f"livemamba, {form}": lambda form=form: at_once(form) for form in arguments.forms}  # type: ignore[misc]
    seconds = _measure(paths, arguments.repeats, CLOCKS[arguments.clock])
    report = _report(seconds, config.num_hidden_layers) | {"clock": arguments.clock}
    with whole_file(arguments.out) as partial:
        partial.write_text(json.dumps(report, indent=2) + "\n")
    print(f"\nwritten to {Path(arguments.out)}")


@torch.inference_mode()
def _measure(
    paths: dict[str, Callable[[], torch.Tensor]], repeats: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    results = [run() for run in paths.values()]  # warm up, and see that they agree
    for name, result in zip(paths, results, strict=True):
        difference = float((result - results[0]).abs().max())
        if difference > 1e-2:  # in single precision 24 random layers are 2e-3 off what float64 gives, in any form
            raise SystemExit(f"{name} differs from the first path by {difference:.2g}; a ratio would mean nothing")
    seconds: dict[str, list[float]] = {name: [] for name in paths}
    for _ in tqdm(range(repeats), desc="taking turns"):
        for name, run in paths.items():
            since = clock()
            run()
            seconds[name].append(clock() - since)
    return seconds


def _report(seconds: dict[str, list[float]], layers: int) -> dict[str, object]:
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    base = next(iter(medians.values()))
    threads = torch.get_num_threads()
    print(f"\n{layers} layers, {TOKENS} tokens onto a state, {threads} threads, torch {torch.__version__}")
    print(f"{'path':32} {'ms':>9} {'ratio':>7}")
    for name, median in medians.items():
        print(f"{name:32} {median * 1e3:9.1f} {base / median:7.1f}")
    return {
        "date": date.today().isoformat(),
        "machine": platform.processor() or platform.machine(),
        "threads": threads,
        "torch": torch.__version__,
        "layers": layers,
        "tokens": TOKENS,
        "median_s": medians,
        "ratio": {name: base / median for name, median in medians.items()},
    }


if __name__ == "__main__":
    main()
