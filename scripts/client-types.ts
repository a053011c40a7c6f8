/** Owns the type declarations of the client, the one part of `src` that other programs import. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('..', import.meta.url));
const source = `${root}src/client/`;

/** Such as `'./error.ts'` where a declaration names another module. */
const relativeModule = /(['"])(\.{1,2}\/[^'"]+)\.ts\1/g;

/**
 * Writes a `.d.ts` for each module of `src/client` into `dist/client`. It reads one file at a time and resolves nothing,
 * so it adds next to nothing to the build; that is possible while what they export states its types.
 * @throws Error where it does not
 */
export function writeClientTypes(): void {
  const target = `${root}dist/client/`;
  mkdirSync(target, { recursive: true });
  for (const name of readdirSync(source)) {
    const { outputText, diagnostics = [] } = ts.transpileDeclaration(readFileSync(source + name, 'utf8'), {
      fileName: name,
      reportDiagnostics: true,
      compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, isolatedDeclarations: true },
    });
    const [problem] = diagnostics;
    if (problem !== undefined) {
      throw new Error(`src/client/${name}: ${ts.flattenDiagnosticMessageText(problem.messageText, '\n')}`);
    }
    writeFileSync(target + name.replace(/\.ts$/, '.d.ts'), outputText.replace(relativeModule, '$1$2.js$1'));
  }
}
