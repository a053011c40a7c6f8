/** Owns turning the words of flags into values, every problem noted. */

/** Bounds of a number. */
export interface NumberBounds {
  readonly min: number;
  readonly max: number;
  readonly isWhole?: boolean;
}

/** Reads flags one by one; what it cannot use gives null or the default, and a problem. */
export interface FlagReader {
  text(key: string): string | null;
  number(key: string, bounds: NumberBounds): number | null;
  choice<Choice extends string>(key: string, choices: readonly Choice[]): Choice | null;
  isSet(key: string): boolean;
  /** Notes a problem that no single value has. */
  refuse(problem: string): void;
  readonly problems: readonly string[];
}

/** `compareTarget` -> `--compare-target`. */
export const flagName = (key: string): string => `--${key.replace(/[A-Z]/gu, (letter) => `-${letter.toLowerCase()}`)}`;

/** Reads what the command line gave. */
export function createFlagReader(flags: Readonly<Record<string, unknown>>): FlagReader {
  const problems: string[] = [];
  const text = (key: string): string | null => {
    const value = flags[key];
    return typeof value === 'string' ? value : null;
  };
  return {
    text,
    number(key, { min, max, isWhole = true }) {
      const word = text(key);
      if (word === null) return null;
      const value = word.trim() === '' ? Number.NaN : Number(word);
      if (value >= min && value <= max && (!isWhole || Number.isInteger(value))) return value;
      problems.push(`${flagName(key)} must be a ${isWhole ? 'whole ' : ''}number from ${min} to ${max}, not "${word}"`);
      return null;
    },
    choice(key, choices) {
      const word = text(key);
      if (word === null) return null;
      const found = choices.find((choice) => choice === word);
      if (found === undefined) problems.push(`${flagName(key)} must be one of ${choices.join(', ')}, not "${word}"`);
      return found ?? null;
    },
    isSet: (key) => flags[key] !== undefined,
    refuse: (problem) => void problems.push(problem),
    problems,
  };
}

/** The words of a text as a shell would see them: parted by blanks, unless quotes hold them together. */
export const splitWords = (text: string): string[] =>
  [...text.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/gu)].map(([word]) => word.replace(/"([^"]*)"|'([^']*)'/gu, '$1$2'));
