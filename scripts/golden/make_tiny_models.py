"""Writes the tiny models and their golden values: `python scripts/golden/make_tiny_models.py [--only FAMILY ...]`."""

import argparse
import importlib
import os
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
import transformers

from tiny.folders import Workplace
from tiny.records import MADE, write_json

FAMILIES = [
    "dense",
    "cross_encoder",
    "sparse",
    "colbert",
    "xlmr",
    "decoder",
    "bge_m3",
    "variants",
    "generative_reranker",
]
ROOT = Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "test" / "golden" / "tiny")
    parser.add_argument("--only", nargs="*", choices=FAMILIES, default=FAMILIES)
    arguments = parser.parse_args()
    # One thread: sums are taken in one order, so that two runs write the same bytes.
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as build:
        place = Workplace(Path(build), arguments.out)
        for family in arguments.only:
            importlib.import_module(f"tiny.{family}").make(place)
    for entry in place.entries:
        print(entry["name"], entry.get("onnxMaxAbsDiff", ""), flush=True)
    if arguments.only == FAMILIES:
        write_json(arguments.out / "manifest.json", {"made": MADE, "models": place.entries})
        write_json(arguments.out / "models" / "catalog.json", {"bert-matryoshka": {"isMatryoshka": True}})


if __name__ == "__main__":
    main()
