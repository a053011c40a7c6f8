/** Owns the answer to a list of no texts. */
import type { Vectors } from '../row.ts';
import type { Embedded, MethodName } from './source.ts';

const none: Readonly<Record<MethodName, Vectors>> = {
  dense: { kind: 'dense', vectors: [] },
  sparse: { kind: 'sparse', sparse: [] },
  multi: { kind: 'multi', matrices: [] },
};

/** Vectors of no texts. */
export const nothing = ({ method }: { readonly method: MethodName }): Embedded => ({
  vectors: none[method],
  tokens: 0,
});
