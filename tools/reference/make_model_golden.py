#!/usr/bin/env python3
"""Writes tests/golden/models/<fixture>/: what transformers and PyTorch compute for the tiny models.

Run it in an environment made from requirements.txt:
    python tools/reference/make_model_golden.py [--out tests/golden/models] [FIXTURE ...]

Each folder holds
    config.json         as a user's model folder has it
    fixture.json        weights (name, shape, scale, offset: see formula.py), cases, training
                        results, and how far a float64 run is away (`deviation`)
    golden.safetensors  per case C, all (batch, seq) i32 or f32:
        C/ids C/targets C/positions C/doc_starts   targets are shifted already, -100: no loss
        C/logits                                   (batch, seq, vocab)
        C/grad/<name>                              of the mean loss over targets, sampled
      and final/<name>: the weights after training, sampled.
fixture.json's train.final_sums are sums of the whole final tensors without `undetermined` elements
(a range of indices of the weight that rounding alone decides; see undetermined() below).
Sampled: tensors of more than `full_up_to` elements keep every `stride`-th of the flattened tensor.

Cases: plain; masked (some targets -100); packed (two documents per row: block-diagonal mask,
positions restart, the last token of a document has no target); bf16 (plain, every weight rounded
to bfloat16, still computed in float32). Training: 10 AdamW steps over plain, masked, packed in
turn; matrices and embeddings decay, norms and biases do not; gradients clipped to norm 1.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from torch import nn
from torch.nn import functional

from fixtures import FIXTURES, Fixture
from formula import KINDS, kind_of, random_bits, weight

IGNORE = -100
TRAIN: dict[str, Any] = {
    "steps": 10,
    "cases": ["plain", "masked", "packed"],
    "lr": 1e-2,
    "betas": [0.9, 0.95],
    "eps": 1e-8,
    "weight_decay": 0.1,
    "clip": 1.0,
}
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """Everything (batch, seq), i64. Queries see keys of their own document only."""

    ids: torch.Tensor
    targets: torch.Tensor
    positions: torch.Tensor
    doc_starts: torch.Tensor


def make_cases(fixture: Fixture) -> dict[str, Case]:
    shape = (fixture.batch, fixture.seq)
    plain = make_case("plain", fixture, torch.zeros(shape, dtype=torch.int64))

    masked = make_case("masked", fixture, plain.doc_starts)
    bits = random_bits("case/masked/ignored", shape[0] * shape[1]) % np.uint64(3)
    masked.targets[torch.from_numpy(bits.reshape(shape) == 0)] = IGNORE

    starts = torch.zeros(shape, dtype=torch.int64)
    for row in range(fixture.batch):
        cut = fixture.seq * (3 + 2 * row) // 8
        starts[row, cut:] = cut
    packed = make_case("packed", fixture, starts)
    last = starts[:, 1:] != starts[:, :-1]
    packed.targets[:, :-1][last] = IGNORE
    return {"plain": plain, "masked": masked, "packed": packed, "bf16": plain}


def make_case(name: str, fixture: Fixture, doc_starts: torch.Tensor) -> Case:
    rows = (fixture.batch, fixture.seq + 1)
    vocab = np.uint64(fixture.config["vocab_size"])
    values = (random_bits(f"case/{name}/ids", rows[0] * rows[1]) >> np.uint64(32)) % vocab
    ids = torch.from_numpy(values.astype(np.int64).reshape(rows))
    positions = torch.arange(fixture.seq).expand_as(doc_starts) - doc_starts
    return Case(ids[:, :-1].clone(), ids[:, 1:].clone(), positions, doc_starts)


def save_folder(fixture: Fixture, folder: Path) -> None:
    """A Hugging Face folder with the formula's weights, for from_pretrained."""
    (folder / "config.json").write_text(json.dumps(fixture.config))
    config = transformers.AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        names = transformers.AutoModelForCausalLM.from_config(config).named_parameters()
    tensors = {name: weight(name, tuple(p.shape)) for name, p in names}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def load_model(fixture: Fixture) -> nn.Module:
    with tempfile.TemporaryDirectory() as name:
        save_folder(fixture, Path(name))
        model, report = transformers.AutoModelForCausalLM.from_pretrained(
            name, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
        )
    assert not any(report.values()), report
    return model.train()


