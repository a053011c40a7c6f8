"""huggingface_hub.InferenceClient, which posts to the address that it is given as to text-embeddings-inference."""
import json
import sys

from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

given = json.load(sys.stdin)
texts, query, url = given["texts"], given["query"], given["url"]
client = InferenceClient(base_url=url, token=given["key"])


def refusal(call):
    try:
        call()
    except HfHubHTTPError as error:
        return {"status": error.response.status_code, "text": error.response.text}
    return None


print(
    json.dumps(
        {
            "one": client.feature_extraction(texts[0]).tolist(),
            "list": client.feature_extraction(texts).tolist(),
            "embed": client.feature_extraction(texts, model=url + "/embed", normalize=True).tolist(),
            "cut": client.feature_extraction([given["tooLong"]], truncate=True, truncation_direction="right").tolist(),
            "similarity": client.sentence_similarity(query, texts, model=url + "/similarity"),
            "tooLong": refusal(lambda: client.feature_extraction([given["tooLong"]])),
            "wrongKey": refusal(lambda: InferenceClient(base_url=url, token=given["wrongKey"]).feature_extraction("a")),
        }
    )
)
