/** Owns the rules of names on the hub. */
import fc from 'fast-check';
import { isAbsolute, normalize, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { pathsOf } from '../../../src/model/hub/cache.ts';
import { isInsidePath } from '../../../src/model/hub/listing.ts';
import { isRevision, parseRepository } from '../../../src/model/hub/repository.ts';

describe('names of repositories', () => {
  it.each([
    ['BAAI/bge-base-en-v1.5', 'BAAI/bge-base-en-v1.5', 'main'],
    ['a/b', 'a/b', 'main'],
    ['org/name@v1.0', 'org/name', 'v1.0'],
    ['org/name@refs/pr/12', 'org/name', 'refs/pr/12'],
    [`org/name@${'a'.repeat(40)}`, 'org/name', 'a'.repeat(40)],
    ['sentence-transformers/all-MiniLM-L6-v2', 'sentence-transformers/all-MiniLM-L6-v2', 'main'],
    ['Snowflake/snowflake-arctic-embed-m-v2.0', 'Snowflake/snowflake-arctic-embed-m-v2.0', 'main'],
  ])('%s is a name', (text, id, revision) => {
    expect(parseRepository(text)).toEqual({ id, revision });
  });

  it.each([
    'name',
    '/name',
    'org/',
    'org/name/more',
    '../name',
    'org/..',
    'org/.hidden',
    'org/na..me',
    'org/na--me',
    'org/name.',
    'org/name-',
    'org/na me',
    'org\\name',
    'org/name@',
    'org/name@../../x',
    'org/name@a/../b',
    'org/name@/etc',
    'org/name@a//b',
    'org/name@a\\b',
    'org/name@-x',
    'org/name@.git',
    'org/name@x y',
    `org/name@${'x'.repeat(201)}`,
    `org/${'x'.repeat(97)}`,
    'órg/name',
    'https://huggingface.co/org/name',
    'org/name\n',
  ])('%j is no name', (text) => {
    expect(parseRepository(text)).toBeNull();
  });

  it('whatever is accepted stays inside the cache', () => {
    const letters = fc.constantFrom('a', '.', '-', '/', '@', '_', '..', '\\', 'Z', '0', ':', '\0', ' ');
    const texts = fc.array(letters, { maxLength: 24 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(texts, (text) => {
        const repository = parseRepository(text);
        if (repository === null) return;
        const paths = pathsOf('/cache', repository.id);
        const isInside = (path: string, folder: string) => {
          const way = relative(folder, normalize(path));
          return way !== '' && !way.startsWith('..') && !isAbsolute(way);
        };
        expect(isInside(paths.folder, '/cache')).toBe(true);
        expect(isInside(paths.ref(repository.revision), `${paths.folder}/refs`)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it.each(['../x', '/x', 'a/../b', 'a//b', './a', 'a\\b', 'C:/x', 'a/\0', ''])('a listed path %j leads out', (path) => {
    expect(isInsidePath(path)).toBe(false);
  });

  it('listed paths of real repositories are accepted', () => {
    expect(['config.json', '1_Pooling/config.json', 'onnx/model.onnx_data', '.gitattributes'].every(isInsidePath)).toBe(
      true,
    );
    expect(isRevision('main')).toBe(true);
  });
});
