#!/usr/bin/env python3
"""Writes tests/golden/tokenizers/: tokenizer.json files as users have them, and the ids Hugging Face gives.

    pip install -r tools/reference/requirements.txt
    python tools/reference/make_tokenizer_golden.py [--out tests/golden/tokenizers]

Each family (gpt2, llama3, qwen2, smollm2) is a byte-level BPE of about 600 tokens, trained here on the licence
texts that Debian ships, with the normalizer, pre-tokenizer and added tokens of that family.
    texts.json                   the texts, shared by all
    <family>/tokenizer.json      and tokenizer_config.json, which names the eos token
    <family>/ids.json            per text the ids of encode(text, add_special_tokens=False)
    variants.json                per variant: the family it starts from, a JSON patch ("add" operations) to its
                                 tokenizer.json, and the ids of every text: the corners of the format
"""

from __future__ import annotations

import argparse
import copy
import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

Json = Any

LICENCES = ["Artistic", "BSD", "GPL-2", "MPL-2.0", "CC0-1.0"]
# Characters of several bytes, so that some merges cross and join them.
SPICE = [
    "naïve café déjà vu façade Ünïcödé " * 20,
    "Привет мир, как дела? " * 20,
    "日本語のテキスト 中文文本 한국어 " * 20,
    "😀 👩‍👩‍👧 🇩🇪 ✓ → … “quotes” – dash " * 20,
    "20024 20024, 1234567 1234567 (2024) " * 40,  # runs longer than three digits become tokens where they may
    "for (int i = 0; i < 10; ++i) {\n    return x[i] + 3.14159;\n}\n" * 10,
]

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

TEXTS = [
    "", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\t", "\t\t x", " \n ", "a", " a", "a ", "  a  ",
    "Hello, world!", "hello world", "The quick brown fox jumps over the lazy dog.",
    " 4", "4", "20024", "1234567890", "3.14159", "(abc", "don'T", "don't", "DON'T we'Re I'VE it'S y'all'd",
    "'s's't'ſ'S", "a\n\n b", "a\n b", "a \n b", "a\r\n\r\n  b", "x   ", "x  \n", "x\n  ", "trailing spaces   ",
    "tab\tseparated\t\tvalues", "line one\nline two\r\nline three\rline four",
    "e\u0301", "\u00e9", "caf\u00e9", "cafe\u0301", "A\u030a \u00c5 \u212b", "\ufb01 \u2460 \u00bd \u2126",
    "\u1112\u1161\u11ab \ud55c", "\u0344\u0385", "q\u0307\u0323 q\u0323\u0307", "\u0301leading mark",
    "Ünïcödé ÀÉÎÕÜ ß ẞ İ ı", "Привет, мир! 123", "日本語のテキスト", "中文 文本，测试。", "한국어 텍스트",
    "עברית العربية हिन्दी ไทย", "٣٤٥ ४५६ Ⅷ ² ½ ①", "😀", "👩‍👩‍👧‍👦 family", "🇩🇪🇫🇷", "✓ → … “x” – —",
    "a\u00a0b\u2003c\u3000d\u180ee\u200bf\u0085g\u2028h", "\ufeffbom", "nul\x00inside\x00", "\x01\x02\x1f\x7f",
    "_snake_case__ CamelCase kebab-case", "foo.bar(baz)[0] += 1;", "https://example.org/a?b=c&d=e#f",
    "!!!???...", "((([[[{{{", "--- *** ===", "a!b@c#d$e%f^g&h*i", "    indented\n        more\n\tmixed",
    "<|endoftext|>", "a<|endoftext|>b", " <|endoftext|> ", "<|endoftext|><|endoftext|>", "<|endoftext", "|endoftext|>",
    "<|im_start|>user\nHi!<|im_end|>\n", "<|begin_of_text|>x<|eot_id|>", "<tool_call>{\"a\": 1}</tool_call>",
    "  <mask>  word<mask>word <mask>", "xlonely lonely lonelyx (lonely)", "STRASSE strip  strip\n strip",
    "\u212bngstr\u00f6m angstrom \u00c5ngstr\u00f6m", "The Day day DAY", "unreachable unreachable token",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ab" * 40, " " * 70, "\n" * 9,
    "0" * 25, "é" * 9, "日" * 9, "permission to copy, distribute and/or modify this document", "GNU GENERAL PUBLIC LICENSE",
    "WITHOUT WARRANTY OF ANY KIND, either express or implied", "naïve café déjà vu", "\U0001d518\U0001d52b\U0001d526",
]


