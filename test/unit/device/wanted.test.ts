import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseWanted } from '../../../src/device/wanted.ts';

describe('the devices asked for', () => {
  it.each([
    [['auto'], { kind: 'auto' }],
    [['cpu'], { kind: 'named', provider: 'cpu', indexes: null }],
    [['webgpu'], { kind: 'named', provider: 'webgpu', indexes: null }],
    [['cuda:1', 'cuda:2'], { kind: 'named', provider: 'cuda', indexes: [1, 2] }],
    [['cuda:1', 'cuda:01'], { kind: 'named', provider: 'cuda', indexes: [1] }],
    [['cuda:1', 'cuda'], { kind: 'named', provider: 'cuda', indexes: null }],
  ])('%j are understood', (texts, wanted) => {
    expect(parseWanted(texts)).toEqual(wanted);
  });

  it.each([
    [['gpu'], '"gpu" is no device: must be auto, cpu, webgpu, cuda'],
    [['CUDA'], '"CUDA" is no device'],
    [['cuda:'], '"cuda:" is no device'],
    [['cuda:-1'], '"cuda:-1" is no device'],
    [['cuda:1000'], '"cuda:1000" is no device'],
    [['cuda:0\n'], 'one of them is no device'],
    [['a-key-that-went-astray'], 'one of them is no device'],
    [['auto:0'], 'auto has no number'],
    [[''], '"" is no device'],
    [[], 'names no device'],
    [['auto', 'cpu'], '"auto,cpu" mixes auto and cpu: auto stands alone'],
    [['cuda:0', 'cpu'], '"cuda:0,cpu" mixes cuda and cpu: name devices of one provider'],
  ])('%j are refused with the value and the rule', (texts, problem) => {
    expect(parseWanted(texts)).toEqual({ problem: expect.stringContaining(problem) });
  });

  it('are either understood or refused, whatever the texts are', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (texts) => {
        const parsed = parseWanted(texts);
        expect('problem' in parsed || texts.length > 0).toBe(true);
      }),
    );
  });
});
