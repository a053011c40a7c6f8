/** Owns the process that runs a model with transformers.js, whose inference engine is mapped into it. */
import { basename, dirname } from 'node:path';
import type { PreTrainedModel, PreTrainedTokenizer, Tensor } from '@huggingface/transformers';
import type {
  ReferenceIds,
  ReferenceModel,
  ReferenceOutput,
  ReferenceReply,
  ReferenceRequest,
} from './reference-messages.ts';

/** What is used of an open model. */
interface Opened {
  readonly version: string;
  encode(request: Extract<ReferenceRequest, { type: 'encode' }>): ReferenceIds;
  run(request: Extract<ReferenceRequest, { type: 'run' }>): Promise<ReferenceOutput>;
}

const numbersOf = (tensor: Tensor): number[] => Array.from(tensor.data as ArrayLike<number | bigint>, Number);

async function open({ folder, graphPath, modelClass }: ReferenceModel): Promise<Opened> {
  // In here, so that a package that cannot be loaded is a reason like any other.
  const library = await import('@huggingface/transformers');
  const { env, LogLevel, Tensor: TensorOf } = library;
  Object.assign(env, { allowRemoteModels: false, useFSCache: false, useBrowserCache: false, logLevel: LogLevel.NONE });
  const tokenizer: PreTrainedTokenizer = await library.AutoTokenizer.from_pretrained(folder);
  const config = await library.AutoConfig.from_pretrained(folder);
  const model: PreTrainedModel = await library[modelClass].from_pretrained(dirname(graphPath), {
    config,
    subfolder: '',
    model_file_name: basename(graphPath, '.onnx'),
    // Not what the weights are: the one that adds nothing to the file's name.
    dtype: 'fp32',
    device: 'cpu',
  });
  const tensorOf = (numbers: ArrayLike<number>): Tensor =>
    new TensorOf('int64', BigInt64Array.from(Array.from(numbers, BigInt)), [1, numbers.length]);
  return {
    version: env.version,
    encode({ text, pair, hasSpecialTokens }) {
      const options = { text_pair: pair, add_special_tokens: hasSpecialTokens, return_token_type_ids: true };
      const encoded = tokenizer(text, options) as { input_ids: Tensor; token_type_ids?: Tensor };
      const { input_ids: ids, token_type_ids: typeIds } = encoded;
      return { ids: numbersOf(ids), typeIds: typeIds === undefined ? null : numbersOf(typeIds) };
    },
    async run({ ids, typeIds, output }) {
      const outputs = (await model({
        input_ids: tensorOf(ids),
        attention_mask: tensorOf(new Uint8Array(ids.length).fill(1)),
        token_type_ids: tensorOf(typeIds ?? new Uint8Array(ids.length)),
      })) as Record<string, Tensor | undefined>;
      const found = outputs[output];
      if (found === undefined) throw new Error(`it gives no output ${output}`);
      return { type: found.type, dims: found.dims, data: found.data as Float32Array };
    },
  };
}

let opened: Opened | null = null;

async function answer(request: ReferenceRequest): Promise<ReferenceReply> {
  if (request.type === 'open') {
    opened = await open(request.model);
    return { type: 'opened', version: opened.version };
  }
  if (opened === null) throw new Error('no model is open');
  if (request.type === 'encode') return { type: 'encoded', encoded: opened.encode(request) };
  return { type: 'ran', output: await opened.run(request) };
}

// Without its parent this process has no use.
process.on('disconnect', () => process.exit(0));

process.on('message', (request: ReferenceRequest) => {
  const fail = (error: unknown): ReferenceReply => ({
    type: 'failed',
    reason: error instanceof Error ? error.message : String(error),
  });
  void answer(request)
    .catch(fail)
    .then((reply) => process.send?.(reply));
});
