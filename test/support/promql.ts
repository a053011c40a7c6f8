/** Owns reading PromQL as far as names go: which metrics an expression selects, and which labels it names for them. */

/** What an expression names. */
export interface PromqlNames {
  /** Each selected metric with the labels of its matchers. */
  readonly selectors: readonly { readonly metric: string; readonly labels: readonly string[] }[];
  /** Labels by which series are grouped or matched. */
  readonly groupings: readonly string[];
  readonly functions: readonly string[];
}

const operators = new Set(['and', 'or', 'unless', 'offset', 'bool', 'atan2', 'inf', 'nan']);
const groupers = new Set(['by', 'without', 'on', 'ignoring', 'group_left', 'group_right']);
const tokenPattern =
  /\s+|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\[[^\]]*\]|[a-zA-Z_:][\w:]*|\d[\w.]*|[=!<>]=|[=!]~|[-+*/%^(){},=<>@]/y;

function tokensOf(expression: string): string[] {
  const tokens: string[] = [];
  tokenPattern.lastIndex = 0;
  while (tokenPattern.lastIndex < expression.length) {
    const at = tokenPattern.lastIndex;
    const match = tokenPattern.exec(expression);
    if (match === null) throw new Error(`no PromQL at ${at}: ${expression.slice(at, at + 20)}`);
    if (match[0].trim() !== '') tokens.push(match[0]);
  }
  return tokens;
}

const isName = (token: string | undefined): boolean => /^[a-zA-Z_:]/.test(token ?? '');

/**
 * The names in an expression.
 * @throws Error where it holds what this reader does not know
 */
export function readPromql(expression: string): PromqlNames {
  const tokens = tokensOf(expression);
  const selectors: { metric: string; labels: string[] }[] = [];
  const groupings: string[] = [];
  const functions: string[] = [];
  /** Reads names up to the closing token and gives the position behind it. */
  const readLabels = (from: number, end: string, into: string[]): number => {
    let at = from;
    while (tokens[at] !== end) {
      const token = tokens[at];
      if (token === undefined) throw new Error(`${end} is missing: ${expression}`);
      if (isName(token)) into.push(token);
      at += 1;
    }
    return at + 1;
  };
  let at = 0;
  while (at < tokens.length) {
    const token = tokens[at] ?? '';
    at += 1;
    if (token === '{') throw new Error(`a selector without a metric: ${expression}`);
    if (!isName(token) || operators.has(token.toLowerCase())) continue;
    if (groupers.has(token)) {
      if (tokens[at] === '(') at = readLabels(at + 1, ')', groupings);
    } else if (tokens[at] === '(' || groupers.has(tokens[at] ?? '')) {
      functions.push(token);
    } else {
      const labels: string[] = [];
      if (tokens[at] === '{') at = readLabels(at + 1, '}', labels);
      selectors.push({ metric: token, labels });
    }
  }
  return { selectors, groupings, functions };
}
