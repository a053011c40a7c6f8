/** Owns what the browser keeps for this page: nothing where it forbids that, and then the page goes on without. */

/** Texts by name, for this tab (`session`) or for this browser (`local`). */
export interface Storage {
  /** null where nothing is kept. */
  readonly get: (name: string) => string | null;
  /** Keeps a text as far as the browser lets it; null forgets it. */
  readonly set: (name: string, text: string | null) => void;
}

/** A place that never throws. */
export function openStorage(kind: 'session' | 'local'): Storage {
  // The property itself throws where cookies are blocked.
  const place = () => (kind === 'session' ? sessionStorage : localStorage);
  return {
    get(name) {
      try {
        return place().getItem(name);
      } catch {
        return null;
      }
    },
    set(name, text) {
      try {
        if (text === null) place().removeItem(name);
        else place().setItem(name, text);
      } catch {
        // Forbidden or full: what is not kept is chosen or given again.
      }
    },
  };
}
