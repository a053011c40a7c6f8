"""Owns the golden files: one JSON object a line, the first one names the versions that made the rest."""

import base64
import json
import re

import numpy as np
import onnxruntime
import sentence_transformers
import tokenizers
import torch
import transformers

MADE = {
    "torch": torch.__version__,
    "transformers": transformers.__version__,
    "sentence-transformers": sentence_transformers.__version__,
    "tokenizers": tokenizers.__version__,
    "onnxruntime": onnxruntime.__version__,
    "precision": "fp32",
}


def to_base64(values):
    """Float32, little-endian, row after row."""
    return base64.b64encode(np.ascontiguousarray(np.asarray(values), dtype="<f4").tobytes()).decode("ascii")


def from_base64(text):
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


def write_lines(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record, ensure_ascii=True) for record in [{"made": MADE}, *records]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def join_short_lists(text, width=120):
    """Lists of plain values on one line where they fit, as the formatter of this repository writes them."""

    def join(match):
        line_start = match.string.rfind("\n", 0, match.start()) + 1
        joined = "[" + re.sub(r"\n\s*", " ", match[1].strip()) + "]"
        fits = match.start() - line_start + len(joined) + len(match[2]) <= width
        return joined + match[2] if fits else match[0]

    return re.sub(r"\[(\n[^\[\]{}]*\n\s*)\](,?)", join, text)


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, ensure_ascii=False, indent=2)
    # The formatter writes exponents without a leading zero.
    text = re.sub(r'(": -?[\d.]+e-)0(\d)', r"\1\2", text)
    path.write_text(join_short_lists(text) + "\n", encoding="utf-8")
