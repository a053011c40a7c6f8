"""Owns the ONNX files: how they are exported and how they are compared with PyTorch."""

import warnings

import numpy as np
import onnx
import onnxruntime
import torch

OPSET = 17


class Traced(torch.nn.Module):
    """A model as a function of the tensors that the graph gets, in the order of `names`."""

    def __init__(self, model, run, names):
        super().__init__()
        self.model, self.run, self.names = model, run, names

    def forward(self, *tensors):
        return self.run(self.model, dict(zip(self.names, tensors)))


def last_hidden_state(model, feeds):
    return model(**feeds).last_hidden_state


def with_added_mask(run):
    """The same function with the mask as exporters of BERT wrote it for years: (1 - mask) * least float32, added to scores."""

    def traced(model, feeds):
        mask = feeds["attention_mask"][:, None, None, :].to(torch.float32)
        return run(model, {**feeds, "attention_mask": (1.0 - mask) * torch.finfo(torch.float32).min})

    return traced


def logits(model, feeds):
    return model(**feeds).logits


def example_feeds(names, batch, sequence, pad_id):
    """Inputs to trace with; the last row of several is padded."""
    ids = torch.arange(batch * sequence).reshape(batch, sequence) % 40 + 5
    mask = torch.ones_like(ids)
    if batch > 1:
        mask[-1, sequence - 2 :] = 0
        ids[-1, sequence - 2 :] = pad_id
    known = {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": torch.zeros_like(ids),
        "position_ids": torch.arange(sequence).expand(batch, sequence).contiguous() + 2,
    }
    return {name: known[name] for name in names}


def export(model, run, inputs, outputs, path, pad_id=0, free=("batch", "sequence"), batch=2, sequence=9):
    """Write the graph; `outputs` says for each output which of its axes are free."""
    path.parent.mkdir(parents=True, exist_ok=True)
    feeds = example_feeds(inputs, batch, sequence, pad_id)
    in_axes = {axis: name for axis, name in enumerate(("batch", "sequence")) if name in free}
    axes = {name: in_axes for name in inputs}
    for name, named in outputs.items():
        axes[name] = {axis: dim for axis, dim in named.items() if dim.split("-")[0] in free}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Traced(model, run, inputs).eval(),
            tuple(feeds.values()),
            str(path),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes={name: named for name, named in axes.items() if named},
            opset_version=OPSET,
            dynamo=False,
        )
    strip(path)


def strip(path):
    """Take the traces of the source code out of the file: they name folders of the machine that made it."""
    graph = onnx.load(str(path))
    for node in graph.graph.node:
        node.ClearField("doc_string")
        del node.metadata_props[:]
    onnx.checker.check_model(graph)
    onnx.save(graph, str(path))


def open_session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run_session(session, feeds):
    """Outputs by name; only what the graph asks for is fed."""
    wanted = {entry.name for entry in session.get_inputs()}
    values = session.run(None, {name: np.asarray(value) for name, value in feeds.items() if name in wanted})
    return dict(zip([entry.name for entry in session.get_outputs()], values))


def feeds_of(rows, pad_id, left=False, position_rule="mask"):
    """The feeds of several texts, padded to the longest; `rows` are (ids, typeIds or None)."""
    longest = max(len(ids) for ids, _ in rows)
    shape = (len(rows), longest)
    ids, mask, types = np.full(shape, pad_id, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, (text_ids, type_ids) in enumerate(rows):
        place = slice(longest - len(text_ids), longest) if left else slice(0, len(text_ids))
        ids[row, place], mask[row, place] = text_ids, 1
        if type_ids is not None:
            types[row, place] = type_ids
    feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    if position_rule == "padding":
        # RoBERTa: counted behind the padding id, and every padding id has that position, a literal one too.
        known = (ids != pad_id).astype(np.int64)
        feeds["position_ids"] = np.cumsum(known, 1) * known + pad_id
    else:
        feeds["position_ids"] = np.maximum(np.cumsum(mask, 1) - 1, 0)
    return feeds


def compare(path, model, run, rows, pad_id, names, output_names, left=False, position_rule="mask", padded=True):
    """Greatest difference to PyTorch over real tokens: each text alone, and all in one padded run."""
    session = open_session(path)
    worst = {"alone": 0.0}

    def expected(feeds):
        with torch.no_grad():
            values = run(model, {n: torch.from_numpy(np.asarray(feeds[n])) for n in names})
        values = values if isinstance(values, tuple) else (values,)
        return dict(zip(output_names, [value.numpy() for value in values]))

    singles = []
    for row in rows:
        feeds = feeds_of([row], pad_id, left, position_rule)
        want = expected(feeds)
        singles.append(want)
        got = run_session(session, feeds)
        worst["alone"] = max(worst["alone"], *(float(np.abs(got[n] - want[n]).max()) for n in output_names))
    if padded:
        got = run_session(session, feeds_of(rows, pad_id, left, position_rule))
        worst["batch"] = 0.0
        for i, want in enumerate(singles):
            for name in output_names:
                one = want[name][0]
                kept = got[name][i]
                # An output without a sequence axis has no padding to leave out.
                if one.shape != kept.shape:
                    kept = kept[-len(one) :] if left else kept[: len(one)]
                worst["batch"] = max(worst["batch"], float(np.abs(kept - one).max()))
    return {key: float(f"{value:.1e}") for key, value in worst.items()}


def describe(path, precision="fp32"):
    """What the manifest says of a graph file."""
    session = open_session(path)
    return {
        "precision": precision,
        "inputs": [entry.name for entry in session.get_inputs()],
        "outputs": {
            entry.name: [str(d) if isinstance(d, str) else d for d in entry.shape] for entry in session.get_outputs()
        },
    }
