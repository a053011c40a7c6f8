/** Owns the tiny models with golden values: their list, their records, and what is fed to their graphs. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type * as ort from 'onnxruntime-node';
import { poolingMaskInput } from '../../../src/executor/protocol.ts';
import type { ModelManifest } from '../../../src/model/manifest.ts';
import { intTensor } from '../kernels/run-onnx.ts';

const root = fileURLToPath(new URL('../../golden/tiny/', import.meta.url));

/** One model of the list. */
export interface GoldenModel {
  readonly name: string;
  readonly task: string;
  readonly expect: string;
}

/** A line of a golden file: what is fed for one text or pair, and what the reference gave. */
export interface GoldenRecord {
  readonly text?: string;
  readonly kind?: 'query' | 'document' | null;
  readonly prompt?: string;
  readonly ids: readonly number[];
  readonly typeIds?: readonly number[];
  readonly attentionMask?: readonly number[];
  readonly keptRows?: readonly number[];
  readonly vector?: string;
  readonly indices?: readonly number[];
  readonly values?: readonly number[];
  readonly rows?: number;
  readonly dimension?: number;
  readonly matrix?: string;
  readonly logits?: readonly number[];
}

/** All models of the list. */
export const goldenModels = (
  JSON.parse(readFileSync(`${root}manifest.json`, 'utf8')) as { readonly models: readonly GoldenModel[] }
).models;

/** The folder of a model. */
export const goldenFolder = (name: string): string => `${root}models/${name}`;

/** The records of a model that say what is fed. */
export function goldenRecords(name: string): GoldenRecord[] {
  const [, ...lines] = readFileSync(`${root}golden/${name}.jsonl`, 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line) as GoldenRecord).filter((record) => Array.isArray(record.ids));
}

/** Numbers that were written as base64 of little-endian float32. */
export function decodeFloats(text: string): number[] {
  const bytes = Buffer.from(text, 'base64');
  return Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4));
}

/** Positions as the reference counts them. */
function positionsOf(ids: readonly number[], padId: number | null): number[] {
  if (padId === null) return ids.map((_, index) => index);
  let position = padId;
  return ids.map((id) => (id === padId ? padId : (position += 1)));
}

/** What a run is fed: the records, padded on the right to one length; `promptTokens` tokens are left out of the pooling. */
export function goldenFeeds(
  manifest: ModelManifest,
  records: readonly GoldenRecord[],
  padId: number,
  promptTokens: readonly number[],
): Record<string, ort.Tensor> {
  const { inputs, runPolicy } = manifest;
  const length = runPolicy.fixedTokens ?? Math.max(...records.map(({ ids }) => ids.length));
  const pad = (values: readonly number[], filler: number): number[] =>
    Array.from({ length }, (_, index) => values[index] ?? filler);
  const build: Readonly<Record<string, (record: GoldenRecord, index: number) => number[]>> = {
    input_ids: ({ ids }) => pad(ids, padId),
    attention_mask: ({ ids, attentionMask }) => pad(attentionMask ?? ids.map(() => 1), 0),
    token_type_ids: ({ typeIds }) => pad(typeIds ?? [], 0),
    position_ids: ({ ids }) => pad(positionsOf(ids, inputs.positionPadId), inputs.positionPadId ?? 0),
    [poolingMaskInput]: ({ ids }, index) =>
      pad(
        ids.map((_, token) => (token < (promptTokens[index] ?? 0) ? 0 : 1)),
        0,
      ),
  };
  const names = [...inputs.names, ...(manifest.includesPrompt ? [] : [poolingMaskInput])];
  return Object.fromEntries(
    names.map((name) => {
      const rowOf = build[name];
      if (rowOf === undefined) throw new Error(`nobody feeds ${name}`);
      return [name, intTensor(records.map(rowOf))];
    }),
  );
}
