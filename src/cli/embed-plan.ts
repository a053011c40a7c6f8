/** Owns turning the flags of `embed` into a plan, every problem named at once. */
import { stat } from 'node:fs/promises';
import { basename, dirname, extname, resolve } from 'node:path';
import type { BulkPlan } from '../bulk/embed.ts';
import { findInputs, inputKinds } from '../bulk/read/inputs.ts';
import { methodNames, type VectorWish } from '../bulk/source/source.ts';
import { workPaths } from '../bulk/work/paths.ts';
import { formatProblems, outputEndOf } from '../bulk/write/choose.ts';
import { shownAddress } from '../client/address.ts';
import { ConfigurationError } from '../errors.ts';
import { integerOutputs, type IntegerOutput } from '../tensor/quantize.ts';
import type { Flags } from './command-settings.ts';
import { mixedProblems } from './job-flags.ts';

/** A plan, and what has nothing to do with its result. */
export interface EmbedPlan extends BulkPlan {
  readonly urls: readonly string[];
  readonly isQuiet: boolean;
  /** @unit ms */
  readonly patienceMs: number;
}

/**
 * The plan of a command line.
 * @throws ConfigurationError
 */
export async function readEmbedPlan(input: string, flags: Flags): Promise<EmbedPlan> {
  const problems: string[] = [];
  const text = (name: string): string | null => (typeof flags[name] === 'string' ? flags[name] : null);
  const choice = <Choice extends string>(name: string, choices: readonly Choice[]): Choice | null => {
    const word = text(name);
    const found = choices.find((one) => one === word) ?? null;
    if (word !== null && found === null) problems.push(`--${name} must be one of ${choices.join(', ')}, not ${word}`);
    return found;
  };
  const count = (name: string, flag: string): number | null => {
    const word = text(name);
    if (word === null) return null;
    const value = Number(word);
    if (Number.isSafeInteger(value) && value > 0) return value;
    problems.push(`${flag} must be a whole number above 0, not ${word}`);
    return null;
  };
  const wish: VectorWish = {
    method: choice('method', methodNames) ?? 'dense',
    kind: choice('kind', ['document', 'query']) ?? 'document',
    model: text('model'),
    dimensions: count('dimensions', '--dimensions'),
  };
  const format = choice('format', inputKinds);
  const named = choice('output', ['float32', ...integerOutputs]);
  const output: IntegerOutput | null = named === 'float32' ? null : named;
  const patienceS = count('giveUpAfter', '--give-up-after') ?? defaultPatienceS;
  const fields = { text: text('field') ?? 'text', id: text('idField') };
  const urls = Array.isArray(flags['url']) ? (flags['url'] as string[]) : [];
  for (const url of urls)
    if (!/^https?:\/\//u.test(url))
      problems.push(`--url must begin with http:// or https://, not ${shownAddress(url)}`);
  if (urls.length > 0) problems.push(...mixedProblems(flags));
  if (wish.dimensions !== null && wish.method !== 'dense') problems.push('--dimensions: only dense vectors can be cut');
  if (input === '-' && text('out') === null) problems.push('--out must be given where stdin is read');
  const skipsBad = flags['skipBad'] === true;
  const out = text('out') ?? `${basename(resolve(input), extname(input))}.vectors.jsonl`;
  problems.push(...(await problemsOf(() => outputEndOf(out))));
  if (problems.length === 0) {
    problems.push(
      ...formatProblems(outputEndOf(out), { kind: wish.method, hasIds: fields.id !== null, output, skipsBad }),
    );
  }
  if (out === '-' && flags['restart'] === true) problems.push('--restart: what goes to stdout is never gone on with');
  let files: BulkPlan['files'] = [];
  problems.push(...(await problemsOf(async () => (files = await findInputs(input, format)))));
  if (fields.id !== null && files.some(({ kind }) => kind === 'text'))
    problems.push('--id-field: lines of plain text have no fields');
  if (out !== '-' && problems.length === 0) problems.push(...(await outputProblems(out, files)));
  if (problems.length > 0) throw new ConfigurationError(problems);
  const restarts = flags['restart'] === true;
  const isQuiet = flags['quiet'] === true;
  return { input, files, fields, wish, output, out, skipsBad, restarts, urls, isQuiet, patienceMs: patienceS * 1000 };
}

/** Longest time without an answer of any server. @unit s */
const defaultPatienceS = 300;

/** Why a run must not write there: nothing that it reads may be lost, even by `--restart`. */
async function outputProblems(out: string, files: BulkPlan['files']): Promise<readonly string[]> {
  const look = (path: string) => stat(path, { bigint: true }).catch(() => null);
  if ((await look(dirname(out)))?.isDirectory() !== true) return [`--out: there is no folder ${dirname(out)}`];
  if ((await look(out))?.isDirectory() === true) return [`--out: ${out} is a folder`];
  // By what they are: links give one file several names.
  const nameOf = async (path: string): Promise<string | null> => {
    const found = await look(path);
    return found === null ? null : `${String(found.dev)} ${String(found.ino)}`;
  };
  const written = new Map<string, string>();
  for (const path of [out, ...Object.values(workPaths(out))]) {
    const name = await nameOf(path);
    if (name !== null) written.set(name, path);
  }
  for (const { path, name } of files) {
    const clash = path === null ? undefined : written.get((await nameOf(path)) ?? '');
    if (clash !== undefined)
      return [`--out: writing ${out} would overwrite ${clash}, and the input holds it as ${name}`];
  }
  return [];
}

async function problemsOf(work: () => unknown): Promise<readonly string[]> {
  try {
    await work();
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
}
