"""Owns the forms in which one encoder's graph can come: other precisions, other inputs, fixed sizes, fused attention."""

import numpy as np
import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.float16 import convert_float_to_float16
from onnxruntime.transformers.fusion_options import FusionOptions
from onnxruntime.transformers.optimizer import optimize_model
from transformers import BertModel

from . import graphs
from .corpus import FEW_TEXTS, TEXTS
from .dense import (
    INPUTS,
    MAX_TOKENS,
    POOLING,
    ROWS,
    TRANSFORMER,
    VECTOR_TOLERANCE,
    bert_config,
    dense_records,
    rows_for_check,
)
from .folders import pooling_config, write_model, write_modules
from .records import from_base64, write_json
from .vocabularies import wordpiece
from .weights import HIDDEN, create

FIXED_LENGTH = 32
OUTPUT = ["last_hidden_state"]
HOLDS = "embed: vector of sentence-transformers encode (fp32 PyTorch), ids as fed"


class Variants:
    def __init__(self, place):
        self.place, self.tiny = place, wordpiece()
        self.model = create(BertModel, bert_config(self.tiny), seed=1)

    def folder(self, name):
        folder = self.place.folder(name)
        write_model(folder, self.model, self.tiny)
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": MAX_TOKENS, "do_lower_case": False})
        write_modules(folder, [TRANSFORMER, POOLING, ("2_Normalize", "sentence_transformers.models.Normalize")])
        write_json(folder / "1_Pooling" / "config.json", pooling_config(["mean"], HIDDEN))
        return folder

    def export(self, path, inputs=INPUTS, **more):
        masked = "attention_mask" in inputs
        run = graphs.with_added_mask(graphs.last_hidden_state) if masked else graphs.last_hidden_state
        graphs.export(self.model, run, inputs, {"last_hidden_state": ROWS}, path, **more)

    def compare(self, path, rows, names=INPUTS, **more):
        return graphs.compare(path, self.model, graphs.last_hidden_state, rows, 0, names, OUTPUT, **more)

    def keep(self, name, folder, records, checks, precisions=None, tolerance=None, **facts):
        self.place.keep(
            name,
            records,
            task="embed",
            expect=facts.pop("expect", "served"),
            holds=HOLDS,
            graphs={file: graphs.describe(folder / file, (precisions or {}).get(file, "fp32")) for file in checks},
            onnxMaxAbsDiff=checks,
            tolerance=tolerance or VECTOR_TOLERANCE,
            **facts,
        )


def least_cosine(path, records):
    """Least and mean cosine of mean-pooled vectors with the golden ones, one text a run."""
    session, cosines = graphs.open_session(path), []
    for record in records:
        hidden = graphs.run_session(session, graphs.feeds_of([(record["ids"], None)], 0))["last_hidden_state"][0]
        got, want = hidden.astype(np.float32).mean(0), from_base64(record["vector"])
        cosines.append(float(got @ want / np.linalg.norm(got) / np.linalg.norm(want)))
    return {"least": round(min(cosines), 6), "mean": round(float(np.mean(cosines)), 6)}


def make(place):
    variants = Variants(place)
    make_precisions(variants)
    make_external(variants)
    make_inputs(variants)
    make_fused(variants)


def make_precisions(variants):
    name = "variant-precisions"
    folder = variants.folder(name)
    path = folder / "onnx" / "model.onnx"
    variants.export(path)
    half, eight = path.with_name("model_fp16.onnx"), path.with_name("model_quantized.onnx")
    onnx.save(convert_float_to_float16(onnx.load(str(path)), keep_io_types=True), str(half))
    options = {"MatMulConstBOnly": True}
    quantize_dynamic(
        str(path),
        str(eight),
        per_channel=True,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=["MatMul"],
        extra_options=options,
    )
    records = dense_records(folder, TEXTS)
    rows = rows_for_check(records)
    checks = {f"onnx/{file.name}": variants.compare(file, rows) for file in (path, half, eight)}
    measured = {f"onnx/{file.name}": least_cosine(file, records) for file in (half, eight)}
    variants.keep(
        name,
        folder,
        records,
        checks,
        precisions={"onnx/model_fp16.onnx": "fp16", "onnx/model_quantized.onnx": "int8"},
        tolerance={
            "onnx/model.onnx": VECTOR_TOLERANCE,
            "onnx/model_fp16.onnx": {"cosine": 0.9995},
            "onnx/model_quantized.onnx": {"cosine": int(measured["onnx/model_quantized.onnx"]["least"] * 100) / 100},
        },
        measuredCosine=measured,
        what="one encoder in fp32, fp16 (inputs and outputs stay as they were) and dynamic int8 (per channel)",
    )


def make_external(variants):
    name = "variant-external-data"
    folder = variants.folder(name)
    path = folder / "onnx" / "model.onnx"
    variants.export(path)
    graph = onnx.load(str(path))
    path.unlink()
    onnx.save_model(
        graph,
        str(path),
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location="model.onnx_data",
        size_threshold=256,
    )
    records = dense_records(folder, FEW_TEXTS)
    checks = {"onnx/model.onnx": variants.compare(path, rows_for_check(records))}
    variants.keep(name, folder, records, checks, what="weights in onnx/model.onnx_data (external data)")


