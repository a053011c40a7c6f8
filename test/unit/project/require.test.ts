import { describe, expect, it } from 'vitest';
import { requirement } from '../../support/require.ts';

describe('what a test needs', () => {
  it('a missing thing skips the test and the title says why', () => {
    const python = requirement('python', false, 'no python3 here', '');
    expect(python.skip).toBe(true);
    expect(python.title('speaks to a client')).toBe('speaks to a client [skipped: no python3 here]');
  });

  it('a missing thing that the run demands is an error with the reason', () => {
    expect(() => requirement('python', false, 'no python3 here', 'compose, python')).toThrow(/python.*no python3 here/);
  });

  it('a thing that is there runs the test under its own title, demanded or not', () => {
    for (const demanded of ['', 'python']) {
      const python = requirement('python', true, 'no python3 here', demanded);
      expect(python.skip).toBe(false);
      expect(python.title('rule')).toBe('rule');
    }
  });
});
