#!/usr/bin/env python3
"""One PyTorch training process of the GPT-2 shape, for tools/bench_vs_pytorch.

Prints one JSON line. As fast as plain PyTorch on a CPU goes with the numerics drivetrain promises:
FP32 weights, gradients and optimizer state, bf16 by autocast, scaled_dot_product_attention, fused
AdamW, gradients reduced by DDP in FP32 during backward. Under DDP the ranks meet at --rendezvous.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import os
import time
from dataclasses import asdict, dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

HAS_SDPA = hasattr(functional, "scaled_dot_product_attention")
HAS_FUSED = "fused" in inspect.signature(torch.optim.AdamW).parameters


@dataclass(frozen=True)
class Shape:
    layers: int
    dim: int
    heads: int
    vocab: int
    positions: int


SHAPES = {
    "gpt2-124m": Shape(12, 768, 12, 50257, 1024),
    "tiny": Shape(2, 64, 2, 257, 256),
}


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """(B, H, T, D) each, causal."""
    if HAS_SDPA:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    hidden = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).triu(1)
    scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), -1) @ v


class Block(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        dim = shape.dim
        self.heads = shape.heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        batch, seq, dim = x.shape
        parts = self.qkv(self.norm1(x)).split(dim, dim=2)
        q, k, v = (p.view(batch, seq, self.heads, -1).transpose(1, 2) for p in parts)
        x = x + self.out(attention(q, k, v).transpose(1, 2).reshape(batch, seq, dim))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocab, shape.dim)
        self.places = nn.Embedding(shape.positions, shape.dim)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.dim)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0, 0.02)

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
    ]
    options = {"fused": True} if HAS_FUSED else {"foreach": False}
    return torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), eps=1e-8, **options)


def join(args: argparse.Namespace, model: nn.Module) -> nn.Module:
    if args.world == 1:
        return model
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[args.rank]})
    dist.init_process_group(
        "gloo", init_method=f"file://{args.rendezvous}", rank=args.rank, world_size=args.world
    )
    return nn.parallel.DistributedDataParallel(
        model, gradient_as_bucket_view=True, static_graph=True
    )


def step_times(args: argparse.Namespace) -> list[float]:
    """Milliseconds of each timed step."""
    shape = SHAPES[args.shape]
    torch.manual_seed(0)
    model = Gpt2(shape)
    optimizer = make_optimizer(model)
    trained = join(args, model)
    if args.compile:
        trained = torch.compile(trained)
    torch.manual_seed(1 + args.rank)
    times = []
    for step in range(args.warmup + args.steps):
        ids = torch.randint(0, shape.vocab, (args.batch, args.seq + 1))
        begin = time.perf_counter()
        low = torch.autocast("cpu", dtype=torch.bfloat16)
        with low if args.dtype == "bf16" else contextlib.nullcontext():
            loss = trained(ids[:, :-1], ids[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step >= args.warmup:
            times.append((time.perf_counter() - begin) * 1e3)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, default="gpt2-124m")
    parser.add_argument("--dtype", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--batch", type=int, default=4, help="sequences of this process per step")
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--compile", action="store_true", help="with torch.compile")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--world", type=int, default=1)
    parser.add_argument("--rendezvous", help="a file that does not exist yet, when world > 1")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    result = {"torch": torch.__version__, "step_ms": step_times(args), **asdict(SHAPES[args.shape])}
    if args.world > 1:
        dist.destroy_process_group()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
