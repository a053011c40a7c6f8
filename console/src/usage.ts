/** Owns the sentence about what a call took. */

/** What a result says of its own cost. */
export interface Usage {
  readonly inputTokens: number;
  readonly truncated: readonly number[];
  readonly latencyMs: number;
  readonly device?: string;
}

/** Such as `12 tokens in 5 ms on cpu:0. 2 of the texts were cut.` */
export function usageText({ inputTokens, truncated, latencyMs, device }: Usage, texts = 'texts'): string {
  const where = device === undefined ? '' : ` on ${device}`;
  const cut =
    truncated.length === 0
      ? ''
      : ` ${truncated.length} of the ${texts} ${truncated.length === 1 ? 'was' : 'were'} cut.`;
  return `${inputTokens} tokens in ${latencyMs} ms${where}.${cut}`;
}

/** What two calls took that ran at the same time, one of them for a query alone: a query that was cut is named. */
export function queryUsageText(ofQuery: Usage, ofTexts: Usage, texts: string): string {
  const devices = [...new Set([ofQuery.device, ofTexts.device])].filter((device) => device !== undefined);
  const both = {
    ...ofTexts,
    inputTokens: ofQuery.inputTokens + ofTexts.inputTokens,
    latencyMs: Math.max(ofQuery.latencyMs, ofTexts.latencyMs),
    ...(devices.length === 0 ? {} : { device: devices.join(' and ') }),
  };
  return `${usageText(both, texts)}${ofQuery.truncated.length === 0 ? '' : ' The query was cut.'}`;
}
