import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeFloats, dot } from '../golden/golden-values.ts';
import { readDocuments, readQueries } from '../support/corpus.ts';
import { startServed, type Served } from '../support/served.ts';

const timeoutMs = 120_000;
const dimension = 384;

interface Usage {
  readonly inputTokens: number;
  readonly truncated: readonly number[];
}
interface EmbedResult {
  readonly vectors: readonly number[][];
  readonly encoding: string;
  readonly dimension: number;
  readonly usage: Usage;
}
interface Sparse {
  readonly indices: readonly number[];
  readonly values: readonly number[];
}

describe('values that the default models serve', { timeout: timeoutMs }, () => {
  let served: Served;
  const documents = readDocuments()
    .slice(0, 10)
    .map(({ text }) => text);
  const query = readQueries()[0]?.text ?? '';

  beforeAll(async () => {
    served = await startServed({ flags: ['--deadline-ms', String(timeoutMs)] });
  });
  afterAll(() => served.end());

  const embed = (inputs: readonly string[], more: object = {}) =>
    served.call<EmbedResult>('embed', { inputs, ...more });
  const floatsOf = async (inputs: readonly string[]): Promise<Float32Array[]> => {
    const { vectors } = await served.call<{ vectors: string[] }>('embed', { inputs, encoding: 'f32-base64' });
    return vectors.map(decodeFloats);
  };
  const sparseOf = async (texts: readonly string[]) =>
    (await served.call<{ sparse: Sparse[] }>('embed/sparse', { texts })).sparse;
  const rowsOf = async (inputs: readonly string[], kind: 'query' | 'document') => {
    const params = { inputs, kind, encoding: 'f32-base64' };
    const { matrices } = await served.call<{ matrices: string[][] }>('embed/multi', params);
    return matrices.map((rows) => rows.map(decodeFloats));
  };

  describe('forms', () => {
    it('base64 is 4 bytes a dimension, little-endian, and equals the JSON numbers bit for bit', async () => {
      const json = await embed(documents);
      const base64 = await served.call<{ vectors: string[]; encoding: string; dimension: number }>('embed', {
        inputs: documents,
        encoding: 'f32-base64',
      });
      expect([json.encoding, json.dimension]).toEqual(['json', dimension]);
      expect([base64.encoding, base64.dimension]).toEqual(['f32-base64', dimension]);
      for (const [index, text] of base64.vectors.entries()) {
        expect(text).toMatch(/^[A-Za-z0-9+/]+={0,2}$/u);
        expect(Buffer.from(text, 'base64')).toHaveLength(4 * dimension);
        expect(decodeFloats(text)).toEqual(Float32Array.from(json.vectors[index] ?? []));
      }
    });

    it('rows in base64 equal the rows in JSON bit for bit', async () => {
      const json = await served.call<{ matrices: number[][][] }>('embed/multi', { inputs: documents.slice(0, 3) });
      const rows = await rowsOf(documents.slice(0, 3), 'document');
      expect(rows).toEqual(json.matrices.map((matrix) => matrix.map((row) => Float32Array.from(row))));
    });

    it('every vector is finite and of length 1', async () => {
      for (const vector of await floatsOf(['', ...documents])) {
        expect(vector).toHaveLength(dimension);
        expect(dot(vector, vector)).toBeCloseTo(1, 5);
      }
    });

    const forms = {
      int8: (vector: Float32Array) => [...vector].map((x) => Math.min(127, Math.max(-128, Math.round(127 * x) + 0))),
      uint8: (vector: Float32Array) => forms.int8(vector).map((value) => value + 128),
      ubinary: (vector: Float32Array) =>
        Array.from({ length: vector.length / 8 }, (_, byte) =>
          Number.parseInt(Array.from(vector.subarray(8 * byte, 8 * byte + 8), (x) => (x > 0 ? '1' : '0')).join(''), 2),
        ),
      binary: (vector: Float32Array) => forms.ubinary(vector).map((value) => value - 128),
    };

    it.each(['int8', 'uint8', 'ubinary', 'binary'] as const)(
      'output %s follows its formula, alone and in a list, and keeps the unpacked dimension',
      async (output) => {
        const expected = (await floatsOf(documents)).map((vector) => forms[output](vector));
        const listed = await embed(documents, { 'x-trivec': { output } });
        expect(listed.vectors).toEqual(expected);
        expect(listed.dimension).toBe(dimension);
        const [alone] = (await embed(documents.slice(4, 5), { 'x-trivec': { output } })).vectors;
        expect(alone).toEqual(expected[4]);
        expect(new Set(alone).size).toBeGreaterThan(10);
        const isPacked = output === 'binary' || output === 'ubinary';
        expect(alone).toHaveLength(isPacked ? dimension / 8 : dimension);
        const [lowest, highest] = output === 'int8' || output === 'binary' ? [-128, 127] : [0, 255];
        expect(Math.min(...(alone ?? []))).toBeGreaterThanOrEqual(lowest);
        expect(Math.max(...(alone ?? []))).toBeLessThanOrEqual(highest);
      },
    );

    it('integers in base64 and dimensions of a model that cannot be cut are refused with -32005', async () => {
      const integers = await served.refusal('embed', {
        inputs: ['a'],
        encoding: 'f32-base64',
        'x-trivec': { output: 'int8' },
      });
      expect([integers.code, integers.data['field']]).toEqual([-32005, 'x-trivec.output']);
      const cut = await served.refusal('embed', { inputs: ['a'], 'x-trivec': { dimensions: 128 } });
      expect([cut.code, cut.data['field']]).toEqual([-32005, 'x-trivec.dimensions']);
    });
  });

  describe('sparse vectors', () => {
    const isWellFormed = ({ indices, values }: Sparse) =>
      indices.length === values.length &&
      indices.every(
        (term, position) =>
          Number.isInteger(term) && term >= 0 && term < 30_522 && term > (indices[position - 1] ?? -1),
      ) &&
      values.every((value) => Number.isFinite(value) && value > 0);

    it('are ascending, unique, in the vocabulary and above zero for any text', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.string({ unit: 'grapheme', maxLength: 60 }), { minLength: 1, maxLength: 25 }),
          async (texts) => {
            const sparse = await sparseOf(texts);
            expect(sparse).toHaveLength(texts.length);
            expect(sparse.every(isWellFormed)).toBe(true);
          },
        ),
        { numRuns: 4 },
      );
      expect((await sparseOf(documents)).every(isWellFormed)).toBe(true);
    });

    it('have a repeated word once', async () => {
      const [sparse] = await sparseOf(['apple apple Apple']);
      expect(sparse && isWellFormed(sparse)).toBe(true);
      expect(sparse?.indices).toContain(6207);
      expect(new Set(sparse?.indices).size).toBe(sparse?.indices.length);
    });
  });

  describe('token rows', () => {
    it('a query has a row for every token, a document leaves out punctuation, each row has length 1', async () => {
      const [asQuery = []] = await rowsOf(['hello, world! (yes)'], 'query');
      const [asDocument = []] = await rowsOf(['hello, world! (yes)'], 'document');
      // [CLS] hello , world ! ( yes ) [SEP]
      expect(asQuery).toHaveLength(9);
      expect(asDocument).toEqual([0, 1, 3, 6, 8].map((position) => asQuery[position]));
      for (const row of asQuery) expect(dot(row, row)).toBeCloseTo(1, 5);
    });

    it('no kind means document, and a text of punctuation keeps its special rows', async () => {
      const { matrices } = await served.call<{ matrices: number[][][] }>('embed/multi', { inputs: ['a, b', '!!!'] });
      expect(matrices.map((matrix) => matrix.length)).toEqual([4, 2]);
    });
  });

  describe('rerank', () => {
    it('a colbert score is the sum over query rows of the largest product with a passage row', async () => {
      const passages = [...documents, '', '...'];
      const { scores } = await served.call<{ scores: number[] }>('rerank', { query, passages });
      const [queryRows = []] = await rowsOf([query], 'query');
      const passageRows = await rowsOf(passages, 'document');
      const sums = passageRows.map((rows) =>
        queryRows.reduce((sum, queryRow) => sum + Math.max(...rows.map((row) => dot(queryRow, row))), 0),
      );
      expect(scores).toHaveLength(sums.length);
      for (const [index, sum] of sums.entries()) expect(Math.abs((scores[index] ?? NaN) - sum)).toBeLessThan(1e-3);
    });

    it('order and results are best first and cut by topN, scores keep every passage', async () => {
      const passages = ['an apple tree', 'a bridge of stone', 'the river', query];
      const params = { query, passages };
      const full = await served.call<{ scores: number[]; order: number[] }>('rerank', params);
      expect(full.order).toEqual([0, 1, 2, 3].sort((a, b) => (full.scores[b] ?? 0) - (full.scores[a] ?? 0)));
      expect(full.order[0]).toBe(3);
      const top = await served.call('rerank', { ...params, topN: 1 });
      expect(top).toMatchObject({ scores: full.scores, order: [3], results: [{ index: 3, score: full.scores[3] }] });
    });

    it('blank passages keep their place, equal passages keep their order, null is refused', async () => {
      const { scores, order } = await served.call<{ scores: number[]; order: number[] }>('rerank', {
        query,
        passages: ['', query, '  '],
      });
      expect(scores).toHaveLength(3);
      expect(scores[0]).toBe(scores[2]);
      expect(order).toEqual([1, 0, 2]);
      const refused = await served.refusal('rerank', { query, passages: ['a', null] });
      expect([refused.code, refused.data['field']]).toEqual([-32602, 'passages[1]']);
    });

    it('a query over the limit is refused with its field, however short the passages are', async () => {
      const refused = await served.refusal('rerank', { query: 'word '.repeat(600), passages: ['a'] });
      expect([refused.code, refused.data['field'], refused.data['limit']]).toEqual([-32602, 'query', 256]);
      expect(refused.data['tokens']).toBeGreaterThan(256);
    });
  });

  describe('texts that are odd', () => {
    it('half of a surrogate pair counts as U+FFFD in every method', async () => {
      const odd = ['hi \ud83d', '\udc00 low', 'both \udc00\ud83d'];
      const replaced = ['hi \ufffd', '\ufffd low', 'both \ufffd\ufffd'];
      expect(await floatsOf(odd)).toEqual(await floatsOf(replaced));
      expect(await sparseOf(odd)).toEqual(await sparseOf(replaced));
      expect(await rowsOf(odd, 'query')).toEqual(await rowsOf(replaced, 'query'));
    });

    it('line breaks and tabs separate words as a blank does', async () => {
      const [blank, newline, tab, carriage, glued] = await floatsOf([
        'one line',
        'one\nline',
        'one\tline',
        'one\r\nline',
        'oneline',
      ]);
      expect([newline, tab, carriage]).toEqual([blank, blank, blank]);
      expect(glued).not.toEqual(blank);
    });

    it('empty and blank texts keep their place, also among others', async () => {
      const [a, empty, b] = await floatsOf(['a', '', 'b']);
      expect([a, b]).toEqual(await floatsOf(['a', 'b']));
      expect(empty).toEqual((await floatsOf(['']))[0]);
      expect(await floatsOf(['', ' \n\t '])).toEqual([empty, empty]);
    });

    it('an empty list gives an empty result in every method', async () => {
      expect(await embed([])).toMatchObject({ vectors: [], dimension, usage: { inputTokens: 0, truncated: [] } });
      expect(await sparseOf([])).toEqual([]);
      expect(await rowsOf([], 'document')).toEqual([]);
      const params = { query, passages: [] };
      expect(await served.call('rerank', params)).toMatchObject({ scores: [], order: [], results: [] });
    });

    it('kind changes nothing for a symmetric dense model', async () => {
      const { vectors } = await embed(['hello']);
      for (const kind of ['query', 'document']) expect((await embed(['hello'], { kind })).vectors).toEqual(vectors);
    });
  });

  describe('texts that are long', () => {
    const megabytes = 10;
    const huge = 'boundary layer flow '.repeat((megabytes * 1_048_576) / 20);

    it('a text of 10 MB is cut to the limit, reported, and equals its own first words', async () => {
      const [cut, prefix] = await Promise.all([embed([huge]), embed([huge.slice(0, 6000)])]);
      expect(cut.usage).toMatchObject({ inputTokens: 256, truncated: [0] });
      expect(cut.vectors).toEqual(prefix.vectors);
    });

    it('truncated names exactly the inputs that were cut', async () => {
      const { usage } = await embed(['a', 'word '.repeat(254), 'word '.repeat(255), '', 'word '.repeat(5000)]);
      expect(usage).toMatchObject({ truncated: [2, 4], inputTokens: 3 + 256 + 256 + 2 + 256 });
      const sparse = await served.call<{ usage: Usage }>('embed/sparse', {
        texts: ['word '.repeat(510), 'word '.repeat(511)],
      });
      expect(sparse.usage).toMatchObject({ truncated: [1], inputTokens: 1024 });
    });

    it('blanks before a text are no reason to cut it', async () => {
      const { vectors, usage } = await embed([`${' '.repeat(100_000)}hello world`]);
      expect(usage).toMatchObject({ inputTokens: 4, truncated: [] });
      expect(vectors).toEqual((await embed(['hello world'])).vectors);
    });

    it('truncate: false refuses with tokens and limit, and says where the rest was not counted', async () => {
      const strict = { 'x-trivec': { truncate: false } };
      const counted = await served.refusal('embed', { inputs: ['fine', 'word '.repeat(300)], ...strict });
      expect(counted.code).toBe(-32602);
      expect(counted.data).toMatchObject({ field: 'inputs[1]', tokens: 302, limit: 256 });
      expect(counted.data).not.toHaveProperty('tokensIsMinimum');
      const uncounted = await served.refusal('embed', { inputs: [huge], ...strict });
      expect(uncounted.data).toMatchObject({ field: 'inputs[0]', tokensIsMinimum: true, limit: 256 });
      expect(uncounted.data['tokens']).toBeGreaterThan(256);
      const passage = await served.refusal('rerank', { query, passages: ['a', 'word '.repeat(300)], ...strict });
      expect(passage.data).toMatchObject({ field: 'passages[1]', tokens: 302, limit: 256 });
      expect((await embed(['word '.repeat(254)], strict)).usage.truncated).toEqual([]);
    });
  });
});
