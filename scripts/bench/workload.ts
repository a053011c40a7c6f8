/** Owns what the benchmark runs: the prepared graph, texts with their ids, and requests of random lengths. */
import { fileURLToPath } from 'node:url';
import { bundledModelsDir } from '../../src/model/bundled.ts';
import { headOutputs } from '../../src/executor/protocol.ts';
import { prepareModels } from '../../src/model/prepare.ts';
import { resolveModels } from '../../src/model/registry.ts';
import { loadTokenizer } from '../../src/tokenize/load.ts';
import { readDocuments, readQueries } from '../../test/support/corpus.ts';
import type { Ids } from './bare.ts';
import { createRandom } from '../../src/bench/statistics.ts';

/** Where the server under test and the bare loop find the same prepared graph. */
export const benchCacheDir = fileURLToPath(new URL('../../.cache/bench', import.meta.url));

/** Documents of a throughput pass. */
export const passDocuments = 400;
const embedModel = 'all-MiniLM-L6-v2';

/** Everything the measurements need. */
export interface Workload {
  readonly graphPath: string;
  readonly outputName: string;
  readonly texts: readonly string[];
  readonly ids: readonly Ids[];
  readonly tokens: number;
  readonly queries: readonly string[];
  readonly shortQuery: string;
  readonly shortQueryIds: Ids;
}

/** Spreads so many documents over the corpus and tokenises them; Infinity: all of it. */
export async function prepareWorkload(documentCount = passDocuments): Promise<Workload> {
  const models = await resolveModels({
    modelsDir: bundledModelsDir,
    embedModel: [embedModel],
    sparseModel: ['splade-tiny'],
    multiModel: [embedModel],
    rerankModel: [],
    precision: 'int8',
  });
  const loads = await prepareModels(models.all, benchCacheDir);
  const load = loads.find(({ modelId }) => modelId === embedModel);
  const [model] = models.embed;
  if (load === undefined || model === undefined) throw new Error(`${embedModel} is not there`);
  const { folder, maxTokens } = model;
  const tokenizer = await loadTokenizer({ modelFolder: folder, maxTokens, warn: (text) => process.stderr.write(text) });
  const documents = readDocuments();
  const step = Math.max(1, Math.floor(documents.length / documentCount));
  const texts = documents
    .filter((_, index) => index % step === 0)
    .map(({ text }) => text)
    .slice(0, documentCount);
  const queries = readQueries().map(({ text }) => text);
  const shortQuery = queries[2] ?? '';
  const idsOf = async (inputs: readonly string[]) =>
    (await tokenizer.tokenize(inputs)).map((text) => Array.from(text.ids));
  const ids = await idsOf(texts);
  return {
    graphPath: load.graphPath,
    outputName: headOutputs.dense,
    texts,
    ids,
    tokens: ids.reduce((sum, { length }) => sum + length, 0),
    queries,
    shortQuery,
    shortQueryIds: (await idsOf([shortQuery]))[0] ?? [],
  };
}

/** Longest random text. @unit words */
const maxWords = 400;
/** Turns of the methods: dense vectors are asked for most. */
const turns = ['embed', 'embed', 'embed', 'embed', 'embed/sparse', 'embed/sparse', 'embed/multi', 'rerank'] as const;

/** Requests of random lengths; short ones are as likely as in the field, where most are. */
export function createRandomRequests(texts: readonly string[]): (index: number) => { method: string; params: object } {
  const random = createRandom(20);
  return (index) => {
    const words = (texts[Math.floor(random() * texts.length)] ?? '').split(' ');
    const text = words.slice(0, Math.ceil(maxWords * random() ** 2)).join(' ');
    const method = turns[index % turns.length] ?? 'embed';
    return { method, params: method === 'rerank' ? { query: 'heat', passages: [text] } : { inputs: [text] } };
  };
}
