"""Owns the Parquet files of a test: `write` makes them from JSON on stdin, `read` prints them as JSON."""

import base64
import glob
import json
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

command, folder = sys.argv[1:]
if command == "write":
    # {file: [[row, …], …]}, a list for each row group
    for name, groups in json.load(sys.stdin).items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
        with pq.ParquetWriter(path, schema) as writer:
            for rows in groups:
                writer.write_table(pa.Table.from_pylist(rows, schema))
else:
    # {file: [{id, embedding as base64}, …]}
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.parquet"))):
        rows = pq.read_table(path).to_pylist()
        for row in rows:
            vector = row["embedding"]
            row["embedding"] = None if vector is None else base64.b64encode(np.array(vector, "<f4").tobytes()).decode()
        found[os.path.basename(path)] = rows
    json.dump(found, sys.stdout)
