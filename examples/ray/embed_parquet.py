"""Embeds a column of a Parquet data set on a Ray cluster, through trivec servers or one embedded engine per worker.

    python embed_parquet.py parquet/ vectors/ --server http://10.0.0.1:8000 --server http://10.0.0.2:8000 --workers 8
    python embed_parquet.py parquet/ vectors/ --engine "node /srv/trivec/dist/main.js serve --stdio --device cpu" --workers 2
    python embed_parquet.py parquet/ vectors/ --engine "node /srv/trivec/dist/main.js serve --stdio --device cuda" --gpus 1 --workers 8

A block is one row group of an input file; its output is one file of the same name and number. A file appears when all
of it is there, so that a run which was interrupted, however, is resumed by starting it again: blocks whose file exists
are skipped. The key of the servers is taken from TRIVEC_API_KEY. RAY_ADDRESS names a cluster; without it Ray starts here.
"""

import argparse
import glob
import hashlib
import json
import os
import shlex
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import pyarrow as pa
import pyarrow.parquet as pq
import ray

from trivec_client import Client, HttpTransport, StdioTransport

MANIFEST = "manifest.json"


def blocks_of(source):
    """Every row group of every file, in a fixed order, with the name of its output."""
    paths = sorted(glob.glob(os.path.join(source, "**", "*.parquet"), recursive=True)) if os.path.isdir(source) else [source]
    base = source if os.path.isdir(source) else os.path.dirname(source)
    for path in paths:
        name = os.path.relpath(path, base).removesuffix(".parquet")
        # Two files in two folders may have one name.
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        for group in range(pq.ParquetFile(path).num_row_groups):
            yield {"path": path, "group": group, "output": f"{os.path.basename(name)}-{digest}-{group:06d}.parquet"}


def write_whole(path, write):
    """A file that is complete or not there: written beside its place, then renamed."""
    partial = f"{path}.{os.uname().nodename}.{os.getpid()}.partial"
    write(partial)
    with open(partial, "rb") as file:
        os.fsync(file.fileno())
    os.replace(partial, path)


def check_manifest(folder, wanted):
    """Refuses to mix what does not belong together: another input, column or model goes to another folder."""
    path = os.path.join(folder, MANIFEST)
    if os.path.exists(path):
        with open(path, encoding="utf8") as file:
            found = json.load(file)
        if found != wanted:
            raise SystemExit(f"{folder} holds something else:\n  there: {found}\n  asked: {wanted}")
        return

    def write(partial):
        with open(partial, "w", encoding="utf8") as file:
            json.dump(wanted, file)

    write_whole(path, write)


def client_of(options, first):
    if options["engine"]:
        return Client([StdioTransport(shlex.split(options["engine"]))])
    return Client([HttpTransport(url, options["api_key"]) for url in options["servers"]], first)


def identity_of(options):
    client = client_of(options, first=0)
    try:
        return client.identity()
    finally:
        client.close()


