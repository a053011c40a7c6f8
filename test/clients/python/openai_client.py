"""The openai package: what it gives for every form of a call, and what it raises."""
import json
import sys

import openai

given = json.load(sys.stdin)


def client(key, retries=0):
    return openai.OpenAI(base_url=given["url"] + "/v1", api_key=key, max_retries=retries)


def vectors(answer):
    return [item.embedding for item in answer.data]


def refusal(call):
    try:
        call()
    except openai.APIStatusError as error:
        return {"type": type(error).__name__, "status": error.status_code, "message": error.message, "body": error.body}
    return None


def until_refused(call):
    for _ in range(3):
        refused = refusal(call)
        if refused is not None:
            return refused
    return None


good = client(given["key"])
create = good.embeddings.create
slow = client(given["slowKey"])
model = "text-embedding-3-small"
one = create(model=model, input=given["texts"][0])
print(
    json.dumps(
        {
            "one": vectors(one),
            "list": vectors(create(model=model, input=given["texts"])),
            "float": vectors(create(model=model, input=given["texts"], encoding_format="float")),
            "base64": vectors(create(model=model, input=given["texts"], encoding_format="base64")),
            "usage": one.usage.model_dump(),
            "models": [item.id for item in good.models.list()],
            "wrongKey": refusal(lambda: client(given["wrongKey"]).models.list()),
            "wrongKeyToEmbed": refusal(lambda: client(given["wrongKey"]).embeddings.create(model=model, input="a")),
            "dimensions": refusal(lambda: create(model=model, input="a", dimensions=100)),
            "tooLong": refusal(lambda: create(model=model, input=given["tooLong"])),
            "tokenIds": refusal(lambda: create(model=model, input=[[15339, 1917]])),
            "empty": refusal(lambda: create(model=model, input=[])),
            "tooFast": until_refused(lambda: slow.embeddings.create(model=model, input="a")),
            "retried": vectors(client(given["slowKey"], 4).embeddings.create(model=model, input=given["texts"][0])),
        }
    )
)
