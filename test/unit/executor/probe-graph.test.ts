import { describe, expect, it } from 'vitest';
import { probeGraph } from '../../../src/executor/probe-graph.ts';
import { encodeProbeGraph } from '../../support/probe-graph.ts';

describe('the graph of the probe', () => {
  it.each(['fp32', 'fp16'] as const)('is what the builder makes, in %s', (precision) => {
    expect(Buffer.from(probeGraph(precision))).toEqual(Buffer.from(encodeProbeGraph(precision)));
  });
});
