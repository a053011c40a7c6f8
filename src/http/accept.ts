/** Owns choosing between one JSON body and an event stream. */

/** How a request is answered. */
export type AnswerFormat = 'json' | 'eventStream';

/** What decides the format; `hasProgressToken` is only asked when it matters, because it has to parse the text. */
export interface FormatQuestion {
  readonly accept: string | undefined;
  readonly isBatch: boolean;
  readonly hasProgressToken: () => boolean;
}

const eventStreamName = /text\/event-stream/i;

/**
 * An event stream only for a single request whose `Accept` names `text/event-stream` itself; where JSON is acceptable
 * too, only with a progress token. Wildcards never ask for a stream.
 */
export function chooseFormat(question: FormatQuestion): AnswerFormat {
  // What most callers send names no event stream, in whatever case.
  if (!eventStreamName.test(question.accept ?? '')) return 'json';
  const qualities = parseAccept(question.accept ?? '');
  if (question.isBatch || !isAcceptable(qualities, ['text/event-stream'])) return 'json';
  if (!isAcceptable(qualities, ['application/json', 'application/*', '*/*'])) return 'eventStream';
  return question.hasProgressToken() ? 'eventStream' : 'json';
}

/** Whether the most specific of the ranges that is named has a quality above zero. */
function isAcceptable(qualities: ReadonlyMap<string, number>, ranges: readonly string[]): boolean {
  const range = ranges.find((candidate) => qualities.has(candidate));
  return range !== undefined && (qualities.get(range) ?? 0) > 0;
}

/** Media range, in lower case, to quality; a quality that is no number counts as zero. */
function parseAccept(accept: string): Map<string, number> {
  const qualities = new Map<string, number>();
  for (const part of accept.split(',')) {
    const [range = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
    const quality = parameters.find((parameter) => /^q\s*=/.test(parameter));
    const value = quality === undefined ? 1 : Number(quality.replace(/^q\s*=\s*/, '') || NaN);
    if (range !== '') qualities.set(range, Number.isNaN(value) ? 0 : value);
  }
  return qualities;
}
