/** Owns the command that shows that each kind of vector ranks as its reference does: `npm run evaluate`. */
import { parseArgs } from 'node:util';
import { readDocuments, readJudgements, readQueries } from '../test/support/corpus.ts';
import { startServed, type Served } from '../test/support/served.ts';
import { formatTable } from '../src/bench/table.ts';
import { gradesOf, meanNdcg } from './evaluate/ndcg.ts';
import { denseScores, multiScores, sparseScores, type Scores } from './evaluate/scores.ts';

/** Largest difference from the reference. */
const maxDifference = 0.004;
/** A busy machine may be slow; values do not change with it. @unit ms */
const deadlineMs = 600_000;

type Score = (served: Served, queries: readonly string[], documents: readonly string[]) => Promise<Scores>;

/** nDCG@10 of the reference implementations (PyTorch) by the precision of the weights; fp16 ranks as fp32. */
const methods: readonly { name: string; score: Score; reference: { fp32: number; int8: number } }[] = [
  { name: 'dense', score: denseScores, reference: { fp32: 0.3578, int8: 0.3588 } },
  { name: 'sparse', score: sparseScores, reference: { fp32: 0.343, int8: 0.3436 } },
  { name: 'multi-vector', score: multiScores, reference: { fp32: 0.3686, int8: 0.3716 } },
];

const { values: flags } = parseArgs({ options: { precision: { type: 'string', default: 'int8' } } });
const precision = flags.precision === 'int8' ? 'int8' : 'fp32';
const documents = readDocuments();
const queries = readQueries();
const grades = gradesOf(readJudgements());

const served = await startServed({ flags: ['--precision', flags.precision, '--deadline-ms', String(deadlineMs)] });
const rows: string[][] = [];
try {
  for (const { name, score, reference } of methods) {
    const startedMs = performance.now();
    const scores = await score(
      served,
      queries.map(({ text }) => text),
      documents.map(({ text }) => text),
    );
    const measured = meanNdcg(
      scores,
      queries.map(({ id }) => id),
      documents.map(({ id }) => id),
      grades,
    );
    const difference = measured - reference[precision];
    const isNear = Math.abs(difference) <= maxDifference;
    if (!isNear) process.exitCode = 1;
    rows.push([
      name,
      measured.toFixed(4),
      reference[precision].toFixed(4),
      `${difference < 0 ? '-' : '+'}${Math.abs(difference).toFixed(4)}`,
      ((performance.now() - startedMs) / 1000).toFixed(1),
      isNear ? 'ok' : 'FAILED',
    ]);
  }
} finally {
  await served.end();
}
const headings = ['method', 'nDCG@10', `reference ${precision}`, 'difference', 'seconds', `within ${maxDifference}`];
process.stdout.write(`${formatTable(headings, rows)}\n`);
