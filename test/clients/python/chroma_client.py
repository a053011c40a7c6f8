"""chromadb in memory, with its own embedding functions for OpenAI and for text-embeddings-inference."""
import json
import sys
import warnings

import chromadb
from chromadb.config import Settings
from chromadb.utils.embedding_functions import HuggingFaceEmbeddingServer, OpenAIEmbeddingFunction

warnings.simplefilter("ignore")
given = json.load(sys.stdin)
texts, query, url = given["texts"], given["query"], given["url"]
functions = {
    "openai": OpenAIEmbeddingFunction(api_key=given["key"], api_base=url + "/v1", model_name="any"),
    "server": HuggingFaceEmbeddingServer(url=url + "/embed", api_key=given["key"]),
}
database = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
printed = {}
for name, function in functions.items():
    collection = database.create_collection(name, embedding_function=function, metadata={"hnsw:space": "cosine"})
    ids = [str(index) for index in range(len(texts))]
    collection.add(ids=ids, documents=texts)
    found = collection.query(query_texts=[query], n_results=len(texts))
    printed[name] = {
        "vectors": [[float(value) for value in vector] for vector in collection.get(ids=ids, include=["embeddings"])["embeddings"]],
        "found": [int(each) for each in found["ids"][0]],
    }
print(json.dumps(printed))
