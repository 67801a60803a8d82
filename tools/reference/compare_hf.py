#!/usr/bin/env python3
"""What transformers computes for a model folder in FP32: to compare drivetrain's output with.

    compare_hf.py FOLDER --ids 1 2 3              logits of a few ids, top tokens of every position
    compare_hf.py FOLDER --text "Hello" --all     every logit, as JSON
    compare_hf.py FOLDER --ids 1 2 3 --against F  F: another folder (an export), or a JSON file
                                                  {"logits": [[...], ...]}: (tokens, vocab) of ours
    compare_hf.py FOLDER --text-file F            mean loss and perplexity in windows of --seq

With --against the exit code is 1 when the largest difference is above --tolerance.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

import torch
import transformers
from torch import Tensor
from torch.nn import functional


def load(folder: Path) -> transformers.PreTrainedModel:
    """The model in FP32; refuses a folder with missing, unexpected or misshapen tensors."""
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    faults = {key: sorted(map(str, value)) for key, value in report.items() if value}
    if faults:
        sys.exit(f"compare_hf: {folder}: {json.dumps(faults)}")
    return model.eval()


@torch.no_grad()
def logits_of(folder: Path, ids: list[int]) -> Tensor:
    return load(folder)(torch.tensor([ids])).logits[0]


def their_logits(source: Path, ids: list[int]) -> Tensor:
    if source.is_dir():
        return logits_of(source, ids)
    return torch.tensor(json.loads(source.read_text())["logits"], dtype=torch.float32)


def compare(ours: Tensor, theirs: Tensor, tolerance: float) -> int:
    if ours.shape != theirs.shape:
        print(f"shapes differ: {list(ours.shape)} and {list(theirs.shape)}")
        return 1
    difference = (ours - theirs).abs()
    worst = int(difference.argmax())
    row, column = divmod(worst, ours.shape[1])
    same = int((ours.argmax(-1) == theirs.argmax(-1)).sum())
    print(f"largest difference {difference.max():.3e} at position {row}, id {column}")
    print(f"mean difference {difference.mean():.3e}, same best token at {same} of {len(ours)}")
    return int(not difference.max() <= tolerance)


def show(logits: Tensor, ids: list[int], columns: int) -> None:
    for position, row in enumerate(logits):
        first = " ".join(f"{value:10.5f}" for value in row[:columns].tolist())
        best = ", ".join(f"{i}: {row[i]:.4f}" for i in row.topk(3).indices.tolist())
        print(f"{position:4} id {ids[position]:6} | {first} | best {best}")


@torch.no_grad()
def perplexity(folder: Path, ids: list[int], seq: int) -> None:
    """Windows of seq tokens, each predicting its next ones from inside the window only."""
    model, total, count = load(folder), 0.0, 0
    for begin in range(0, len(ids) - 1, seq):
        window = torch.tensor([ids[begin : begin + seq + 1]])
        logits = model(window[:, :-1]).logits[0]
        total += functional.cross_entropy(logits, window[0, 1:], reduction="sum").item()
        count += window.shape[1] - 1
    print(f"loss {total / count:.6f} perplexity {math.exp(total / count):.4f} targets {count}")


def token_ids(args: argparse.Namespace) -> list[int]:
    if args.ids is not None:
        return args.ids
    text = args.text if args.text is not None else args.text_file.read_text(encoding="utf-8")
    return transformers.AutoTokenizer.from_pretrained(args.folder)(text).input_ids


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--ids", type=int, nargs="+")
    source.add_argument("--text")
    source.add_argument("--text-file", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--tolerance", type=float, default=1e-4, help="absolute, with --against")
    parser.add_argument("--all", action="store_true", help="print ids and all logits as JSON")
    parser.add_argument("--columns", type=int, default=6, help="logits shown per position")
    parser.add_argument("--seq", type=int, default=1024, help="window of --text-file")
    args = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    ids = token_ids(args)
    if args.text_file and not args.against:
        perplexity(args.folder, ids, args.seq)
        return 0
    logits = logits_of(args.folder, ids)
    if args.against:
        return compare(logits, their_logits(args.against, ids), args.tolerance)
    if args.all:
        print(json.dumps({"ids": ids, "logits": logits.tolist()}))
    else:
        show(logits, ids, args.columns)
    return 0


if __name__ == "__main__":
    sys.exit(main())
