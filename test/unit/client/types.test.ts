import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../support/files.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

const consumer = `
import { connect, RcpError, type Client, type EmbedResult, type Usage } from 'trivec/client';

const client: Client = await connect('http://127.0.0.1:8000', {
  apiKey: 'key',
  expectIdentity: { embed: 'model@1' },
  retry: { maxAttempts: 3 },
  onWarning: (message: string) => message.length,
});
const dense = await client.embed(['a'], { kind: 'query', deadlineMs: 1000, onProgress: ({ progress }) => progress + 1 });
export const floats: Float32Array | undefined = dense.vectors[0];
export const named: EmbedResult = dense;
export const integers: Int8Array | undefined = (await client.embed(['a'], { output: 'int8' })).vectors[0];
export const bits: Uint8Array | undefined = (await client.embed(['a'], { output: 'ubinary' })).vectors[0];
export const rows: readonly Float32Array[] | undefined = (await client.multiVector(['a'])).matrices[0];
export const terms: Uint32Array | undefined = (await client.sparseEmbed(['a'])).sparse[0]?.indices;
export const usage: Usage = (await client.rerank('q', ['a'], { topN: 1, signal: new AbortController().signal })).usage;
export const identity: string | undefined = client.identity('embed');
export const dimension: number | undefined = client.capabilities.embed?.dimension;
export const code = (error: unknown): number => (error instanceof RcpError ? error.code : 0);

// @ts-expect-error a text is no list
await client.embed('a');
// @ts-expect-error a kind that RCP does not have
await client.embed(['a'], { kind: 'passage' });
// @ts-expect-error integers are no floats
export const wrong: Float32Array | undefined = (await client.embed(['a'], { output: 'int8' })).vectors[0];
// @ts-expect-error only dense vectors can be cut
await client.multiVector(['a'], { dimensions: 2 });
// @ts-expect-error results are not to be written to
dense.vectors[0] = new Float32Array(1);
`;
const nodeConsumer = `${consumer}
export const own: Client = await connect({ command: 'node', args: ['dist/main.js', 'serve', '--stdio'] });
`;
const browserConsumer = `${consumer}
// @ts-expect-error a browser starts no processes
await connect({ command: 'node' });
`;

/** What the compiler says to a program that has the package installed. */
function complaints(text: string, options: ts.CompilerOptions): string[] {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules/trivec'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const file = join(folder, 'consumer.ts');
  writeFileSync(file, text);
  const program = ts.createProgram([file], {
    target: ts.ScriptTarget.ES2022,
    strict: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    types: [],
    ...options,
  });
  return ts
    .getPreEmitDiagnostics(program)
    .map(({ file: at, start, messageText }) =>
      [at?.fileName, start, ts.flattenDiagnosticMessageText(messageText, '\n')].join(': '),
    );
}

describe('the types of the package', () => {
  it('say what is right and what is wrong to a program for Node', { timeout: 60_000 }, () => {
    expect(
      complaints(nodeConsumer, {
        module: ts.ModuleKind.NodeNext,
        moduleResolution: ts.ModuleResolutionKind.NodeNext,
        lib: ['lib.es2022.d.ts'],
        types: ['node'],
        typeRoots: [join(root, 'node_modules/@types')],
        skipLibCheck: true,
      }),
    ).toEqual([]);
  });

  it('need nothing of Node in a program for browsers', { timeout: 60_000 }, () => {
    expect(
      complaints(browserConsumer, {
        module: ts.ModuleKind.ESNext,
        moduleResolution: ts.ModuleResolutionKind.Bundler,
        customConditions: ['browser'],
        lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'],
        skipLibCheck: false,
      }),
    ).toEqual([]);
  });
});
