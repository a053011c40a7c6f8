"""Owns the late-interaction models: three in PyLate's form and one in the form of the original ColBERT."""

import shutil
import string

import torch
from sentence_transformers import MultiVectorEncoder
from tokenizers import AddedToken
from transformers import BertModel, BertPreTrainedModel

from . import graphs
from .corpus import FEW_TEXTS, PASSAGES, QUERIES
from .dense import INPUTS, ROWS, bert_config, rows_for_check
from .folders import copy_of, write_model, write_modules, write_weights
from .records import from_base64, to_base64, write_json
from .vocabularies import wordpiece
from .weights import HIDDEN, create, draw

ROW_WIDTH = 8
QUERY_LENGTH = 32
DOCUMENT_LENGTH = 44
ROW_TOLERANCE = {"rowCosine": 0.99999, "maxSim": 1e-4}


class HF_ColBERT(BertPreTrainedModel):
    """The original ColBERT: BERT and a projection without bias, in one checkpoint."""

    def __init__(self, config):
        super().__init__(config)
        self.bert = BertModel(config)
        self.linear = torch.nn.Linear(config.hidden_size, ROW_WIDTH, bias=False)
        self.post_init()


def project(model, feeds):
    return model.linear(model.bert(**feeds).last_hidden_state)


class Rules:
    """How ids and rows of a text come about; the formula of PyLate and of ColBERT, which are the same but for the names."""

    def __init__(self, tiny, markers, expands, attends):
        self.tokenizer, self.expands, self.attends = tiny.tokenizer, expands, attends
        self.markers = {kind: self.tokenizer.token_to_id(marker) for kind, marker in markers.items()}
        self.mask_id = self.tokenizer.token_to_id("[MASK]")
        self.skipped = {self.tokenizer.token_to_id(symbol) for symbol in string.punctuation}
        assert None not in self.skipped and None not in self.markers.values()

    def tokens(self, text, kind):
        """Ids with the marker behind `[CLS]`, the attention mask, and which rows count."""
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        total = len(self.tokenizer.encode(text).ids) + 1
        length = QUERY_LENGTH if kind == "query" else DOCUMENT_LENGTH
        self.tokenizer.enable_truncation(length - 1)
        ids = self.tokenizer.encode(text).ids
        self.tokenizer.no_truncation()
        ids = [ids[0], self.markers[kind], *ids[1:]]
        attention = [1] * len(ids)
        if kind == "query" and self.expands:
            missing = length - len(ids)
            ids, attention = ids + [self.mask_id] * missing, attention + [int(self.attends)] * missing
        kept = [i for i, token in enumerate(ids) if kind == "query" or token not in self.skipped]
        return {"ids": ids, "attentionMask": attention, "keptRows": kept, "tokensBeforeTruncation": total}


def rows_of(model, run, facts):
    ids = torch.tensor([facts["ids"]])
    feeds = {
        "input_ids": ids,
        "attention_mask": torch.tensor([facts["attentionMask"]]),
        "token_type_ids": torch.zeros_like(ids),
    }
    with torch.no_grad():
        rows = run(model, feeds)[0]
    return torch.nn.functional.normalize(rows[facts["keptRows"]], p=2, dim=1)


def row_records(folder, model, run, rules):
    reference = MultiVectorEncoder(str(folder), device="cpu", model_kwargs={"attn_implementation": "eager"})
    records = []
    for text in FEW_TEXTS:
        for kind in ("query", "document"):
            facts = rules.tokens(text, kind)
            rows = rows_of(model, run, facts)
            encode = reference.encode_query if kind == "query" else reference.encode_document
            other = torch.as_tensor(encode(text, show_progress_bar=False))
            agrees = other.shape == rows.shape and float((other - rows).abs().max()) < 1e-5
            # sentence-transformers puts the marker before the text as text, so that a marker inside the text is one too.
            assert agrees or "[Q]" in text or "[unused0]" in text, (folder, text, kind)
            records.append(
                {
                    "text": text,
                    "kind": kind,
                    **facts,
                    "rows": len(rows),
                    "dimension": ROW_WIDTH,
                    "matrix": to_base64(rows),
                    "agreesWithSentenceTransformers": agrees,
                }
            )
    for query in QUERIES:
        query_rows = rows_of(model, run, rules.tokens(query, "query"))
        passages = [rows_of(model, run, rules.tokens(passage, "document")) for passage in PASSAGES]
        scores = [float((query_rows @ rows.T).max(dim=1).values.sum()) for rows in passages]
        records.append({"query": query, "passages": PASSAGES, "scores": scores})
    assert all(len(from_base64(r["matrix"])) == r["rows"] * ROW_WIDTH for r in records if "matrix" in r)
    return records


HOLDS = (
    "embed/multi: ids and attentionMask as fed, keptRows (positions whose rows count), rows; "
    "rerank (colbert): query, passages, scores = MaxSim sums"
)


def make(place):
    make_pylate(place)
    make_original(place)


