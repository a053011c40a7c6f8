"""Owns the folders: the complete one that the reference implementation reads, and the one that is kept."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from safetensors.torch import save_file
from tokenizers import Tokenizer

from .records import write_json, write_lines

# Weights of the encoder are in the graph; PyTorch's copy is needed only while the golden values are made.
NOT_KEPT = {"model.safetensors", "README.md", ".gitattributes"}


@dataclass
class Workplace:
    """Where models are built (`build`) and where what is kept of them goes (`out`)."""

    build: Path
    out: Path
    entries: list = field(default_factory=list)

    def folder(self, name):
        path = self.build / name
        if path.exists():
            shutil.rmtree(path)
        path.mkdir(parents=True)
        return path

    def keep(self, name, records, **facts):
        """Copy the folder without PyTorch's encoder weights, write its golden lines and note both in the manifest."""
        source, target = self.build / name, self.out / "models" / name
        if target.exists():
            shutil.rmtree(target)
        for path in sorted(source.rglob("*")):
            relative = path.relative_to(source)
            if path.is_dir() or (len(relative.parts) == 1 and relative.name in NOT_KEPT):
                continue
            (target / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / relative)
        entry = {"name": name, "folder": f"models/{name}", **facts}
        if records is not None:
            golden = f"golden/{name}.jsonl"
            write_lines(self.out / golden, records)
            entry["golden"] = {"file": golden, "records": len(records), "fields": sorted(records[0])}
        entry["files"] = sorted(str(p.relative_to(target)) for p in target.rglob("*") if p.is_file())
        self.entries.append(entry)


def write_tokenizer(folder, tiny):
    tiny.tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", tiny.config)
    special = {key: value for key, value in tiny.config.items() if key.endswith("_token")}
    write_json(folder / "special_tokens_map.json", special)


def copy_of(tiny, **changes):
    """The same tokenizer, free to be changed, with other facts in its configuration."""
    return type(tiny)(Tokenizer.from_str(tiny.tokenizer.to_str()), {**tiny.config, **changes})


def write_model(folder, model, tiny):
    """What `save_pretrained` of model and tokenizer gives."""
    model.save_pretrained(folder)
    write_tokenizer(folder, tiny)


def write_weights(folder, module, name="model.safetensors"):
    folder.mkdir(parents=True, exist_ok=True)
    save_file({key: value.contiguous() for key, value in module.state_dict().items()}, str(folder / name))


def write_modules(folder, modules):
    """`modules.json`; each module is (path, class name with its package)."""
    listed = [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (path, kind) in enumerate(modules)]
    write_json(folder / "modules.json", listed)


POOLING_SWITCHES = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}


def pooling_config(modes, width, include_prompt=True):
    """The file of a Pooling module in the form with one switch for each mode."""
    switches = {switch: mode in modes for mode, switch in POOLING_SWITCHES.items()}
    return {"word_embedding_dimension": width, **switches, "include_prompt": include_prompt}
