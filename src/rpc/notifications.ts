/** Owns the frames the server sends unasked: progress of a call and log entries, both only on request. */
import { logLevels, type LogLevel } from './log-level.ts';
import type { Session } from './session.ts';

/** Raw progress token, or null where it is neither a string nor an integer. */
export function readProgressToken(rawToken: string | undefined): string | null {
  if (rawToken === undefined) return null;
  return rawToken.startsWith('"') || /^-?\d+$/.test(rawToken) ? rawToken : null;
}

/** Most progress frames one call sends. */
export const maxProgressFrames = 100;

/** A reporter that sends a frame each time another hundredth of the work is done, never going backwards. */
export function createProgressReporter(
  rawToken: string | null,
  stage: string,
  notify: ((frame: string) => void) | null,
): ((doneCount: number, totalCount: number) => void) | null {
  if (rawToken === null || notify === null) return null;
  let sentSteps = 0;
  return (doneCount, totalCount) => {
    const steps = Math.floor((doneCount / totalCount) * maxProgressFrames);
    if (steps <= sentSteps) return;
    sentSteps = steps;
    const progress = steps / maxProgressFrames;
    notify(
      `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${rawToken},"progress":${progress},"stage":"${stage}"}}`,
    );
  };
}

/** Sends one log entry where the session, or this very call, asked for its level. */
export function sendLog(
  session: Session,
  callLevel: LogLevel | null,
  notify: ((frame: string) => void) | null,
  entry: { level: LogLevel; message: string; data: Readonly<Record<string, string | number>> },
): void {
  const least = callLevel ?? session.logLevel;
  if (notify === null || least === null || logLevels.indexOf(entry.level) < logLevels.indexOf(least)) return;
  notify(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/log', params: entry }));
}
