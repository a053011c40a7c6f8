/** Owns what a download tells of itself. */

/** A file that is about to come, or to be taken as it is. */
export interface ProgressFile {
  readonly path: string;
  readonly sizeBytes: number;
}

/** What watches a download; every call is made in order, one file at a time. */
export interface PullProgress {
  /** `presentBytes` are here from an earlier download. */
  onStart(file: ProgressFile, presentBytes: number): void;
  /** `doneBytes` of the file are here; may be fewer than before where a file begins anew. */
  onBytes(file: ProgressFile, doneBytes: number): void;
  onDone(file: ProgressFile): void;
  /** Something a person wants to know: a wait, another try. */
  onNote(message: string): void;
}

/** Watches nothing. */
export const silentProgress: PullProgress = {
  onStart: () => undefined,
  onBytes: () => undefined,
  onDone: () => undefined,
  onNote: () => undefined,
};

const units = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

/** Bytes for a person, such as `90.4 MB`. */
export function showBytes(bytes: number): string {
  const exponent = bytes < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${exponent === 0 ? String(bytes) : (bytes / 1000 ** exponent).toFixed(1)} ${units[exponent] ?? ''}`;
}

/** Progress as plain lines: one when a file starts that is not here yet, one when it is. */
export function lineProgress(write: (line: string) => void): PullProgress {
  return {
    onStart: ({ path, sizeBytes }, presentBytes) => {
      const from = presentBytes > 0 ? `, from byte ${String(presentBytes)}` : '';
      write(`${path}: getting ${showBytes(sizeBytes)}${from}`);
    },
    onBytes: () => undefined,
    onDone: ({ path }) => {
      write(`${path}: complete`);
    },
    onNote: write,
  };
}
