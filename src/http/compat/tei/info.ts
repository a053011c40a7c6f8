/** Owns `/info` of text-embeddings-inference. */
import type { ModelFacts } from '../../../rpc/served-facts.ts';
import type { Answer } from '../../answer.ts';
import type { CompatCall } from '../family.ts';
import { firstModelOf } from './inputs.ts';

/** That service's names of precisions. */
const typeNames: Readonly<Record<string, string>> = { fp32: 'float32', fp16: 'float16' };

/** The one model that such a client sees: the first that makes vectors, else the first there is. */
export function answerInfo({ served }: Pick<CompatCall, 'served'>): Answer {
  const { limits, server, models } = served;
  const model = firstModelOf(served, 'embed') ?? firstModelOf(served, 'embed/sparse') ?? models[0];
  const info = {
    model_id: model?.model ?? null,
    model_sha: model?.revision ?? null,
    model_dtype: model === undefined ? null : (typeNames[model.precision] ?? model.precision),
    served_model_name: model?.model ?? null,
    model_type: model === undefined ? null : typeOf(model),
    max_concurrent_requests: limits.maxQueuedItems,
    max_input_length: model?.maxInputTokens ?? null,
    max_batch_tokens: limits.maxBatchTokens,
    max_batch_requests: limits.maxBatchItems,
    max_client_batch_size: limits.batchLimit,
    auto_truncate: false,
    tokenization_workers: 1,
    version: server.version,
    sha: null,
    docker_label: null,
  };
  return { status: 200, body: JSON.stringify(info) };
}

function typeOf({ methods, pooling }: ModelFacts): Record<string, unknown> {
  if (methods.includes('embed')) return { embedding: { pooling: pooling ?? 'mean' } };
  if (methods.includes('embed/sparse')) return { embedding: { pooling: 'splade' } };
  return { reranker: { id2label: { 0: 'LABEL_0' }, label2id: { LABEL_0: 0 } } };
}
