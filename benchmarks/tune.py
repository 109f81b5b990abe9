"""Does `headway tune` find what a full grid finds? Real servers, one model, one load, one run.

    python benchmarks/tune.py [--json]

Measures every setting of a small grid twice, then lets the search start at the worst one, with one more knob that does nothing.
The best of the grid and what the search chose are then measured again in turns: the largest of many noisy figures is too large.
Prints both and what the search costs: settings tried and servers started.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean

from headway.bench.prompts import DatasetOptions, make_prompts
from headway.bench.tokenizer import prompt_tokenizer
from headway.doctor.tune.search import Effort
from headway.doctor.tune.server_runs import Load, ServerRuns
from headway.doctor.tune.setting import Knob, Setting, flag_line
from headway.doctor.tune.tuning import Plan, run

MODEL = "smollm2-135m-instruct"
COMMAND = (sys.executable, "-m", "headway.cli.main", "serve", MODEL, "--max-model-len", "1024")
SEQUENCES = Knob("max_num_seqs", ("1", "4", "16", "64"))
TOKENS = Knob("max_num_batched_tokens", ("64", "256", "1024"))
IDLE = Knob("log_stats_interval", ("5", "10", "20"))
RUNS = 2
TURNS = 4  # of the best of the grid and of the chosen setting, two runs each


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--num-prompts", type=int, default=32)
    parser.add_argument("--input-len", type=int, default=64)
    parser.add_argument("--output-len", type=int, default=32)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tokenizer = prompt_tokenizer(MODEL)

    def prompts(run: int) -> list:
        return make_prompts(DatasetOptions(count=options.num_prompts, input_len=options.input_len, output_len=options.output_len, seed=run + 1), tokenizer)

    load = Load(prompts, options.concurrency, 4, {})
    server = ServerRuns(COMMAND, "throughput", load, tokenizer, 120)
    started = time.monotonic()
    grid: dict[Setting, float] = {}
    try:
        for seqs, tokens in itertools.product(SEQUENCES.values, TOKENS.values):
            setting = ((TOKENS.name, tokens), (SEQUENCES.name, seqs))
            grid[setting] = fmean(server.run(setting)[0].score for _ in range(RUNS))
    finally:
        server.close()
    grid_seconds = time.monotonic() - started
    best, worst = max(grid, key=lambda setting: grid[setting]), min(grid, key=lambda setting: grid[setting])
    search = ServerRuns(COMMAND, "throughput", load, tokenizer, 120)
    start = tuple(sorted((*worst, (IDLE.name, "10"))))
    plan = Plan(COMMAND, ("headway", "serve", MODEL), "throughput", start, (SEQUENCES, TOKENS, IDLE), Effort(most=4, confirm=4), {"benchmark": 1})
    with tempfile.TemporaryDirectory() as folder:
        tuned, _ = run(plan, search, Path(folder) / "record.jsonl", lambda step: print(f"  {step.verdict:<8} {flag_line(step.setting)}", file=sys.stderr))
    chosen = tuple(pair for pair in tuned.best if pair[0] != IDLE.name)
    search_seconds = time.monotonic() - started - grid_seconds
    duel: dict[Setting, list[float]] = {best: [], chosen: []}
    duellists = ServerRuns(COMMAND, "throughput", load, tokenizer, 120)
    try:
        for _ in range(TURNS):
            for setting in duel:
                duel[setting] += [duellists.run(setting)[0].score for _ in range(RUNS)]
    finally:
        duellists.close()
    share = fmean(duel[chosen]) / fmean(duel[best])
    report = {
        "grid": {flag_line(setting): round(value, 1) for setting, value in grid.items()},
        "best": flag_line(best),
        "best_tokens_per_s": round(grid[best], 1),
        "worst_tokens_per_s": round(grid[worst], 1),
        "chosen": flag_line(tuned.best),
        "chosen_share_of_best": round(share, 3),
        "in_turns": {flag_line(setting): [round(value, 1) for value in values] for setting, values in duel.items()},
        "idle_knob_left_alone": dict(tuned.best)[IDLE.name] == "10",
        "gain_percent": None if tuned.gain is None else [round(100 * value, 1) for value in (tuned.gain.mean, tuned.gain.low, tuned.gain.high)],
        "settings_tried": len(tuned.steps),
        "settings_of_the_grid_with_the_idle_knob": len(grid) * len(IDLE.values),
        "servers_started": search.starts,
        "seconds": [round(grid_seconds), round(search_seconds)],
    }
    if options.json:
        print(json.dumps(report, indent=2))
        return
    for name, value in report.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