def make_inputs(variants):
    name = "variant-unmasked"
    folder = variants.folder(name)
    path = folder / "onnx" / "model.onnx"
    names = ["input_ids", "token_type_ids"]
    variants.export(path, names)
    records = dense_records(folder, FEW_TEXTS)
    checks = {"onnx/model.onnx": variants.compare(path, rows_for_check(records), names, padded=False)}
    what = "the graph has no attention_mask: only rows of one length, without padding, may run together"
    variants.keep(name, folder, records, checks, what=what)

    name = "variant-ids-only"
    folder = variants.folder(name)
    path = folder / "onnx" / "model.onnx"
    variants.export(path, ["input_ids", "attention_mask"])
    checks = {"onnx/model.onnx": variants.compare(path, rows_for_check(records), ["input_ids", "attention_mask"])}
    variants.keep(name, folder, records, checks, what="the graph has no token_type_ids")

    name = "variant-batch-1"
    folder = variants.folder(name)
    path = folder / "onnx" / "model.onnx"
    variants.export(path, free=("sequence",), batch=1)
    checks = {"onnx/model.onnx": variants.compare(path, rows_for_check(records), padded=False)}
    variants.keep(name, folder, records, checks, what="the batch dimension is fixed to 1")

    name = f"variant-length-{FIXED_LENGTH}"
    folder = variants.folder(name)
    path = folder / "onnx" / "model.onnx"
    variants.export(path, free=("batch",), sequence=FIXED_LENGTH)
    records = dense_records(folder, FEW_TEXTS, max_tokens=FIXED_LENGTH)
    checks = {"onnx/model.onnx": compare_fixed(variants, path, rows_for_check(records))}
    what = (
        f"the sequence dimension is fixed to {FIXED_LENGTH}: every row is padded to it, and longer texts are cut to it"
    )
    variants.keep(name, folder, records, checks, what=what)


def compare_fixed(variants, path, rows):
    """All rows padded to the fixed length, against PyTorch on each row without padding."""
    session = graphs.open_session(path)
    full = ([0] * FIXED_LENGTH, None)
    feeds = graphs.feeds_of([*rows, full], 0)
    got = graphs.run_session(session, {key: value[:-1] for key, value in feeds.items()})["last_hidden_state"]
    worst = 0.0
    for i, row in enumerate(rows):
        one = graphs.feeds_of([row], 0)
        with torch.no_grad():
            want = graphs.last_hidden_state(variants.model, {key: torch.from_numpy(one[key]) for key in INPUTS})[
                0
            ].numpy()
        worst = max(worst, float(np.abs(got[i][: len(want)] - want).max()))
    return {"batch": float(f"{worst:.1e}")}


# How a fused attention learns which tokens are real, by folder.
FUSED = {
    "variant-fused-attention": "a mask index (int32 [batch], the count of real tokens) that a ReduceSum of the mask gives",
    "variant-fused-embedding": "a mask index that EmbedLayerNormalization gives",
    "variant-fused-raw-mask": "the mask itself (int32 [batch, sequence])",
}


def make_fused(variants):
    for name, mask in FUSED.items():
        folder = variants.folder(name)
        plain = folder / "plain.onnx"
        path = folder / "onnx" / "model.onnx"
        variants.export(plain)
        path.parent.mkdir()
        options = FusionOptions("bert")
        options.use_raw_attention_mask(name == "variant-fused-raw-mask")
        options.enable_embed_layer_norm = name == "variant-fused-embedding"
        fuse_attention(plain, path, variants.model, options)
        plain.unlink()
        graph = onnx.load(str(path)).graph
        microsoft = sorted({node.op_type for node in graph.node if node.domain == "com.microsoft"})
        assert [node.op_type for node in graph.node].count("Attention") == 2, microsoft
        records = dense_records(folder, FEW_TEXTS)
        checks = {"onnx/model.onnx": variants.compare(path, rows_for_check(records))}
        variants.keep(
            name,
            folder,
            records,
            checks,
            what=f"fused by the optimiser of onnxruntime, attention with {mask}; operators of com.microsoft: {', '.join(microsoft)}",
            expect="served; where a provider lacks an operator, rewritten or refused",
        )


def set_constant(tensor, value):
    tensor.CopyFrom(onnx.numpy_helper.from_array(value, tensor.name))


def write_as_older_exporters(graph, heads):
    """Scores divided by the root of the head size instead of multiplied by its inverse, and shapes that name the heads."""
    producers = {output: node for node in graph.graph.node for output in node.output}
    for concat in [node for node in graph.graph.node if node.op_type == "Concat" and len(node.input) == 4]:
        set_constant(producers[concat.input[2]].attribute[0].t, np.array([heads], np.int64))
    for softmax in [node for node in graph.graph.node if node.op_type == "Softmax"]:
        scale = producers[producers[softmax.input[0]].input[0]]
        assert scale.op_type == "Mul"
        constant = producers[scale.input[1]].attribute[0].t
        inverse = 1 / onnx.numpy_helper.to_array(constant)
        set_constant(constant, inverse.astype(np.float32))
        scale.op_type = "Div"


def fuse_attention(plain, path, model, options):
    """The optimiser of onnxruntime on a graph that it knows the form of."""
    graph = onnx.load(str(plain))
    write_as_older_exporters(graph, model.config.num_attention_heads)
    onnx.save(graph, str(plain))
    heads = model.config.num_attention_heads
    fused = optimize_model(str(plain), "bert", heads, HIDDEN, optimization_options=options, opt_level=0)
    fused.save_model_to_file(str(path))
