/** Owns the raw text of ids: one scan of a frame that keeps the characters JSON.parse would alter. */
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

/** Raw JSON text of the members that are echoed or compared; undefined where absent or not a scalar. */
export interface RawTokens {
  readonly id: string | undefined;
  /** `params.id`, the target of a cancel. */
  readonly paramsId: string | undefined;
  readonly nonce: string | undefined;
  readonly progressToken: string | undefined;
}

/** What one scan found. */
export interface FrameScan {
  /** One entry for a single frame, one per member for an array. */
  readonly members: readonly RawTokens[];
  readonly isArray: boolean;
  /** Deepest nesting seen, 1 for a flat object. */
  readonly depth: number;
  /** Values of any kind seen, members included. */
  readonly values: number;
  /** Names of members seen. */
  readonly names: number;
  /** The limit that ended the scan early, so that a frame made to be slow is not even scanned whole; null: none did. */
  readonly excess: keyof ScanLimits | null;
}

/** Bounds of one frame. */
export interface ScanLimits {
  readonly depth: number;
  readonly values: number;
  readonly names: number;
  /** Characters of a number or word; V8 takes a second for a number of 32 million digits. */
  readonly literal: number;
}

const noTokens: RawTokens = { id: undefined, paramsId: undefined, nonce: undefined, progressToken: undefined };

/** A run of JSON's white space, from `lastIndex` on. */
const space = /[ \t\r\n]+/y;
const isDelimiter = (code: number) => code === comma || code === closeBrace || code === closeBracket || isSpace(code);

/**
 * Scans a frame without recursion, whatever its depth. On text that is not JSON the result is meaningless but
 * the scan still ends: parse first or afterwards, and use the tokens only when that succeeded.
 * Repeated member names: the last one wins, as in JSON.parse.
 */
export function scanFrame(text: string, limits: ScanLimits): FrameScan {
  return new Scanner(text, limits).scanFrame();
}

class Scanner {
  readonly #text: string;
  readonly #limits: ScanLimits;
  #position = 0;
  #depth = 0;
  #values = 0;
  #names = 0;
  #excess: keyof ScanLimits | null = null;

  constructor(text: string, limits: ScanLimits) {
    this.#text = text;
    this.#limits = limits;
  }

  scanFrame(): FrameScan {
    this.#skipSpace();
    const members: RawTokens[] = [];
    const isArray = this.#code() === openBracket;
    if (isArray) {
      this.#eachElement(() => members.push(this.#call(2)));
    } else {
      members.push(this.#call(1));
    }
    // What follows the frame is an error for JSON.parse, yet it counts: it is parsed too.
    while (this.#position < this.#text.length) {
      this.#skipValue(1);
      this.#position += 1;
    }
    return { members, isArray, depth: this.#depth, values: this.#values, names: this.#names, excess: this.#excess };
  }

  #call(depth: number): RawTokens {
    let id: string | undefined;
    let params = noTokens;
    const isObject = this.#eachMember(depth, (key) => {
      if (key === 'id') id = this.#scalar(depth + 1);
      else if (key === 'params') params = this.#params(depth + 1);
      else this.#skipValue(depth + 1);
    });
    return isObject ? { ...params, id } : noTokens;
  }

  #params(depth: number): RawTokens {
    let paramsId: string | undefined;
    let nonce: string | undefined;
    let progressToken: string | undefined;
    this.#eachMember(depth, (key) => {
      if (key === 'id') paramsId = this.#scalar(depth + 1);
      else if (key === 'nonce') nonce = this.#scalar(depth + 1);
      else if (key === '_meta') {
        progressToken = undefined;
        this.#eachMember(depth + 1, (metaKey) => {
          if (metaKey === 'progressToken') progressToken = this.#scalar(depth + 2);
          else this.#skipValue(depth + 2);
        });
      } else this.#skipValue(depth + 1);
    });
    return { id: undefined, paramsId, nonce, progressToken };
  }

  /** Visits the members of an object; anything else is skipped and gives false. */
  #eachMember(depth: number, visit: (key: string) => void): boolean {
    this.#skipSpace();
    if (this.#code() !== openBrace) {
      this.#skipValue(depth);
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

  #eachElement(visit: () => void): void {
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
  #scalar(depth: number): string | undefined {
    const start = this.#position;
    const first = this.#code();
    this.#skipValue(depth);
    const isScalar = first === quote || first === 0x2d || (first >= 0x30 && first <= 0x39);
    return isScalar ? this.#text.slice(start, this.#position) : undefined;
  }

  /** Moves behind one value of any depth, with a counter instead of recursion. */
  #skipValue(depth: number): void {
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
