/** Owns the choice of an output format, and refusing what a format cannot hold. */
import { ConfigurationError } from '../../errors.ts';
import { arrow } from './arrow.ts';
import { outputEnds, type OutputEnd, type OutputFormat, type OutputShape } from './format.ts';
import { jsonLines } from './json-lines.ts';
import { npy } from './npy.ts';
import { parquet } from './parquet.ts';

/**
 * The end of the name of an output; `-` is JSON lines.
 * @throws ConfigurationError
 */
export function outputEndOf(out: string): OutputEnd {
  if (out === '-') return 'jsonl';
  const end = /\.([^./\\]+)$/u.exec(out)?.[1]?.toLowerCase();
  const known = outputEnds.find((one) => one === end);
  if (known !== undefined) return known;
  throw new ConfigurationError([
    `--out must end in ${outputEnds.map((one) => `.${one}`).join(', ')}, or be -, not ${out}`,
  ]);
}

/** What is wrong with holding this in that format, before anything is known of the model. */
export function formatProblems(
  end: OutputEnd,
  wanted: Pick<OutputShape, 'kind' | 'hasIds' | 'output'> & { readonly skipsBad: boolean },
): string[] {
  const problems: string[] = [];
  if (wanted.output !== null && wanted.kind === 'sparse')
    problems.push('--output: sparse vectors have no integer form');
  if (end !== 'npy') return problems;
  if (wanted.kind !== 'dense') problems.push('--out: .npy holds dense vectors only; use .jsonl, .parquet or .arrow');
  if (wanted.hasIds) problems.push('--id-field: .npy holds no ids; its row n is row n of the input');
  if (wanted.skipsBad) problems.push('--skip-bad: in .npy nobody could tell which rows are missing');
  return problems;
}

/** The format of a shape. */
export function formatOf(end: OutputEnd, shape: OutputShape): OutputFormat {
  return { jsonl: jsonLines, npy, parquet, arrow }[end](shape);
}
