/** Owns JSON texts whose raw tokens are known because the text was built from them. */
import fc from 'fast-check';

/** A JSON value together with the exact characters it was written in. */
export type RawNode =
  | { readonly kind: 'scalar' | 'literal'; readonly raw: string }
  | { readonly kind: 'object'; readonly raw: string; readonly members: readonly (readonly [string, RawNode])[] }
  | { readonly kind: 'array'; readonly raw: string; readonly elements: readonly RawNode[] };

/** JSON white space, often none. */
export const space = fc.string({ unit: fc.constantFrom(' ', '\n', '\r', '\t'), maxLength: 2 });

const awkward = fc.string({
  unit: fc.constantFrom('a', '"', '\\', '{', '}', '[', ']', ',', ':', 'é', '\n', '😀', '/'),
});
const escapeAll = (text: string) =>
  `"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`;
const writtenString = (text: fc.Arbitrary<string>) =>
  fc.tuple(text, fc.boolean()).map(([value, isEscaped]) => (isEscaped ? escapeAll(value) : JSON.stringify(value)));

const scalar: fc.Arbitrary<RawNode> = fc
  .oneof(
    writtenString(awkward),
    fc.constantFrom('0', '-0', '1.0', '1E2', '1e400', '-12.5e-3', '9007199254740993', '18446744073709551615'),
    fc.integer().map(String),
  )
  .map((raw) => ({ kind: 'scalar', raw }));
const literal: fc.Arbitrary<RawNode> = fc
  .constantFrom('true', 'false', 'null')
  .map((raw) => ({ kind: 'literal', raw }));

const keyNames = fc.constantFrom('id', 'params', 'nonce', '_meta', 'progressToken', 'method', 'x', '', '__proto__');

/** Objects with repeated, escaped and nested `id`, `params`, `nonce`, `_meta` and `progressToken`; and anything else. */
export const { node: rawNode, object: rawObject } = fc.letrec<{ node: RawNode; object: RawNode }>((tie) => ({
  node: fc.oneof({ maxDepth: 4, depthSize: 'small' }, scalar, literal, tie('object'), array(tie('node'))),
  object: fc.array(fc.tuple(keyNames, fc.boolean(), tie('node'), space, space), { maxLength: 5 }).map((parts) => ({
    kind: 'object',
    raw: `{${parts
      .map(([key, isEscaped, node, before, after]) => {
        const name = isEscaped ? escapeAll(key) : JSON.stringify(key);
        return `${before}${name}${after}:${before}${node.raw}${after}`;
      })
      .join(',')}${parts.length === 0 ? ' ' : ''}}`,
    members: parts.map(([key, , node]) => [key, node] as const),
  })),
}));

function array(node: fc.Arbitrary<RawNode>): fc.Arbitrary<RawNode> {
  return fc.array(fc.tuple(node, space), { maxLength: 4 }).map((parts) => ({
    kind: 'array',
    raw: `[${parts.map(([{ raw }, around]) => `${around}${raw}${around}`).join(',')}]`,
    elements: parts.map(([element]) => element),
  }));
}

/** The last member of that name, as JSON.parse keeps it. */
export const lastMember = (node: RawNode | undefined, key: string): RawNode | undefined =>
  node?.kind === 'object' ? node.members.findLast(([name]) => name === key)?.[1] : undefined;

const childrenOf = (node: RawNode): readonly RawNode[] => {
  if (node.kind === 'object') return node.members.map(([, child]) => child);
  return node.kind === 'array' ? node.elements : [];
};

/** Nesting of objects and lists. */
export const depthOf = (node: RawNode): number =>
  node.kind === 'object' || node.kind === 'array' ? 1 + Math.max(0, ...childrenOf(node).map(depthOf)) : 0;

/** Values of any kind, the node itself included. */
export const valuesOf = (node: RawNode): number =>
  1 + childrenOf(node).reduce((sum, child) => sum + valuesOf(child), 0);
