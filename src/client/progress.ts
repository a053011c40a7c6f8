/** Owns how far a call is, from how far each of its requests is. */
import type { Progress } from './options.ts';

/** How far one request is. */
export interface RequestProgress {
  /** Takes the part of it that is done, from 0 to 1, as the server tells it. */
  readonly report: (progress: number) => void;
  /** Its answer is there: all its texts count. */
  finish(): void;
  /** It failed: what was done of it counts no more. */
  drop(): void;
}

/** Adds up the progress of requests. */
export interface ProgressCount {
  /** Begins to count a request for so many texts. */
  ofRequest(texts: number): RequestProgress;
}

/** Reports to `onProgress` whenever more is done than before; progress that is lost to a repetition is not taken back. */
export function createProgressCount(totalCount: number, onProgress: (progress: Progress) => void): ProgressCount {
  let finishedCount = 0;
  let reported = 0;
  /** Texts that are done, in parts too, of each request under way. */
  const underWay = new Map<RequestProgress, number>();
  const tell = () => {
    // Added up anew: what is finished stays a whole number, so that the end is exactly the whole list.
    const done = [...underWay.values()].reduce((sum, texts) => sum + texts, finishedCount);
    if (done <= reported) return;
    reported = done;
    onProgress({ progress: done / totalCount, doneCount: Math.floor(done), totalCount });
  };
  return {
    ofRequest(texts) {
      const own: RequestProgress = {
        report(progress) {
          if (!underWay.has(own)) return;
          underWay.set(own, Math.min(1, Math.max(0, progress)) * texts);
          tell();
        },
        finish() {
          if (!underWay.delete(own)) return;
          finishedCount += texts;
          tell();
        },
        drop() {
          underWay.delete(own);
        },
      };
      underWay.set(own, 0);
      return own;
    },
  };
}
