/** Owns what was seen over the last minutes: figures where two looks follow each other, gaps where nobody looked or nothing was answered. */
import { figuresOf, type Figures, type Look } from './figures.ts';

/** Looks over which a latency is told: one interval alone often holds no call. */
const latencyLooks = 5;

/** Looks that are further apart than so many intervals do not follow each other: the machine slept. */
const maxApartLooks = 5;

/** Figures by time, one place for each interval. */
export interface LookHistory {
  /** What a look gave, with rates where one has gone before it without a gap. */
  take(look: Look): Figures;
  /** That there is nothing to tell until now. */
  miss(nowMs: number): void;
  /** The newest last; null is a gap. */
  readonly figures: () => readonly (Figures | null)[];
}

/** A history of so many intervals. */
export function createLookHistory(maxLooks: number, everyMs: number): LookHistory {
  /** Those since the last gap. */
  let looks: Look[] = [];
  let history: (Figures | null)[] = [];
  let lastMs: number | null = null;

  /** Puts a value at its time: intervals that passed meanwhile are gaps. */
  const record = (figures: Figures | null, atMs: number) => {
    const passed = lastMs === null ? 1 : Math.min(maxLooks, Math.round((atMs - lastMs) / everyMs));
    const gaps = Array.from({ length: Math.max(0, passed - 1) }, () => null);
    // Of one interval the later value stays.
    history = [...(passed === 0 ? history.slice(0, -1) : history), ...gaps, figures].slice(-maxLooks);
    lastMs = atMs;
  };

  return {
    take(look) {
      const isApart = look.atMs - (looks.at(-1)?.atMs ?? look.atMs) > maxApartLooks * everyMs;
      if (isApart) looks = [];
      const { p50Ms, p99Ms } = figuresOf(looks.at(-latencyLooks) ?? looks[0] ?? null, look);
      const figures = { ...figuresOf(looks.at(-1) ?? null, look), p50Ms, p99Ms };
      looks = [...looks, look].slice(-latencyLooks);
      record(figures, look.atMs);
      return figures;
    },
    miss(nowMs) {
      looks = [];
      record(null, nowMs);
    },
    figures: () => history,
  };
}
