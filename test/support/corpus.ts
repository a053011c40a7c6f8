/** Owns the texts of the bundled collection in `corpus`. */
import { readFileSync } from 'node:fs';

/** One abstract or one question; ids are positions from 1. */
export interface CorpusText {
  readonly id: string;
  readonly text: string;
}

const readData = (name: string): string =>
  readFileSync(new URL(`../../corpus/${name}`, import.meta.url), 'utf8').trimEnd();
const readLines = (name: string): CorpusText[] =>
  readData(name)
    .split('\n')
    .map((line) => JSON.parse(line) as CorpusText);

/** The 1,400 abstracts; two of them are empty. */
export const readDocuments = (): CorpusText[] => readLines('cranfield.docs.jsonl');

/** The 225 questions. */
export const readQueries = (): CorpusText[] => readLines('cranfield.queries.jsonl');

/** One judgement as the collection has it: 1 a complete answer to 4 of minimum interest, -1 none. */
export interface Judgement {
  readonly queryId: string;
  readonly documentId: string;
  readonly relevance: number;
}

/** Every judgement. */
export function readJudgements(): Judgement[] {
  const [, ...lines] = readData('cranfield.qrels.tsv').split('\n');
  return lines.map((line) => {
    const [queryId = '', documentId = '', relevance = ''] = line.split('\t');
    return { queryId, documentId, relevance: Number(relevance) };
  });
}
