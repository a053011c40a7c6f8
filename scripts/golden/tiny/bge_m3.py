"""Owns the models with three heads on one encoder pass, as bge-m3 has them: dense, token weights, rows."""

import torch
from transformers import XLMRobertaModel

from . import graphs
from .corpus import FEW_TEXTS, PASSAGES, QUERIES, TEXTS
from .dense import ROWS, dense_records, rows_for_check
from .folders import pooling_config, write_model, write_modules
from .records import from_base64, to_base64, write_json
from .vocabularies import unigram
from .weights import HIDDEN, create, draw
from .xlmr import USABLE, XLMR_INPUTS, xlmr_config

TOLERANCE = {"cosine": 0.99999, "values": 1e-4, "rowCosine": 0.99999, "maxSim": 1e-4}


class ThreeHeads(torch.nn.Module):
    """The encoder and the two linear layers that bge-m3 keeps in `sparse_linear.pt` and `colbert_linear.pt`."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.sparse_linear = draw(torch.nn.Linear(HIDDEN, 1), seed=71)
        self.colbert_linear = draw(torch.nn.Linear(HIDDEN, HIDDEN), seed=72)


def heads(model, feeds):
    """dense_vecs, sparse_vecs, colbert_vecs: normalised, relu'd, projected without the first token, normalised and masked."""
    hidden = model.encoder(**feeds).last_hidden_state
    dense = torch.nn.functional.normalize(hidden[:, 0], dim=-1)
    sparse = torch.relu(model.sparse_linear(hidden))
    rows = torch.nn.functional.normalize(model.colbert_linear(hidden[:, 1:]), dim=-1)
    return dense, sparse, rows * feeds["attention_mask"][:, 1:, None].float()


def lexical_weights(token_weights, ids, unused):
    """The greatest weight of each token, without special tokens and without zeros."""
    best = {}
    for token, weight in zip(ids, token_weights):
        if token not in unused and weight > 0:
            best[token] = max(best.get(token, 0.0), float(weight))
    return {"indices": sorted(best), "values": [best[token] for token in sorted(best)]}


def three_records(folder, model, tiny):
    unused = {tiny.tokenizer.token_to_id(token) for token in ("<s>", "</s>", "<pad>", "<unk>")}
    records, rows_of = [], {}

    def run(ids):
        with torch.no_grad():
            return heads(
                model, {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
            )

    for record in dense_records(folder, TEXTS):
        dense, sparse, rows = run(record["ids"])
        assert abs(dense[0].numpy() - from_base64(record["vector"])).max() < 1e-5
        weights = lexical_weights(sparse[0, :, 0], record["ids"], unused)
        facts = {key: record[key] for key in ("text", "ids", "tokensBeforeTruncation", "vector")}
        shown = (
            {"rows": len(rows[0]), "dimension": HIDDEN, "matrix": to_base64(rows[0])}
            if record["text"] in FEW_TEXTS
            else {}
        )
        records.append({**facts, **weights, **shown})
    for text in [*QUERIES, *PASSAGES]:
        encoding = tiny.tokenizer.encode(text).ids
        ids = encoding if len(encoding) <= USABLE else [*encoding[: USABLE - 1], encoding[-1]]
        rows_of[text] = run(ids)[2][0]
    for query in QUERIES:
        scores = [float((rows_of[query] @ rows_of[passage].T).max(dim=1).values.sum()) for passage in PASSAGES]
        records.append({"query": query, "passages": PASSAGES, "scores": scores})
    return records


def make(place):
    tiny = unigram()
    encoder = create(XLMRobertaModel, xlmr_config(tiny), seed=70)
    model = ThreeHeads(encoder).eval()
    for name in ("bge-m3", "bge-m3-heads"):
        folder = place.folder(name)
        write_model(folder, encoder, tiny)
        write_modules(
            folder,
            [
                ("", "sentence_transformers.models.Transformer"),
                ("1_Pooling", "sentence_transformers.models.Pooling"),
                ("2_Normalize", "sentence_transformers.models.Normalize"),
            ],
        )
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": USABLE, "do_lower_case": False})
        write_json(folder / "1_Pooling" / "config.json", pooling_config(["cls"], HIDDEN))
        path = folder / "onnx" / "model.onnx"
        if name == "bge-m3":
            torch.save(model.sparse_linear.state_dict(), folder / "sparse_linear.pt")
            torch.save(model.colbert_linear.state_dict(), folder / "colbert_linear.pt")
            outputs = {"last_hidden_state": ROWS}
            traced, run = encoder, graphs.last_hidden_state
            what = "the graph gives last_hidden_state; sparse_linear.pt (weight, bias: 1) and colbert_linear.pt (weight, bias) lie beside it"
        else:
            outputs = {
                "dense_vecs": {0: "batch"},
                "sparse_vecs": ROWS,
                "colbert_vecs": {0: "batch", 1: "sequence-1"},
            }
            traced, run = model, heads
            what = "the graph gives dense_vecs [batch, hidden], sparse_vecs [batch, sequence, 1], colbert_vecs [batch, sequence - 1, hidden]"
        graphs.export(traced, run, XLMR_INPUTS, outputs, path, pad_id=1)
        records = three_records(folder, model, tiny)
        rows = rows_for_check([record for record in records if "ids" in record])
        check = graphs.compare(path, traced, run, rows, 1, XLMR_INPUTS, list(outputs), position_rule="padding")
        place.keep(
            name,
            records,
            task="embed, embed/sparse, embed/multi, rerank (colbert)",
            expect="served with all three methods from one encoder pass",
            what=f"bge-m3: XLM-R, cls pooling; {what}",
            holds="vector (dense); indices, values (greatest relu weight of each token, <s> </s> <pad> <unk> and zeros left out); "
            "rows (all tokens but the first, for some texts); query, passages, scores = MaxSim sums (bge-m3's own score divides "
            "them by the number of query rows)",
            graphs={"onnx/model.onnx": graphs.describe(path)},
            onnxMaxAbsDiff={"onnx/model.onnx": check},
            tolerance=TOLERANCE,
        )
