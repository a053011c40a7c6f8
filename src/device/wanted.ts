/** Owns the grammar of `--device`: which devices an operator asks for. */

/** What an operator asks for, understood. */
export type WantedDevices =
  | { readonly kind: 'auto' }
  | {
      readonly kind: 'named';
      readonly provider: 'cpu' | 'webgpu' | 'cuda';
      /** Which of the provider's devices; null for all of them. */
      readonly indexes: readonly number[] | null;
    };

/** Whether the choice is left to the program. */
export function isAuto(texts: readonly string[]): boolean {
  const parsed = parseWanted(texts);
  return 'kind' in parsed && parsed.kind === 'auto';
}

/** The grammar in words, for messages and help. */
const grammar = 'auto, cpu, webgpu, cuda, or devices of one of them such as cuda:0,cuda:1';

/** What looks like a name is repeated; anything else may be a secret that went into the wrong variable. */
const showName = (text: string): string => (/^[\w:.-]{0,12}$/.test(text) ? `"${text}"` : 'one of them');

/** What the texts ask for, or one sentence on why they ask for nothing. */
export function parseWanted(texts: readonly string[]): WantedDevices | { readonly problem: string } {
  const parsed = texts.map((text) => ({ text, match: /^(auto|cpu|webgpu|cuda)(?::(\d{1,3}))?$/.exec(text) }));
  const [first] = parsed;
  if (first === undefined) return { problem: `names no device: must be ${grammar}` };
  for (const { text, match } of parsed) {
    if (match === null) return { problem: `${showName(text)} is no device: must be ${grammar}` };
    if (match[1] === 'auto' && match[2] !== undefined) return { problem: `"${text}" is no device: auto has no number` };
  }
  const providers = [...new Set(parsed.map(({ match }) => match?.[1] ?? ''))];
  if (providers.length > 1) {
    const isAutoAmong = providers.includes('auto');
    const rule = isAutoAmong ? 'auto stands alone' : 'name devices of one provider';
    return { problem: `"${texts.join(',')}" mixes ${providers.join(' and ')}: ${rule}` };
  }
  const [provider] = providers;
  if (provider !== 'cpu' && provider !== 'webgpu' && provider !== 'cuda') return { kind: 'auto' };
  const numbers = parsed.map(({ match }) => match?.[2]);
  // The bare provider stands for all of its devices, whatever else is named.
  if (numbers.includes(undefined)) return { kind: 'named', provider, indexes: null };
  return { kind: 'named', provider, indexes: [...new Set(numbers.map(Number))] };
}
