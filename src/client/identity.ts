/** Owns comparing what an index was made with and what a server serves. */
import type { ModelCapability, ServerInfo } from './info.ts';
import { identityOf, modelsOf } from './models.ts';
import type { Identities } from './options.ts';

/** A model that is not the one that an index was made with. */
export interface IdentityMismatch {
  readonly capability: ModelCapability;
  readonly expected: string;
  /** undefined where the server offers nothing of the kind, or does not say. */
  readonly actual: string | undefined;
  /** For people: what differs, and what can be done. */
  readonly message: string;
}

/** Every expectation that the server's first models do not meet. */
export function compareIdentities(info: ServerInfo, expected: Identities): IdentityMismatch[] {
  return Object.entries(expected).flatMap(([name, wanted]) => {
    const capability = name as ModelCapability;
    const actual = identityOf(info, capability);
    if (actual === wanted) return [];
    const other = modelsOf(info, capability).find(({ identity }) => identity === wanted);
    const advice =
      other === undefined
        ? 'scores against that index mean nothing; make it again, or serve its model'
        : `ask for it with the option model: "${other.id}"`;
    const served = actual === undefined ? 'the server names no model' : `the server's is ${actual}`;
    return [
      {
        capability,
        expected: wanted,
        actual,
        message: `${capability}: the index is of ${wanted}, ${served}; ${advice}`,
      },
    ];
  });
}
