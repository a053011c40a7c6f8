"""langchain-openai: texts as they are, and token ids, which it sends unless it is told not to."""
import json
import sys

import openai
import tiktoken
from langchain_openai import OpenAIEmbeddings

given = json.load(sys.stdin)
texts, query = given["texts"], given["query"]
# The real table is downloaded on first use; one token a byte does for what is asked here: are ids sent, and what comes back.
table = tiktoken.Encoding("bytes", pat_str=".|\n", mergeable_ranks={bytes([b]): b for b in range(256)}, special_tokens={})
tiktoken.encoding_for_model = tiktoken.get_encoding = lambda _name: table


def embeddings(**more):
    return OpenAIEmbeddings(base_url=given["url"] + "/v1", api_key=given["key"], max_retries=0, **more)


as_text = embeddings(check_embedding_ctx_length=False)
try:
    embeddings().embed_documents(texts)
    refused = None
except openai.BadRequestError as error:
    refused = str(error)
print(
    json.dumps(
        {
            "documents": as_text.embed_documents(texts),
            "query": as_text.embed_query(query),
            "chunked": embeddings(check_embedding_ctx_length=False, chunk_size=2).embed_documents(texts),
            "refused": refused,
        }
    )
)
