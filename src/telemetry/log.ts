/** Owns the structured log: JSON lines on stderr, because stdout may carry the protocol. */
import { destination, pino, type Logger } from 'pino';

/** Log levels, least severe first. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const;

/** The log of one process. */
export type Log = Logger;

/** A log that writes to stderr, synchronously, so that nothing is lost when the process ends. */
export function createLog(level: (typeof logLevels)[number]): Log {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination({ fd: 2, sync: true }));
}
