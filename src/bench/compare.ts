/** Owns comparing within rounds: in what order servers take their turns, and ratios round by round. */
import type { LoadName } from './round.ts';
import type { SideName } from './side.ts';
import { median } from './statistics.ts';
import type { LoadSummary } from './summary.ts';

/** The servers in the order of their turns: who goes first changes, so that a machine that warms up favours nobody. */
export const orderOf = <Item>(round: number, sides: readonly Item[]): Item[] =>
  round % 2 === 0 ? [...sides] : sides.toReversed();

/** What one server gave in one round. */
export interface SideRound {
  readonly side: SideName;
  readonly loads: readonly LoadSummary[];
}

/** One round, in the order of its turns. */
export type RoundResult = readonly SideRound[];

/** A ratio of two numbers of the same round, over all rounds. */
export interface Ratio {
  /** What is divided by what. */
  readonly name: string;
  readonly isHigherBetter: boolean;
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly perRound: readonly number[];
}

type Measured = 'textsPerSecond' | 'tokensPerSecond' | 'p50Ms' | 'p90Ms' | 'p99Ms' | 'cpuMsPerText';

const measures: readonly { readonly key: Measured; readonly title: string; readonly isHigherBetter: boolean }[] = [
  { key: 'textsPerSecond', title: 'texts/s', isHigherBetter: true },
  { key: 'tokensPerSecond', title: 'tokens/s', isHigherBetter: true },
  { key: 'p50Ms', title: 'p50', isHigherBetter: false },
  { key: 'p90Ms', title: 'p90', isHigherBetter: false },
  { key: 'p99Ms', title: 'p99', isHigherBetter: false },
  { key: 'cpuMsPerText', title: 'CPU time a text', isHigherBetter: false },
];

/** The ratio of pairs; null where a round lacks one of its two numbers, since then not every round would count. */
export function ratioOf(
  about: Pick<Ratio, 'name' | 'isHigherBetter'>,
  pairs: readonly (readonly [number | null, number | null])[],
): Ratio | null {
  const perRound = pairs.map(([over, under]) => (over === null || under === null || under === 0 ? NaN : over / under));
  if (perRound.length === 0 || perRound.some(Number.isNaN)) return null;
  const [min, max] = [Math.min(...perRound), Math.max(...perRound)];
  return { ...about, median: median(perRound), min, max, perRound };
}

function valueOf(round: RoundResult, side: SideName, load: LoadName, key: Measured): number | null {
  return round.find((own) => own.side === side)?.loads.find((own) => own.load === load)?.[key] ?? null;
}

/** The first server over the second, each load and each measure. */
export function compareSides(rounds: readonly RoundResult[]): Ratio[] {
  const loads = rounds[0]?.[0]?.loads.map(({ load }) => load) ?? [];
  return loads.flatMap((load) =>
    measures.flatMap(({ key, title, isHigherBetter }) => {
      const pairs = rounds.map((round) => [valueOf(round, 'A', load, key), valueOf(round, 'B', load, key)] as const);
      return ratioOf({ name: `${load}, ${title}: A / B`, isHigherBetter }, pairs) ?? [];
    }),
  );
}

/** What documents and queries do to each other on one server; none where they were not sent together. */
export function compareLoads(rounds: readonly RoundResult[], side: SideName): Ratio[] {
  const pairsOf = (together: LoadName, alone: LoadName, key: Measured) =>
    rounds.map((round) => [valueOf(round, side, together, key), valueOf(round, side, alone, key)] as const);
  return measures.flatMap(({ key, title, isHigherBetter }) => {
    const isSpeed = key === 'textsPerSecond';
    if (!isSpeed && key !== 'p50Ms' && key !== 'p90Ms' && key !== 'p99Ms') return [];
    const name = isSpeed
      ? `${side}: documents, ${title}: with queries / alone`
      : `${side}: queries, ${title}: with documents / alone`;
    const pairs = isSpeed
      ? pairsOf('documents with queries', 'documents alone', key)
      : pairsOf('queries with documents', 'queries alone', key);
    return ratioOf({ name, isHigherBetter }, pairs) ?? [];
  });
}
