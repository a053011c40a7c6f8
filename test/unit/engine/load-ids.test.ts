import { describe, expect, it } from 'vitest';
import { freeLoadId } from '../../../src/engine/group.ts';

describe('one model on several groups of devices', () => {
  it('has a load id of its own on each, the model id on the first', () => {
    const taken = new Set<string>();
    const ids = (['cpu', 'cuda', 'cuda', 'cuda'] as const).map((provider) => {
      const id = freeLoadId('m', provider, taken);
      taken.add(id);
      return id;
    });
    expect(ids).toEqual(['m', 'm on cuda', 'm on cuda (2)', 'm on cuda (3)']);
  });
});