class Embedder:
    """One worker: takes one block at a time, and has at most `in_flight` calls of it on their way."""

    def __init__(self, options):
        self._options = options
        # Workers begin at different servers.
        self._client = client_of(options, first=os.getpid())
        self._threads = ThreadPoolExecutor(options["in_flight"])
        if self._client.identity() != options["identity"]:
            raise RuntimeError("this worker's model is not the one of the run")

    def __call__(self, batch):
        rows = [self._embed(*block) for block in zip(batch["path"], batch["group"], batch["output"])]
        return {"output": batch["output"], "rows": rows}

    def _embed(self, path, group, output):
        options = self._options
        table = pq.ParquetFile(path).read_row_group(int(group))
        texts = table.column(options["column"]).to_pylist()
        # A text that is missing has no vector; its row stays.
        there = [index for index, text in enumerate(texts) if text is not None]
        parts = [there[start : start + options["batch"]] for start in range(0, len(there), options["batch"])]
        embed = lambda part: self._client.embed([texts[index] for index in part], options["kind"])
        vectors = [None] * len(texts)
        for part, found in zip(parts, self._threads.map(embed, parts)):
            for index, vector in zip(part, found):
                vectors[index] = vector
        kept = table.select(options["keep"]) if options["keep"] else table.drop_columns([options["column"]])
        result = kept.append_column("embedding", pa.array(vectors, pa.list_(pa.float32())))
        write_whole(os.path.join(options["target"], output), lambda partial: pq.write_table(result, partial))
        return len(texts)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="a Parquet file, or a folder with Parquet files that every worker can read")
    parser.add_argument("target", help="a folder that every worker can write")
    parser.add_argument("--server", action="append", default=[], help="address of a server; repeat for several")
    parser.add_argument("--engine", help="command of an embedded engine, such as `node dist/main.js serve --stdio`")
    parser.add_argument("--column", default="text")
    parser.add_argument("--keep", action="append", default=[], help="column to copy; default: all but the text")
    parser.add_argument("--kind", default="document", choices=["document", "query"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--gpus", type=float, default=0, help="GPUs of each worker, for an embedded engine")
    parser.add_argument("--batch", type=int, default=32, help="texts in one call")
    parser.add_argument("--in-flight", type=int, default=4, help="calls that one worker has on their way")
    arguments = parser.parse_args()
    if bool(arguments.server) == bool(arguments.engine):
        parser.error("name either servers or an engine")
    return arguments


def main():
    arguments = parse_arguments()
    source, target = os.path.abspath(arguments.source), os.path.abspath(arguments.target)
    blocks = list(blocks_of(source))
    if not blocks:
        raise SystemExit(f"{source} has no row group of a Parquet file: a wrong folder, or no *.parquet in it")
    os.makedirs(target, exist_ok=True)
    options = {
        "servers": arguments.server,
        "engine": arguments.engine,
        "api_key": os.environ.get("TRIVEC_API_KEY"),
        "target": target,
        "column": arguments.column,
        "keep": arguments.keep,
        "kind": arguments.kind,
        "batch": arguments.batch,
        "in_flight": arguments.in_flight,
    }
    pending = [block for block in blocks if not os.path.exists(os.path.join(target, block["output"]))]
    start_ray(arguments.workers)
    try:
        rows = sum(run(blocks, pending, options, arguments))
    finally:
        # Said, not left to the end of the interpreter: that waits for the workers half a minute.
        ray.shutdown()
    for partial in glob.glob(os.path.join(glob.escape(target), "*.partial")):
        os.remove(partial)
    print(f"{rows} rows in {len(pending)} blocks", flush=True)


def run(blocks, pending, options, arguments):
    """The number of rows of each block as it is done."""
    resources = {"num_cpus": 1, "num_gpus": arguments.gpus}
    # Asked where the workers will be: the driver's machine may reach no server and have no GPU.
    options["identity"] = ray.get(ray.remote(**resources)(identity_of).remote(options))
    said = {name: options[name] for name in ("column", "keep", "kind", "identity")}
    check_manifest(options["target"], {"source": os.path.abspath(arguments.source), **said})
    print(f"{len(blocks)} blocks, {len(blocks) - len(pending)} done before", flush=True)
    if pending:
        yield from embed_blocks(pending, options, arguments.workers, resources)


def start_ray(workers):
    """A cluster that RAY_ADDRESS names, whose workers get the files beside this one; else Ray on this machine."""
    if "RAY_ADDRESS" in os.environ:
        ray.init(runtime_env={"working_dir": os.path.dirname(os.path.abspath(__file__))})
    else:
        # Logical CPUs: a machine with fewer cores than workers shares them.
        ray.init("local", num_cpus=max(workers, os.cpu_count() or 1), include_dashboard=False)


def embed_blocks(pending, options, workers, resources):
    """As `run`; Ray holds back what no worker is free for."""
    done = ray.data.from_items(pending, override_num_blocks=min(len(pending), 8 * workers)).map_batches(
        Embedder,
        fn_constructor_args=(options,),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=workers),
        **resources,
    )
    for row in done.iter_rows():
        print(f"{row['output']}: {row['rows']} rows", flush=True)
        yield int(row["rows"])


if __name__ == "__main__":
    main()
