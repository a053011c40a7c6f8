/** Owns what tests of bulk runs share: a source with plain values, an input in a folder of its own, and a plan. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BulkObserver, BulkPlan } from '../../../src/bulk/embed.ts';
import { findInputs } from '../../../src/bulk/read/inputs.ts';
import type { MethodName, VectorSource } from '../../../src/bulk/source/source.ts';
import type { Vectors } from '../../../src/bulk/row.ts';

/** Components of the vectors of the fake source. */
export const dimension = 4;

/** The vector of a text. */
export const vectorOf = (text: string): Float32Array =>
  Float32Array.of(text.length, text.codePointAt(0) ?? 0, 1 / (1 + text.length), -0.5);

/** The vectors of texts, one way for each method. */
export function vectorsOf(method: MethodName, texts: readonly string[]): Vectors {
  switch (method) {
    case 'dense':
      return { kind: 'dense', vectors: texts.map(vectorOf) };
    case 'sparse':
      return {
        kind: 'sparse',
        sparse: texts.map((text) => ({
          indices: Int32Array.from({ length: text.length % 4 }, (_, term) => term * 3 + text.length),
          values: Float32Array.from({ length: text.length % 4 }, (_, term) => 0.25 * (term + 1)),
        })),
      };
    case 'multi':
      return {
        kind: 'multi',
        matrices: texts.map((text) => ({
          values: Float32Array.from({ length: dimension * (1 + (text.length % 3)) }, (_, place) => place + text.length),
          dimension,
        })),
      };
  }
}

/** A source whose calls are counted, of which those after `failsAfter` fail. */
export function fakeSource(
  method: MethodName = 'dense',
  { failsAfter = Infinity }: { readonly failsAfter?: number } = {},
): VectorSource & { readonly asked: readonly string[] } {
  const asked: string[] = [];
  let calls = 0;
  return {
    asked,
    identity: 'fake@1',
    dimension: method === 'sparse' ? 0 : dimension,
    parallelCalls: 2,
    async embed(texts) {
      await Promise.resolve();
      calls += 1;
      if (calls > failsAfter) throw new Error('the fake source was told to fail');
      asked.push(...texts);
      return { vectors: vectorsOf(method, texts), tokens: texts.length };
    },
    close: async () => undefined,
  };
}

/** Nobody is told. */
export const silent: BulkObserver = { onStart: () => undefined, onProgress: () => undefined, onBad: () => undefined };

/** A folder of its own. */
export interface Place {
  readonly folder: string;
  path(name: string): string;
  write(name: string, content: string | Uint8Array): string;
  remove(): void;
}

/** An empty folder. */
export function openPlace(): Place {
  const folder = mkdtempSync(join(tmpdir(), 'bulk-'));
  const path = (name: string): string => join(folder, name);
  return {
    folder,
    path,
    write(name, content) {
      writeFileSync(path(name), content);
      return path(name);
    },
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A plan for an input, with what a test changes. */
export async function planOf(input: string, out: string, changes: Partial<BulkPlan> = {}): Promise<BulkPlan> {
  return {
    input,
    files: await findInputs(input, null),
    fields: { text: 'text', id: null },
    wish: { method: 'dense', kind: 'document', model: null, dimensions: null },
    output: null,
    out,
    skipsBad: false,
    restarts: false,
    ...changes,
  };
}

/** Never aborts. */
export const never = new AbortController().signal;
