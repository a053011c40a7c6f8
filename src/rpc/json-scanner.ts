/** Owns walking through JSON text: one pass without recursion, bounded and counted, that keeps every character. */
import {
  backslash,
  closeBrace,
  closeBracket,
  colon,
  comma,
  isSpace,
  openBrace,
  openBracket,
  quote,
} from './json-characters.ts';

/** Bounds of one text. */
export interface ScanLimits {
  readonly depth: number;
  readonly values: number;
  readonly names: number;
  /** Characters of a number or word; V8 takes a second for a number of 32 million digits. */
  readonly literal: number;
}

/** What a walk has counted. */
export interface ScanCounts {
  /** Deepest nesting seen, 1 for a flat object. */
  readonly depth: number;
  /** Values of any kind seen, members included. */
  readonly values: number;
  /** Names of members seen. */
  readonly names: number;
  /** The limit that ended the walk early, so that a text made to be slow is not even walked whole; null: none did. */
  readonly excess: keyof ScanLimits | null;
}

/** A run of JSON's white space, from `lastIndex` on. */
const space = /[ \t\r\n]+/y;
const isDelimiter = (code: number) => code === comma || code === closeBrace || code === closeBracket || isSpace(code);

/**
 * A place in a JSON text that only moves on. On text that is not JSON what it finds is meaningless, but every walk still
 * ends: parse first or afterwards, and use what was found only when that succeeded.
 */
export class JsonScanner {
  readonly #text: string;
  readonly #limits: ScanLimits;
  #position = 0;
  #depth = 0;
  #values = 0;
  #names = 0;
  #excess: keyof ScanLimits | null = null;

  /** At the first character that is no white space. */
  constructor(text: string, limits: ScanLimits) {
    this.#text = text;
    this.#limits = limits;
    this.#skipSpace();
  }

  /** What was counted by now. */
  counts(): ScanCounts {
    return { depth: this.#depth, values: this.#values, names: this.#names, excess: this.#excess };
  }

  /** Whether a list begins here. */
  isAtList(): boolean {
    return this.#code() === openBracket;
  }

  /** Moves to the end of the text, whatever stands there. */
  skipRest(): void {
    while (this.#position < this.#text.length) {
      this.skipValue(1);
      this.#position += 1;
    }
  }

  /** Visits the members of an object; anything else is skipped and gives false. */
  eachMember(depth: number, visit: (key: string) => void): boolean {
    this.#skipSpace();
    if (this.#code() !== openBrace) {
      this.skipValue(depth);
      return false;
    }
    this.#count(depth);
    this.#position += 1;
    for (;;) {
      this.#skipSpace();
      if (this.#code() !== quote) break;
      const key = this.#key();
      this.#countName();
      this.#skipSpace();
      if (this.#code() === colon) this.#position += 1;
      this.#skipSpace();
      visit(key);
      this.#skipSpace();
      if (this.#code() !== comma) break;
      this.#position += 1;
    }
    this.#position += 1;
    return true;
  }

  /** Visits the elements of the list that begins here. */
  eachElement(visit: () => void): void {
    this.#count(1);
    this.#position += 1;
    this.#skipSpace();
    while (this.#position < this.#text.length && this.#code() !== closeBracket) {
      const before = this.#position;
      visit();
      this.#skipSpace();
      if (this.#code() === comma) this.#position += 1;
      else if (this.#position === before) this.#position += 1;
      this.#skipSpace();
    }
    this.#position += 1;
  }

  #key(): string {
    const start = this.#position;
    this.#skipString();
    const raw = this.#text.slice(start + 1, this.#position - 1);
    if (!raw.includes('\\')) return raw;
    try {
      return JSON.parse(`"${raw}"`) as string;
    } catch {
      return raw;
    }
  }

  /** Raw text of a string or number; other values are skipped. */
  scalar(depth: number): string | undefined {
    const first = this.#code();
    const raw = this.raw(depth);
    const isScalar = first === quote || first === 0x2d || (first >= 0x30 && first <= 0x39);
    return isScalar ? raw : undefined;
  }

  /** Raw text of any value. */
  raw(depth: number): string {
    const start = this.#position;
    this.skipValue(depth);
    // A string is looked behind, for it could be a name.
    return this.#text.slice(start, this.#position).trimEnd();
  }

  /** Moves behind one value of any depth, with a counter instead of recursion. */
  skipValue(depth: number): void {
    let open = 0;
    do {
      this.#skipSpace();
      const code = this.#code();
      if (Number.isNaN(code)) return;
      if (code === openBrace || code === openBracket) {
        open += 1;
        this.#count(depth + open - 1);
        this.#position += 1;
      } else if (code === closeBrace || code === closeBracket) {
        if (open === 0) return;
        open -= 1;
        this.#position += 1;
      } else if (code === comma || code === colon) {
        if (open === 0) return;
        this.#position += 1;
      } else if (code === quote) {
        this.#skipString();
        if (open === 0 || !this.#isAtColon()) this.#count(0);
        else this.#countName();
      } else {
        this.#skipLiteral();
        this.#count(0);
      }
    } while (open > 0);
  }

  /** True behind the name of a member, which is no value. */
  #isAtColon(): boolean {
    this.#skipSpace();
    return this.#code() === colon;
  }

  #skipLiteral(): void {
    const end = this.#position + this.#limits.literal;
    do {
      this.#position += 1;
      if (this.#position > end) {
        this.#stop('literal');
        return;
      }
    } while (
      this.#position < this.#text.length &&
      !isDelimiter(this.#code()) &&
      this.#code() !== colon &&
      this.#code() !== quote
    );
  }

  #skipString(): void {
    let end = this.#position;
    for (;;) {
      end = this.#text.indexOf('"', end + 1);
      if (end === -1) {
        this.#position = this.#text.length;
        return;
      }
      let backslashes = 0;
      while (this.#text.charCodeAt(end - 1 - backslashes) === backslash) backslashes += 1;
      if (backslashes % 2 === 0) break;
    }
    this.#position = end + 1;
  }

  #count(depth: number): void {
    this.#values += 1;
    if (depth > this.#depth) this.#depth = depth;
    if (this.#depth > this.#limits.depth) this.#stop('depth');
    else if (this.#values > this.#limits.values) this.#stop('values');
  }

  #countName(): void {
    this.#names += 1;
    if (this.#names > this.#limits.names) this.#stop('names');
  }

  /** Every loop of the scan ends at the end of the text. */
  #stop(excess: keyof ScanLimits): void {
    this.#excess ??= excess;
    this.#position = this.#text.length;
  }

  #skipSpace(): void {
    if (!isSpace(this.#code())) return;
    space.lastIndex = this.#position;
    space.test(this.#text);
    this.#position = space.lastIndex;
  }

  #code(): number {
    return this.#text.charCodeAt(this.#position);
  }
}
