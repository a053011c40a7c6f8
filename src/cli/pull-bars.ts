/** Owns the progress of a download on a terminal. */
import { showBytes } from '../model/hub/progress.ts';
import type { ProgressFile, PullProgress } from '../model/hub/progress.ts';

const barCells = 24;

/** A bar such as `[######..................]  25 %  22.6 MB of 90.4 MB  onnx/model.onnx`. */
export function drawBar({ path, sizeBytes }: ProgressFile, doneBytes: number): string {
  const share = sizeBytes === 0 ? 1 : Math.min(1, doneBytes / sizeBytes);
  const cells = '#'.repeat(Math.floor(share * barCells)).padEnd(barCells, '.');
  const percent = String(Math.floor(share * 100)).padStart(3);
  return `[${cells}] ${percent} %  ${showBytes(doneBytes)} of ${showBytes(sizeBytes)}  ${path}`;
}

/** Progress as one line that changes, drawn when the percentage does. */
export function barProgress(draw: (line: string) => void): PullProgress {
  let percent = -1;
  const show = (file: ProgressFile, doneBytes: number, isForced: boolean): void => {
    const next = file.sizeBytes === 0 ? 100 : Math.floor((doneBytes / file.sizeBytes) * 100);
    if (next === percent && !isForced) return;
    percent = next;
    draw(drawBar(file, doneBytes));
  };
  return {
    onStart: (file, presentBytes) => {
      show(file, presentBytes, true);
    },
    onBytes: (file, doneBytes) => {
      show(file, doneBytes, false);
    },
    onDone: (file) => {
      show(file, file.sizeBytes, true);
    },
    onNote: draw,
  };
}

/** What `run` gives, its progress drawn below a title. */
export async function withBars<Result>(
  title: string,
  run: (progress: PullProgress) => Promise<Result>,
): Promise<Result> {
  const { Listr } = await import('listr2');
  const context: { result?: Result } = {};
  const list = new Listr<typeof context>(
    [
      {
        title,
        task: async (own, task) => {
          own.result = await run(
            barProgress((line) => {
              task.output = line;
            }),
          );
        },
      },
    ],
    // The reason is written once, where every command's is.
    { ctx: context, rendererOptions: { showErrorMessage: false } },
  );
  await list.run();
  return context.result as Result;
}
