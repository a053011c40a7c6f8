/** Owns tokenising together what is asked for in one turn of the event loop: one batch, equal texts once. */
import type { TokenLibrary } from './library.ts';

/** Most different texts for which callers share a batch. */
export const maxSharedTexts = 64;

/**
 * Most characters for which callers share a batch: about 2 ms of tokenising, so that no short text waits for long ones.
 * @unit characters
 */
export const maxSharedCharacters = 4096;

interface Caller {
  readonly texts: readonly string[];
  readonly resolve: (ids: readonly ArrayLike<number>[]) => void;
  readonly reject: (error: unknown) => void;
}

/** What one call of the library answers. */
interface SharedBatch {
  readonly callers: Caller[];
  /** Place of each text in the call. */
  readonly places: Map<string, number>;
  characters: number;
}

const emptyBatch = (): SharedBatch => ({ callers: [], places: new Map(), characters: 0 });

const lengthOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + text.length, 0);

const isWithinBounds = ({ places, characters }: SharedBatch, texts: readonly string[]): boolean =>
  places.size + texts.length <= maxSharedTexts && characters + lengthOf(texts) <= maxSharedCharacters;

function join(batch: SharedBatch, caller: Caller): void {
  batch.callers.push(caller);
  for (const text of caller.texts) {
    if (batch.places.has(text)) continue;
    batch.places.set(text, batch.places.size);
    batch.characters += text.length;
  }
}

/** Answers all callers of a batch in one turn; where their texts fail together, each is tried alone. */
async function run(library: TokenLibrary, { callers, places }: SharedBatch): Promise<void> {
  try {
    const ids = await library.encodeBatch([...places.keys()]);
    for (const { texts, resolve } of callers) resolve(texts.map((text) => ids[places.get(text) ?? -1] ?? []));
  } catch (error) {
    for (const caller of callers) {
      if (callers.length === 1) {
        caller.reject(error);
        continue;
      }
      const alone = emptyBatch();
      join(alone, caller);
      void run(library, alone);
    }
  }
}

/** The batches that one turn's callers fill; the texts of a caller are never parted. */
class Turn {
  readonly batches: SharedBatch[] = [];
  readonly #byFirstText = new Map<string | undefined, SharedBatch>();

  add(caller: Caller): void {
    const batch = this.#batchFor(caller.texts);
    join(batch, caller);
    this.#byFirstText.set(caller.texts[0], batch);
  }

  #batchFor(texts: readonly string[]): SharedBatch {
    // Texts that are tokenised anyway cost nothing, however long they are.
    const same = this.#byFirstText.get(texts[0]);
    if (same !== undefined && texts.every((text) => same.places.has(text))) return same;
    const last = this.batches.at(-1);
    if (last !== undefined && isWithinBounds(last, texts)) return last;
    const fresh = emptyBatch();
    this.batches.push(fresh);
    return fresh;
  }
}

/**
 * The same library, whose texts of one turn of the event loop are encoded together: calls of one array, and requests
 * that arrive together, get their ids in the same turn and so can share a run.
 */
export function coalesce(library: TokenLibrary, soon: (callback: () => void) => void = setImmediate): TokenLibrary {
  let turn: Turn | null = null;
  const flush = () => {
    const batches = turn?.batches ?? [];
    turn = null;
    for (const batch of batches) void run(library, batch);
  };
  return {
    ...library,
    encodeBatch: (texts) =>
      new Promise((resolve, reject) => {
        if (turn === null) {
          turn = new Turn();
          soon(flush);
        }
        turn.add({ texts, resolve, reject });
      }),
  };
}
