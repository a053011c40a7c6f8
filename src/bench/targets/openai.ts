/** Owns asking a server that speaks OpenAI's embeddings API. */
import { countVectors, membersOf, tokensOf } from '../target.ts';
import type { Target } from '../target.ts';

/** The model that a server lists first. */
function firstModel(body: unknown): string | null {
  const { data } = membersOf(body);
  const { id } = membersOf(Array.isArray(data) ? data[0] : null);
  return typeof id === 'string' ? id : null;
}

/** `POST /v1/embeddings`, which asks for a model by name. */
export const openaiTarget: Target = {
  path: '/v1/embeddings',
  async settle(client, path, model) {
    if (model !== null) return { model, encoding: 'json' };
    const { body, status } = await client.get(path.replace(/\/embeddings$/u, '/models'));
    const found = status === 200 ? firstModel(JSON.parse(body.toString())) : null;
    if (found === null) throw new Error('the server lists no model: name one with --model or --compare-model');
    return { model: found, encoding: 'json' };
  },
  body: ({ texts }, { model }) => ({ model, input: texts }),
  read(body) {
    const { data, usage } = membersOf(body);
    const vectors = Array.isArray(data) ? data.map((entry) => membersOf(entry)['embedding']) : [];
    return { vectors: countVectors(vectors), tokens: tokensOf(membersOf(usage)['prompt_tokens']) };
  },
};
