"""The cohere package: embed and rerank in both versions, and what it raises."""
import json
import sys

import cohere
from cohere.core.api_error import ApiError

given = json.load(sys.stdin)
texts, query = given["texts"], given["query"]
first = cohere.Client(given["key"], base_url=given["url"])
second = cohere.ClientV2(given["key"], base_url=given["url"])
types = ["float", "int8", "uint8", "binary", "ubinary", "base64"]


def refusal(call):
    try:
        call()
    except ApiError as error:
        return {"type": type(error).__name__, "status": error.status_code, "body": error.body}
    return None


def ranking(answer):
    return [[result.index, result.relevance_score] for result in answer.results]


def embed(client, **more):
    return client.embed(**{"model": "embed-english-v3.0", "input_type": "search_document", "texts": texts, **more})


def rerank(client, **more):
    return client.rerank(model="rerank-v3.5", query=query, documents=texts, **more)


def until_refused(client):
    for _ in range(3):
        refused = refusal(lambda: client.embed(
            texts=["a"], model="m", input_type="search_query", embedding_types=["float"], request_options={"max_retries": 0}
        ))
        if refused is not None:
            return refused
    return None


# More than its own batch of 96: it makes several calls at once and joins the answers.
many = [f"{text} {number}" for number in range(34) for text in texts]
by_type = embed(second, embedding_types=types).embeddings
slow = cohere.ClientV2(given["slowKey"], base_url=given["url"])
wrong = cohere.ClientV2(given["wrongKey"], base_url=given["url"])
print(
    json.dumps(
        {
            "first": embed(first).embeddings,
            "many": embed(first, texts=many).embeddings,
            "manyTexts": many,
            "firstByType": embed(first, embedding_types=["float"]).embeddings.float_,
            "byType": {"float": by_type.float_, **{name: getattr(by_type, name) for name in types[1:]}},
            "asQuery": embed(second, texts=[query], input_type="search_query", embedding_types=["float"]).embeddings.float_,
            "firstRerank": ranking(rerank(first)),
            "secondRerank": ranking(rerank(second)),
            "top": ranking(rerank(second, top_n=2)),
            "wrongKey": refusal(lambda: embed(wrong, embedding_types=["float"])),
            "wrongKeyToRerank": refusal(lambda: rerank(wrong)),
            "tooLong": refusal(lambda: embed(second, texts=[given["tooLong"]], truncate="NONE", embedding_types=["float"])),
            "cut": len(embed(second, texts=[given["tooLong"]], embedding_types=["float"]).embeddings.float_),
            "empty": refusal(lambda: embed(second, texts=[], embedding_types=["float"])),
            "tooFast": until_refused(slow),
            "retried": embed(slow, texts=texts[:1], embedding_types=["float"]).embeddings.float_,
        }
    )
)