def special(content: str, **changes: bool) -> AddedToken:
    return AddedToken(content, **{"normalized": False, "special": True, **changes})


def train(normalizer: Json, pre_tokenizer: Json) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
    )
    licences = [Path("/usr/share/common-licenses", name).read_text(encoding="utf-8") for name in LICENCES]
    tokenizer.train_from_iterator(licences + SPICE, trainer)
    return tokenizer


def split(pattern: str) -> Json:
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


def gpt2() -> tuple[Tokenizer, str]:
    tokenizer = train(None, pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.add_special_tokens([special("<|endoftext|>", normalized=True)])
    return tokenizer, "<|endoftext|>"


def llama3() -> tuple[Tokenizer, str]:
    tokenizer = train(None, split(LLAMA3))
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    tokenizer.add_special_tokens([special(name) for name in names])
    bos = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", bos)]
    )
    return tokenizer, "<|end_of_text|>"


def qwen2() -> tuple[Tokenizer, str]:
    tokenizer = train(normalizers.NFC(), split(QWEN2))
    tokenizer.add_special_tokens([special(name) for name in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    tokenizer.add_tokens([AddedToken(name, normalized=False) for name in ("<tool_call>", "</tool_call>")])
    return tokenizer, "<|endoftext|>"


def smollm2() -> tuple[Tokenizer, str]:
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer = train(None, pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]))
    tokenizer.add_special_tokens([special(name) for name in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    return tokenizer, "<|im_end|>"


FAMILIES = {"gpt2": gpt2, "llama3": llama3, "qwen2": qwen2, "smollm2": smollm2}


def added(content: str, **changes: bool) -> Json:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": 0, "content": content, **flags, **changes}


def byte_level(prefix: bool, regex: bool) -> Json:
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def splitting(pattern: Json, behavior: str, invert: bool = False) -> Json:
    step = {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
    return [("/pre_tokenizer", {"type": "Sequence", "pretokenizers": [step, byte_level(False, False)]})]


def variants(files: dict[str, Json]) -> dict[str, tuple[str, list[tuple[str, Json]]]]:
    space = {"Regex": r"\s"}  # one: matches stand side by side
    vocab = files["llama3"]["model"]["vocab"]
    # A vocabulary without some bytes: what the merges do not need of the two-byte characters.
    needed = {part for merge in files["gpt2"]["model"]["merges"] for part in merge.split(" ")}
    few = {t: i for t, i in files["gpt2"]["model"]["vocab"].items() if len(t) > 1 or t in needed or t.isascii()}
    unk = {**few, "<unk>": max(few.values()) + 1}
    return {
        "ignore_merges": ("llama3", [("/model/ignore_merges", True),
                                     ("/model/vocab", {**vocab, "Ġunreachable": max(vocab.values()) + 1})]),
        "prefix_space": ("gpt2", [("/pre_tokenizer", byte_level(True, True))]),
        "prefix_space_pieces": ("gpt2", [("/pre_tokenizer", {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": False}, byte_level(True, True)]})]),
        "one_piece": ("gpt2", [("/pre_tokenizer", byte_level(False, False))]),
        "digits_together": ("smollm2", [("/pre_tokenizer/pretokenizers/0/individual_digits", False)]),
        "removed": ("qwen2", splitting(space, "Removed")),
        "merged_with_previous": ("qwen2", splitting(space, "MergedWithPrevious")),
        "merged_with_next": ("qwen2", splitting(space, "MergedWithNext")),
        "contiguous": ("qwen2", splitting(space, "Contiguous")),
        "text_pattern": ("qwen2", splitting({"String": "."}, "MergedWithPrevious")),
        "invert_removed": ("qwen2", splitting({"Regex": r"\p{L}+"}, "Removed", True)),
        "invert_next": ("gpt2", splitting({"Regex": r"\p{L}+|\p{N}"}, "MergedWithNext", True)),
        "nfd": ("qwen2", [("/normalizer", {"type": "NFD"})]),
        "nfkc_lowercase": ("qwen2", [("/normalizer", {"type": "Sequence", "normalizers": [
            {"type": "NFKC"}, {"type": "Lowercase"}]})]),
        "nfkd": ("qwen2", [("/normalizer", {"type": "NFKD"})]),
        "unknown_dropped": ("gpt2", [("/model/vocab", few), ("/added_tokens", [])]),
        "unknown_token": ("gpt2", [("/model/vocab", unk), ("/model/unk_token", "<unk>"), ("/added_tokens", [])]),
        "unknown_fused": ("gpt2", [("/model/vocab", unk), ("/model/unk_token", "<unk>"), ("/model/fuse_unk", True),
                                   ("/added_tokens", [])]),
        "added_strip": ("qwen2", [("/added_tokens", [
            added("<mask>", lstrip=True, rstrip=True, special=True), added("strip", rstrip=True),
            added("lonely", single_word=True), added(" \n"), added("Hello"), added("Hello, w")])]),
        "added_normalized": ("qwen2", [
            ("/normalizer", {"type": "Lowercase"}),
            ("/added_tokens", [added("Day", normalized=True), added("DAY"), added("ÅNGSTRÖM", normalized=True),
                               added("<mask>", normalized=True, lstrip=True), added("and")])]),
    }


def apply_patch(document: Json, patch: list[tuple[str, Json]]) -> Json:
    document = copy.deepcopy(document)
    for path, value in patch:
        *parents, last = path.strip("/").split("/")
        target = document
        for key in parents:
            target = target[int(key) if isinstance(target, list) else key]
        target[int(last) if isinstance(target, list) else last] = value
    return document


def ids_of(tokenizer: Tokenizer) -> list[list[int]]:
    return [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]


def compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n"


def lines(values: list[Json]) -> str:
    return "[\n" + ",\n".join(compact(value).rstrip("\n") for value in values) + "\n]\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("tests/golden/tokenizers"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    (out / "texts.json").write_text(lines(TEXTS))
    files: dict[str, Json] = {}
    for name, make in FAMILIES.items():
        tokenizer, eos = make()
        document = json.loads(tokenizer.to_str())
        if name == "gpt2":  # older files write a merge as one string
            document["model"]["merges"] = [" ".join(merge) for merge in document["model"]["merges"]]
        if name == "llama3":
            document["model"]["ignore_merges"] = True
        files[name] = document
        folder = out / name
        folder.mkdir(exist_ok=True)
        (folder / "tokenizer.json").write_text(compact(document))
        (folder / "tokenizer_config.json").write_text(compact({"eos_token": eos}))
        (folder / "ids.json").write_text(lines(ids_of(Tokenizer.from_str(json.dumps(document)))))
    entries = []
    for name, (base, patch) in variants(files).items():
        tokenizer = Tokenizer.from_str(json.dumps(apply_patch(files[base], patch)))
        operations = [{"op": "add", "path": path, "value": value} for path, value in patch]
        entries.append({"name": name, "base": base, "patch": operations, "ids": ids_of(tokenizer)})
    (out / "variants.json").write_text(lines(entries))


if __name__ == "__main__":
    main()
