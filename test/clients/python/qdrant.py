"""qdrant-client in memory: a collection with the dense, the sparse and the multi-vector of each text."""
import json
import sys

import httpx
from openai import OpenAI
from qdrant_client import QdrantClient, models

given = json.load(sys.stdin)
texts, query, url = given["texts"], given["query"], given["url"]
http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {given['key']}"})
openai = OpenAI(base_url=url + "/v1", api_key=given["key"])


def dense(inputs):
    return [item.embedding for item in openai.embeddings.create(model="any", input=inputs).data]


def sparse(inputs):
    answer = http.post("/embed_sparse", json={"inputs": inputs, "truncate": True}).raise_for_status().json()
    return [
        models.SparseVector(indices=[term["index"] for term in terms], values=[term["value"] for term in terms])
        for terms in answer
    ]


def multi(inputs, kind):
    call = {"jsonrpc": "2.0", "id": 1, "method": "embed/multi", "params": {"inputs": inputs, "kind": kind}}
    return http.post("/rcp/embed/multi", json=call).raise_for_status().json()["result"]["matrices"]


vectors = list(zip(dense(texts), sparse(texts), multi(texts, "document")))
size, rows = len(vectors[0][0]), len(vectors[0][2][0])
database = QdrantClient(":memory:")
database.create_collection(
    "texts",
    vectors_config={
        "dense": models.VectorParams(size=size, distance=models.Distance.DOT),
        "multi": models.VectorParams(
            size=rows,
            distance=models.Distance.DOT,
            multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
        ),
    },
    sparse_vectors_config={"sparse": models.SparseVectorParams()},
)
database.upsert(
    "texts",
    [
        models.PointStruct(id=index, vector={"dense": one, "sparse": terms, "multi": matrix})
        for index, (one, terms, matrix) in enumerate(vectors)
    ],
)


def found(name, vector):
    points = database.query_points("texts", query=vector, using=name, limit=len(texts)).points
    return [[point.id, point.score] for point in points]


print(
    json.dumps(
        {
            "dense": found("dense", dense([query])[0]),
            "sparse": found("sparse", sparse([query])[0]),
            "multi": found("multi", multi([query], "query")[0]),
        }
    )
)