def make_pylate(place):
    tiny = copy_of(wordpiece(), pad_token="[MASK]")
    tiny.tokenizer.add_tokens([AddedToken("[Q] ", normalized=True), AddedToken("[D] ", normalized=True)])
    model = create(BertModel, bert_config(tiny), seed=50)
    projection = draw(torch.nn.Linear(HIDDEN, ROW_WIDTH, bias=False), seed=51)
    first = "colbert-pylate"

    def run(model, feeds):
        return projection(model(**feeds).last_hidden_state)

    for name, more, expands, attends in [
        (first, {"do_query_expansion": True, "attend_to_expansion_tokens": False}, True, False),
        ("colbert-pylate-attending", {"attend_to_expansion_tokens": True}, True, True),
        ("colbert-pylate-unexpanded", {"do_query_expansion": False, "attend_to_expansion_tokens": False}, False, False),
    ]:
        folder = place.folder(name)
        write_model(folder, model, tiny)
        write_json(
            folder / "sentence_bert_config.json", {"max_seq_length": DOCUMENT_LENGTH - 1, "do_lower_case": False}
        )
        write_modules(
            folder, [("", "sentence_transformers.models.Transformer"), ("1_Dense", "pylate.models.Dense.Dense")]
        )
        dense = {
            "in_features": HIDDEN,
            "out_features": ROW_WIDTH,
            "bias": False,
            "activation_function": "torch.nn.modules.linear.Identity",
        }
        write_json(folder / "1_Dense" / "config.json", dense)
        write_weights(folder / "1_Dense", torch.nn.ModuleDict({"linear": projection}))
        write_json(
            folder / "config_sentence_transformers.json",
            {
                "model_type": "ColBERT",
                "prompts": {},
                "default_prompt_name": None,
                "similarity_fn_name": "MaxSim",
                "query_prefix": "[Q] ",
                "document_prefix": "[D] ",
                "query_length": QUERY_LENGTH,
                "document_length": DOCUMENT_LENGTH,
                "skiplist_words": list(string.punctuation),
                **more,
            },
        )
        path = folder / "onnx" / "model.onnx"
        facts = {"sharesGraphWith": first}
        if name == first:
            graphs.export(
                model, graphs.with_added_mask(graphs.last_hidden_state), INPUTS, {"last_hidden_state": ROWS}, path
            )
        else:
            shutil.copytree(place.build / first / "onnx", folder / "onnx")
        records = row_records(folder, model, run, Rules(tiny, {"query": "[Q] ", "document": "[D] "}, expands, attends))
        if name == first:
            rows = rows_for_check([r for r in records if r.get("kind") == "document"])
            check = graphs.compare(path, model, graphs.last_hidden_state, rows, 0, INPUTS, ["last_hidden_state"])
            facts = {"graphs": {"onnx/model.onnx": graphs.describe(path)}, "onnxMaxAbsDiff": {"onnx/model.onnx": check}}
        place.keep(
            name,
            records,
            task="embed/multi, rerank (colbert)",
            expect="served",
            what=f"PyLate: projection {HIDDEN} -> {ROW_WIDTH} in 1_Dense (not in the graph), markers '[Q] ' and '[D] ', queries "
            + (
                f"filled to {QUERY_LENGTH} with [MASK], {'attended' if attends else 'not attended'}"
                if expands
                else "not expanded"
            )
            + f", documents of {DOCUMENT_LENGTH}, punctuation rows left out of documents",
            holds=HOLDS,
            tolerance=ROW_TOLERANCE,
            **facts,
        )


def make_original(place):
    name = "colbert-original"
    folder = place.folder(name)
    tiny = wordpiece(max_tokens=64)
    config = bert_config(tiny)
    model = create(HF_ColBERT, config, seed=52)
    write_model(folder, model, tiny)
    write_json(
        folder / "artifact.metadata",
        {
            "query_token_id": "[unused0]",
            "doc_token_id": "[unused1]",
            "query_token": "[Q]",
            "doc_token": "[D]",
            "dim": ROW_WIDTH,
            "query_maxlen": QUERY_LENGTH,
            "doc_maxlen": DOCUMENT_LENGTH,
            "mask_punctuation": True,
            "attend_to_mask_tokens": False,
            "similarity": "cosine",
        },
    )
    path = folder / "onnx" / "model.onnx"
    graphs.export(model, graphs.with_added_mask(project), INPUTS, {"contextual": ROWS}, path)
    records = row_records(
        folder, model, project, Rules(tiny, {"query": "[unused0]", "document": "[unused1]"}, True, False)
    )
    rows = rows_for_check([r for r in records if r.get("kind") == "document"])
    check = graphs.compare(path, model, project, rows, 0, INPUTS, ["contextual"])
    place.keep(
        name,
        records,
        task="embed/multi, rerank (colbert)",
        expect="served",
        what=f"ColBERT: artifact.metadata, architecture HF_ColBERT, the graph projects to {ROW_WIDTH} (output contextual, not "
        f"normalised), markers [unused0] and [unused1], queries filled to {QUERY_LENGTH} with [MASK], not attended",
        holds=HOLDS,
        graphs={"onnx/model.onnx": graphs.describe(path)},
        onnxMaxAbsDiff={"onnx/model.onnx": check},
        tolerance=ROW_TOLERANCE,
    )
