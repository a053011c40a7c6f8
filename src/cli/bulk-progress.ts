/** Owns what a bulk run says while it goes on: a bar on a terminal, a line every few seconds elsewhere. */
import type { SingleBar } from 'cli-progress';
import type { BulkObserver } from '../bulk/embed.ts';
import { describeBadRow } from '../bulk/row.ts';

/** Time between two lines where there is no terminal. @unit ms */
const lineIntervalMs = 5000;
/** Bad rows that are told one by one. */
const maxToldBadRows = 20;

/** Tells how a run goes on stderr. */
export interface BulkProgress extends BulkObserver {
  /** Ends the bar, and says what there is to say at the end. */
  end(): void;
  note(line: string): void;
  /** What this run did from its first chunk to its last; the end of the engine and a file to assemble are not in it. */
  summary(): { readonly rows: number; readonly tokens: number; readonly seconds: number };
}

interface State {
  rows: number;
  tokens: number;
  doneBytes: number;
}

/** A progress over so many bytes; 0 where nobody knows how many. */
export async function openBulkProgress(totalBytes: number, isQuiet: boolean): Promise<BulkProgress> {
  const isTerminal = process.stderr.isTTY && !isQuiet;
  const bar = isTerminal ? await openBar(totalBytes) : null;
  const state: State = { rows: 0, tokens: 0, doneBytes: 0 };
  let startMs = performance.now();
  let startBytes = 0;
  let toldMs = startMs;
  let lastMs = startMs;
  let badRows = 0;
  const say = (line: string): void => {
    // A line among the cells of the bar would be drawn over.
    if (bar !== null) process.stderr.write('\r\u001b[K');
    process.stderr.write(`${line}\n`);
  };
  return {
    onStart({ rows, bytes }) {
      startMs = toldMs = lastMs = performance.now();
      startBytes = bytes;
      if (rows > 0 && !isQuiet) say(`going on after ${String(rows)} rows that are done`);
      bar?.start(totalBytes, bytes, { words: '' });
    },
    onProgress({ rows, tokens }, doneBytes) {
      Object.assign(state, { rows, tokens, doneBytes });
      const nowMs = (lastMs = performance.now());
      const words = describe(state, { totalBytes, startBytes, elapsedMs: nowMs - startMs });
      bar?.update(Math.min(doneBytes, totalBytes), { words });
      if (bar !== null || isQuiet || nowMs - toldMs < lineIntervalMs) return;
      toldMs = nowMs;
      say(words);
    },
    onBad(bad) {
      badRows += 1;
      if (badRows <= maxToldBadRows) say(`left out: ${describeBadRow(bad)}`);
      if (badRows === maxToldBadRows + 1) say('further rows that are left out are not told one by one');
    },
    end: () => bar?.stop(),
    note: say,
    summary: () => ({ rows: state.rows, tokens: state.tokens, seconds: (lastMs - startMs) / 1000 }),
  };
}

async function openBar(totalBytes: number): Promise<SingleBar> {
  const { default: progress } = await import('cli-progress');
  const format = totalBytes === 0 ? '{words}' : '{bar} {percentage} %  {words}';
  return new progress.SingleBar(
    { format, stream: process.stderr, barsize: 24, barCompleteChar: '#', barIncompleteChar: '.', hideCursor: false },
    progress.Presets.legacy,
  );
}

/** Words such as `12800 texts, 412.1 texts/s, 61824 tokens/s, 3 min 20 s left`. */
export function describe(
  { rows, tokens, doneBytes }: Readonly<State>,
  { totalBytes, startBytes, elapsedMs }: { totalBytes: number; startBytes: number; elapsedMs: number },
): string {
  const perSecond = (count: number): number => (elapsedMs === 0 ? 0 : (count * 1000) / elapsedMs);
  const parts = [
    `${String(rows)} texts`,
    `${perSecond(rows).toFixed(1)} texts/s`,
    `${perSecond(tokens).toFixed(0)} tokens/s`,
  ];
  const doneHere = doneBytes - startBytes;
  if (totalBytes > 0 && doneHere > 0) {
    const left = ((totalBytes - doneBytes) / doneHere) * (elapsedMs / 1000);
    parts.push(`${((doneBytes / totalBytes) * 100).toFixed(0)} % of the input`, `${showSeconds(left)} left`);
  }
  return parts.join(', ');
}

function showSeconds(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  if (hours > 0) return `${String(hours)} h ${String(minutes)} min`;
  return minutes > 0 ? `${String(minutes)} min ${String(whole % 60)} s` : `${String(whole)} s`;
}
