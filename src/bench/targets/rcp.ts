/** Owns asking a server that speaks RCP/1. */
import { errorCatalogue } from '../../errors.ts';
import { countVectors, membersOf, tokensOf } from '../target.ts';
import type { Target } from '../target.ts';

const frame = (method: string, params: object): object => ({ jsonrpc: '2.0', id: 1, method, params });

/** RCP's `embed`: vectors as base64 where the server offers it. */
export const rcpTarget: Target = {
  path: '/rcp/embed',
  async settle(client, path, model) {
    const { body, status } = await client.post(path.replace(/\/embed$/u, '/info'), JSON.stringify(frame('info', {})));
    if (status !== 200) throw new Error(`"info" was answered with HTTP ${status}`);
    const { capabilities } = membersOf(membersOf(JSON.parse(body.toString()))['result']);
    const { embed } = membersOf(capabilities);
    if (embed === undefined) throw new Error('"info" does not offer "embed"');
    const { encodings } = membersOf(embed);
    const hasBase64 = Array.isArray(encodings) && encodings.includes('f32-base64');
    return { model, encoding: hasBase64 ? 'f32-base64' : 'json' };
  },
  body({ texts, kind, isBulk }, { model, encoding }) {
    const vendor = { ...(model === null ? {} : { model }), ...(isBulk ? { priority: 'bulk' } : {}) };
    return frame('embed', {
      inputs: texts,
      kind,
      encoding,
      ...(Object.keys(vendor).length === 0 ? {} : { 'x-trivec': vendor }),
    });
  },
  read(body) {
    const { error, result } = membersOf(body);
    if (error !== undefined) {
      const { code, message } = membersOf(error);
      if (code === errorCatalogue.overloaded.code) return { kind: 'refused' };
      return { kind: 'failed', reason: `error ${String(code)}`, message: String(message) };
    }
    const { vectors, usage } = membersOf(result);
    return { vectors: countVectors(vectors), tokens: tokensOf(membersOf(usage)['inputTokens']) };
  },
};
