/** Owns the sentence about what a call took. */

/** What a result says of its own cost. */
export interface Usage {
  readonly inputTokens: number;
  readonly truncated: readonly number[];
  readonly latencyMs: number;
  readonly device?: string;
}

/** Such as `12 tokens in 5 ms on cpu:0.` */
export function usageText({ inputTokens, truncated, latencyMs, device }: Usage): string {
  const where = device === undefined ? '' : ` on ${device}`;
  const cut = truncated.length === 0 ? '' : ` ${truncated.length} of the texts were cut.`;
  return `${inputTokens} tokens in ${latencyMs} ms${where}.${cut}`;
}
