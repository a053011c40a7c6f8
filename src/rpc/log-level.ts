/** Owns the levels of `notifications/log`. */

/** Levels of `notifications/log`, least severe first. */
export const logLevels = ['debug', 'info', 'notice', 'warning', 'error'] as const;

/** One of `logLevels`. */
export type LogLevel = (typeof logLevels)[number];

/** The level in an opt-in, or null where the value is none: an odd opt-in never fails a call. */
export function readLogLevel(value: unknown): LogLevel | null {
  return logLevels.find((level) => level === value) ?? null;
}
