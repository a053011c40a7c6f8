"""LlamaIndex: its embedding for servers like OpenAI's, and the one for text-embeddings-inference."""
import json
import sys

from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference

given = json.load(sys.stdin)
texts, query, url = given["texts"], given["query"], given["url"]
like = OpenAILikeEmbedding(model_name="any", api_base=url + "/v1", api_key=given["key"], embed_batch_size=4)
inference = TextEmbeddingsInference(model_name="any", base_url=url, auth_token=given["key"])
print(
    json.dumps(
        {
            "openaiLike": like.get_text_embedding_batch(texts),
            "openaiLikeQuery": like.get_query_embedding(query),
            "inference": inference.get_text_embedding_batch(texts),
            "inferenceQuery": inference.get_query_embedding(query),
        }
    )
)