def masks(case: Case, model: nn.Module) -> Any:
    """None for the library's own causal mask, else an additive 4-D mask (per kind of layer)."""
    if not case.doc_starts.any():
        return None
    seq = case.ids.shape[1]
    query, key = torch.arange(seq)[:, None], torch.arange(seq)[None, :]
    seen = (key <= query) & (key >= case.doc_starts[:, None, :].transpose(1, 2))
    full = additive(seen, model)
    if "sliding_attention" not in (getattr(model.config, "layer_types", None) or []):
        return full
    near = key > query - model.config.sliding_window
    return {"full_attention": full, "sliding_attention": additive(seen & near, model)}


def additive(seen: torch.Tensor, model: nn.Module) -> torch.Tensor:
    dtype = next(model.parameters()).dtype
    hidden = torch.full((), torch.finfo(dtype).min, dtype=dtype)
    return torch.where(seen, torch.zeros((), dtype=dtype), hidden)[:, None]


def forward(model: nn.Module, case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and the mean loss over targets."""
    mask = masks(case, model)
    positions = None if mask is None else case.positions
    output = model(case.ids, attention_mask=mask, position_ids=positions, use_cache=False)
    flat = output.logits.flatten(0, 1)
    return output.logits, functional.cross_entropy(
        flat, case.targets.flatten(), ignore_index=IGNORE
    )


def run_case(model: nn.Module, case: Case) -> tuple[float, Arrays]:
    model.zero_grad()
    logits, loss = forward(model, case)
    loss.backward()
    arrays = {"logits": logits.detach().numpy()}
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        arrays[f"grad/{name}"] = p.grad.numpy().copy()
    return loss.item(), arrays


def round_weights(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.to(torch.bfloat16))
    return model


def train(model: nn.Module, cases: dict[str, Case]) -> tuple[dict[str, list[float]], Arrays]:
    decayed = [p for n, p in model.named_parameters() if kind_of(n) in ("matrix", "embedding")]
    others = [p for n, p in model.named_parameters() if kind_of(n) in ("bias", "norm")]
    optimizer = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": TRAIN["weight_decay"]},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=TRAIN["lr"],
        betas=tuple(TRAIN["betas"]),
        eps=TRAIN["eps"],
        foreach=False,
    )
    losses, norms = [], []
    for step in range(TRAIN["steps"]):
        case = cases[TRAIN["cases"][step % len(TRAIN["cases"])]]
        optimizer.zero_grad()
        _, loss = forward(model, case)
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), TRAIN["clip"]).item())
        optimizer.step()
        losses.append(loss.item())
    final = {f"final/{n}": p.detach().numpy() for n, p in model.named_parameters()}
    return {"losses": losses, "grad_norms": norms}, final


@dataclass
class Results:
    scalars: dict[str, Any]
    arrays: Arrays


def compute(fixture: Fixture, dtype: torch.dtype) -> Results:
    cases = make_cases(fixture)
    scalars: dict[str, Any] = {"cases": {}}
    arrays: Arrays = {}
    for name, case in cases.items():
        model = load_model(fixture)
        loss, found = run_case((round_weights(model) if name == "bf16" else model).to(dtype), case)
        count = int((case.targets != IGNORE).sum())
        scalars["cases"][name] = {"loss": loss, "target_count": count}
        arrays |= {f"{name}/{key}": value for key, value in found.items()}
    scalars["train"], final = train(load_model(fixture).to(dtype), cases)
    return Results(scalars, arrays | final)


def sampled(fixture: Fixture, arrays: Arrays) -> Arrays:
    def cut(name: str, x: np.ndarray) -> np.ndarray:
        if "logits" in name or x.size <= fixture.full_up_to:
            return np.ascontiguousarray(x)
        return x.reshape(-1)[:: fixture.stride].copy()

    return {name: cut(name, x) for name, x in arrays.items()}


def inputs(fixture: Fixture) -> Arrays:
    return {
        f"{name}/{key}": value.numpy().astype(np.int32)
        for name, case in make_cases(fixture).items()
        for key, value in vars(case).items()
    }


def undetermined(name: str, shape: tuple[int, ...]) -> slice:
    """Elements that rounding alone decides in training.

    A bias of GPT-2's keys shifts all scores of a query alike, so its gradient is zero and
    AdamW moves it by the sign of noise.
    """
    if not name.endswith("attn.c_attn.bias"):
        return slice(0, 0)
    return slice(shape[0] // 3, 2 * shape[0] // 3)


def deviation(single: Results, double: Results) -> dict[str, float]:
    """Largest distance of the float32 run from a float64 run: what rounding alone does.

    Arrays: max |a - b| over max |b| of the same array; scalars: relative.
    """

    def distance(name: str, a: np.ndarray, b: np.ndarray) -> float:
        difference = abs(a - b)
        if name.startswith("final/"):
            difference[undetermined(name, a.shape)] = 0
        return float(difference.max() / max(abs(b).max(), 1e-30))

    def of(part: str) -> float:
        found = [n for n in single.arrays if part in n]
        return max(distance(n, single.arrays[n], double.arrays[n]) for n in found)

    def steps(key: str) -> float:
        pairs = zip(single.scalars["train"][key], double.scalars["train"][key], strict=True)
        return max(abs(a - b) / abs(b) for a, b in pairs)

    return {
        "logits": of("logits"),
        "grad": of("/grad/"),
        "final": of("final/"),
        "train_loss": steps("losses"),
        "grad_norm": steps("grad_norms"),
    }


def describe_weight(name: str, shape: tuple[int, ...]) -> dict[str, Any]:
    """first, last: initial values at both ends, for readers to check their formula with."""
    scale, offset = KINDS[kind_of(name)]
    ends = weight(name, shape).reshape(-1)[[0, -1]].astype(np.float64).tolist()
    record = {"name": name, "shape": list(shape), "scale": scale, "offset": offset}
    return record | {"first": ends[0], "last": ends[1]}


def describe(fixture: Fixture, single: Results, double: Results) -> dict[str, Any]:
    weights, sums = [], {}
    for key, value in single.arrays.items():
        if key.startswith("final/"):
            name = key.removeprefix("final/")
            weights.append(describe_weight(name, value.shape))
            free = undetermined(name, value.shape)
            if free.stop:
                weights[-1]["undetermined"] = [free.start, free.stop]
                value = np.delete(value, free)
            sums[name] = float(value.astype(np.float64).sum())
    return {
        "notes": fixture.notes,
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "stride": fixture.stride,
        "full_up_to": fixture.full_up_to,
        "weights": weights,
        "cases": single.scalars["cases"],
        "train": {**TRAIN, **single.scalars["train"], "final_sums": sums},
        "deviation": deviation(single, double),
    }


def write(name: str, fixture: Fixture, out: Path) -> None:
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    single, double = compute(fixture, torch.float32), compute(fixture, torch.float64)
    (folder / "config.json").write_text(json.dumps(fixture.config, indent=2) + "\n")
    record = describe(fixture, single, double)
    (folder / "fixture.json").write_text(json.dumps(record, indent=1) + "\n")
    file = folder / "golden.safetensors"
    save_file(inputs(fixture) | sampled(fixture, single.arrays), file)
    losses = ", ".join(f"{c} {v['loss']:.6f}" for c, v in record["cases"].items())
    print(f"{name}: {file.stat().st_size / 1e3:.0f} KB; {losses}; {record['deviation']}")


def main() -> None:
    repo = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fixtures", nargs="*", metavar="FIXTURE", help="all, when none is named")
    parser.add_argument("--out", type=Path, default=repo / "tests/golden/models")
    args = parser.parse_args()
    unknown = set(args.fixtures) - set(FIXTURES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(FIXTURES)}")
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name in args.fixtures or FIXTURES:
        write(name, FIXTURES[name], args.out)


if __name__ == "__main__":
    main()
