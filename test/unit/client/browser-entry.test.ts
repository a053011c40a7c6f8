import { readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const folder = new URL('../../../dist/client/', import.meta.url);
const packageJson = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'));

/** Every module that an entry names, directly or through others, statically or not. */
function graphOf(entry: string): { files: readonly string[]; others: readonly string[] } {
  const files = new Set<string>();
  const others = new Set<string>();
  const visit = (url: URL) => {
    if (files.has(url.href)) return;
    files.add(url.href);
    for (const { fileName } of ts.preProcessFile(readFileSync(url, 'utf8'), true, true).importedFiles) {
      if (fileName.startsWith('.')) visit(new URL(fileName, url));
      else others.add(fileName);
    }
  };
  visit(new URL(entry, folder));
  return { files: [...files].map((href) => href.slice(folder.href.length)), others: [...others] };
}

describe('the entry for browsers', () => {
  const { files, others } = graphOf('browser.js');

  it('imports no package and no module of Node, wherever it leads', () => {
    expect(files).toContain('http.js');
    expect(others).toEqual([]);
    expect(files.every((file) => !file.startsWith('..'))).toBe(true);
  });

  it('names nothing that only Node has', () => {
    for (const file of files) {
      const text = ts.transpile(readFileSync(new URL(file, folder), 'utf8'), {
        removeComments: true,
        target: ts.ScriptTarget.ES2023,
      });
      expect(text, file).not.toMatch(/\b(Buffer|process|require|__dirname|setImmediate)\b/);
    }
  });

  it('is what package.json gives to bundlers for browsers, and has types', () => {
    const { browser } = packageJson.exports['./client'];
    for (const path of Object.values<string>(browser)) {
      expect(fileURLToPath(new URL(`../../../${path}`, import.meta.url))).toMatch(/dist\/client\/browser\.(d\.ts|js)$/);
      expect(readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')).not.toBe('');
    }
  });
});

describe('the entry for Node', () => {
  it('needs nothing but Node', () => {
    expect(graphOf('index.js').others.filter((name) => !builtinModules.includes(name.replace('node:', '')))).toEqual(
      [],
    );
  });

  it('loads the module that starts processes only where one is started', () => {
    const text = readFileSync(new URL('index.js', folder), 'utf8');
    expect(text).toMatch(/await import\(['"]\.\/stdio\.js['"]\)/);
    expect(text).not.toMatch(/from ['"]\.\/stdio\.js['"]/);
  });
});
