/** Owns reading the bodies of answers: never more than allowed, and which frame of a stream is the answer. */
import { oversizedError, parseFrame, progressOf, type Request, type Result } from './transport.ts';

/** The body as text, piece by piece, never more of it than allowed. */
export async function* chunksOf(response: Response, maxBytes: number, address: string): AsyncGenerator<string> {
  if (response.body === null) return;
  const body: ReadableStream<Uint8Array<ArrayBuffer>> = response.body;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let bytes = Number(response.headers.get('content-length') ?? 0) > maxBytes ? Infinity : 0;
  try {
    while (true) {
      if (bytes > maxBytes) throw oversizedError(address, maxBytes);
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.length;
      yield decoder.decode(value, { stream: true });
    }
    yield decoder.decode();
  } finally {
    // Of what was read to its end nothing is left to cancel.
    reader.cancel().catch(() => undefined);
  }
}

/** Whether a frame is an answer, and to which request is another question. */
export const isAnswer = (frame: Result): boolean => 'id' in frame && ('result' in frame || 'error' in frame);

/** Whether an answer is to the request of this id; what could not be read was refused without one. */
export const isAnswerTo = (frame: Result, id: number): boolean =>
  isAnswer(frame) && (frame['id'] === id || (frame['id'] === null && 'error' in frame));

/** All pieces in one. */
export async function readAll(chunks: AsyncIterable<string>): Promise<string> {
  const all: string[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all.join('');
}

/** The answer to a request among the events of a stream, or null; progress is reported as it comes. */
export async function answerInStream(
  chunks: AsyncIterable<string>,
  id: number,
  request: Request,
): Promise<Result | null> {
  let answer: Result | null = null;
  for await (const line of linesOf(chunks)) {
    const frame = line.startsWith('data:') ? parseFrame(line.slice('data:'.length)) : null;
    if (frame === null) continue;
    if (isAnswerTo(frame, id)) answer ??= frame;
    const progress = progressOf(frame);
    if (progress !== null) request.onProgress?.(progress.progress);
  }
  return answer;
}

/** The lines of a text that comes in pieces, the last one too where nothing ends it. */
async function* linesOf(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let pieces: string[] = [];
  for await (const chunk of chunks) {
    // An answer spans many chunks: they are joined once it is whole.
    const end = chunk.lastIndexOf('\n');
    if (end < 0) {
      pieces.push(chunk);
      continue;
    }
    yield* [...pieces, chunk.slice(0, end)].join('').split('\n');
    pieces = [chunk.slice(end + 1)];
  }
  yield pieces.join('');
}
