/** Owns throw-away folders of tiny models for the tests of this folder. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigurationError } from '../../../src/errors.ts';
import type { ModelSettings } from '../../../src/model/registry.ts';

/** Runs `use` with a fresh folder, which is gone afterwards. */
export async function withFolder<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'trivec-model-'));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Changes members of a JSON file; undefined removes one. */
export async function editJson(path: string, members: Readonly<Record<string, unknown>>): Promise<void> {
  const content = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
  await writeFile(path, JSON.stringify({ ...content, ...members }));
}

/** The problems that `step` is refused with; an empty list where it succeeds. */
export async function problemsOf(step: Promise<unknown>): Promise<readonly string[]> {
  try {
    await step;
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
}

/** Settings that serve nothing but what `members` names. */
export const settings = (modelsDir: string, members: Partial<ModelSettings>): ModelSettings => ({
  modelsDir,
  embedModel: [],
  sparseModel: [],
  multiModel: [],
  rerankModel: [],
  precision: 'auto',
  ...members,
});

/** The models that the repository ships. */
export const shippedModels = new URL('../../../models', import.meta.url).pathname;
