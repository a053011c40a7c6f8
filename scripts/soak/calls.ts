/** Owns the calls of a soak: every method, texts of every length, alone and in lists, and some that must be refused. */
import { bundledTexts, readTexts } from '../../src/bench/corpus.ts';
import { below, oneIn, pick, type Random } from '../fuzz/random.ts';

/** One call without its id. */
export interface SoakCall {
  readonly method: string;
  readonly params: object;
}

const maxListTexts = 24;
const badCalls: readonly SoakCall[] = [
  { method: 'embed', params: {} },
  { method: 'embed', params: { inputs: 'no list' } },
  { method: 'embed', params: { inputs: [1] } },
  { method: 'embed', params: { inputs: ['a'], encoding: 'base64' } },
  { method: 'embed', params: { inputs: ['a'], 'x-trivec': { dimensions: 5 } } },
  { method: 'rerank', params: { query: 'a', passages: [], topN: 0 } },
  { method: 'retrieve', params: {} },
  { method: 'no/such', params: {} },
  { method: 'embed', params: { inputs: ['a'], _meta: { deadlineMs: 0 } } },
];
const textMethods = ['embed', 'embed', 'embed', 'embed/sparse', 'embed/multi'];

/** Makes calls over the bundled texts. */
export function createCallMaker(random: Random): { good(): SoakCall; bad(): SoakCall; heavy(): readonly SoakCall[] } {
  const documents = readTexts(bundledTexts.documents);
  const queries = readTexts(bundledTexts.queries);
  /** A document, a part of one, or two of them, so that lengths are spread. */
  const someText = () => {
    const text = pick(random, documents);
    if (oneIn(random, 3)) return text.slice(0, 1 + below(random, text.length));
    return oneIn(random, 6) ? `${text} ${pick(random, documents)}` : text;
  };
  const list = (count: number) => Array.from({ length: count }, someText);
  const long = [...documents].sort((a, b) => b.length - a.length).slice(0, maxListTexts);
  return {
    good() {
      if (oneIn(random, 12)) return { method: pick(random, ['ping', 'info']), params: {} };
      if (oneIn(random, 4)) {
        const passages = list(1 + below(random, maxListTexts / 2));
        return { method: 'rerank', params: { query: pick(random, queries), passages } };
      }
      const inputs = oneIn(random, 2) ? [pick(random, queries)] : list(1 + below(random, maxListTexts));
      const encoding = oneIn(random, 2) ? { encoding: 'f32-base64' } : {};
      const method = pick(random, textMethods);
      return { method, params: { inputs, ...(method === 'embed' ? encoding : {}) } };
    },
    bad: () => pick(random, badCalls),
    heavy: () => [
      ...['embed', 'embed/sparse', 'embed/multi'].map((method) => ({ method, params: { inputs: long } })),
      { method: 'rerank', params: { query: queries[0] ?? '', passages: long } },
    ],
  };
}

/** A call as a frame. */
export const frameOf = (id: string, { method, params }: SoakCall): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });
