import { describe, expect, it } from 'vitest';
import type { ProviderChoice } from '../../../src/executor/protocol.ts';
import { sessionOptions } from '../../../src/executor/session-options.ts';

const precisions = ['fp32', 'fp16', 'int8'] as const;
const optionsOn = (name: ProviderChoice['name'], precision: (typeof precisions)[number] = 'fp32', threads = 1) =>
  sessionOptions({ precision, threads, provider: { name, deviceIndex: 2 }, cpuNodes: [] });

describe('a session', () => {
  it.each(['cpu', 'cuda', 'webgpu'] as const)('on %s is asked of that provider and of no other', (name) => {
    const [first, ...others] = optionsOn(name).executionProviders ?? [];
    expect(others).toEqual([]);
    expect(typeof first === 'string' ? first : first?.name).toBe(name);
  });

  it.each(precisions)(
    'on the CPU in %s names no device, and keeps no memory from one length for the next',
    (precision) => {
      expect(optionsOn('cpu', precision)).toMatchObject({
        executionProviders: ['cpu'],
        enableCpuMemArena: false,
        enableMemPattern: false,
      });
    },
  );

  it('works with the threads that it was given, one run after the other, and never spins while it waits', () => {
    for (const threads of [1, 3]) {
      expect(optionsOn('cpu', 'fp32', threads)).toMatchObject({
        intraOpNumThreads: threads,
        interOpNumThreads: 1,
        executionMode: 'sequential',
        extra: { session: { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } } },
      });
    }
  });
});
