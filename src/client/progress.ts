/** Owns how far a call is, from how far each of its requests is. */
import type { Progress } from './options.ts';

/** Adds up the progress of requests. */
export interface ProgressCount {
  /** Takes the progress of one request for so many texts; called with 1 when it is done. */
  ofRequest(texts: number): (progress: number) => void;
}

/** Reports to `onProgress` whenever more is done than before; progress that is lost to a repetition is not taken back. */
export function createProgressCount(totalCount: number, onProgress: (progress: Progress) => void): ProgressCount {
  let done = 0;
  let reported = 0;
  return {
    ofRequest(texts) {
      let own = 0;
      return (progress) => {
        const now = Math.min(1, Math.max(0, progress)) * texts;
        done += now - own;
        own = now;
        if (done <= reported) return;
        reported = done;
        onProgress({ progress: Math.min(1, done / totalCount), doneCount: Math.floor(done), totalCount });
      };
    },
  };
}
