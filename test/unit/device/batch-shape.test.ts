import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { batchShape, Drift } from '../../../src/device/batch-shape.ts';
import type { ShapeFacts } from '../../../src/device/batch-shape.ts';
import type { RunPolicy } from '../../../src/executor/protocol.ts';
import { batchLimits, model } from './device.ts';

const cost = { fixedMs: 4, tokenMs: 0.5, squaredTokenMs: 0.01 };
const policyOf = (kind: RunPolicy['kind'], fixed: Partial<RunPolicy> = {}): RunPolicy => ({
  kind,
  fixedBatch: null,
  fixedTokens: null,
  ...fixed,
});
const shapeOf = (runPolicy: RunPolicy, facts: Partial<ShapeFacts> = {}) =>
  batchShape({
    load: { ...model, precision: 'fp32', maxTokens: 512, runPolicy },
    head: 'dense',
    provider: 'cpu',
    limits: batchLimits,
    cost,
    drift: 1,
    ...facts,
  });
/** What all of its tokens take, by the cost above. */
const tokensMs = (tokens: number) => tokens * (0.5 + 0.01 * tokens);

describe('what a text takes', () => {
  it('is the whole of a run where it has one of its own', () => {
    const shape = shapeOf(policyOf('alone'));
    expect(shape.isAlone).toBe(true);
    expect(shape.textMs(10)).toBeCloseTo(4 + tokensMs(10));
    expect(shape.textMs(10)).toBe(shape.runMs({ texts: 1, tokens: 10 }));
    const int8 = { load: { ...model, precision: 'int8', runPolicy: policyOf('padded') } } as const;
    expect(shapeOf(policyOf('padded'), int8).textMs(10)).toBeCloseTo(4 + tokensMs(10));
  });

  it('is its share of a full run where it has company', () => {
    // 1,024 tokens a run on the CPU, 4,096 on WebGPU.
    expect(shapeOf(policyOf('padded')).isAlone).toBe(false);
    expect(shapeOf(policyOf('padded')).textMs(64)).toBeCloseTo(4 / 16 + tokensMs(64));
    expect(shapeOf(policyOf('equalLength')).textMs(256)).toBeCloseTo(4 / 4 + tokensMs(256));
    expect(shapeOf(policyOf('padded'), { provider: 'webgpu' }).textMs(64)).toBeCloseTo(4 / 64 + tokensMs(64));
  });

  it('counts the copies and the padding that a fixed graph asks for', () => {
    const alone = shapeOf(policyOf('alone', { fixedBatch: 4, fixedTokens: 32 }));
    expect(alone.textMs(10)).toBeCloseTo(4 + 4 * tokensMs(32));
    const shared = shapeOf(policyOf('padded', { fixedBatch: 4, fixedTokens: 32 }));
    expect(shared.textMs(10)).toBeCloseTo(4 / 4 + tokensMs(32));
    const anyNumber = shapeOf(policyOf('padded', { fixedTokens: 32 }));
    expect(anyNumber.textMs(10)).toBeCloseTo(4 / 32 + tokensMs(32));
  });

  it('is what the runs of a plan take in all, where they are full', () => {
    for (const kind of ['alone', 'equalLength', 'padded'] as const) {
      for (const provider of ['cpu', 'webgpu', 'cuda'] as const) {
        const shape = shapeOf(policyOf(kind), { provider });
        const lengths = Array<number>(512).fill(64);
        const total = shape.plan(lengths).reduce((sum, run) => sum + shape.runMs(run), 0);
        expect(total).toBeCloseTo(lengths.length * shape.textMs(64));
      }
    }
  });

  it('grows with its length also where nothing was timed, and with what runs took longer of late', () => {
    const untimed = shapeOf(policyOf('alone'), { cost: null });
    expect(untimed.textMs(20)).toBeCloseTo(2 * untimed.textMs(10));
    expect(untimed.textMs(10)).toBeGreaterThan(0);
    expect(shapeOf(policyOf('alone'), { cost: null, drift: 3 }).textMs(10)).toBeCloseTo(3 * untimed.textMs(10));
    expect(shapeOf(policyOf('alone'), { drift: 3 }).textMs(10)).toBeCloseTo(3 * (4 + tokensMs(10)));
  });
});

describe('the drift of a device', () => {
  const anything = fc.double({ min: -1e9, max: 1e9 });
  const amounts = fc.double({ min: 1e-3, max: 1e3, noNaN: true });

  it('is 1 before the first run, and between its bounds whatever was observed', () => {
    expect(new Drift().factor).toBe(1);
    fc.assert(
      fc.property(fc.array(fc.tuple(anything, anything)), (observed) => {
        const drift = new Drift();
        for (const [actualMs, fittedMs] of observed) {
          drift.observe(actualMs, fittedMs);
          expect(drift.factor).toBeGreaterThanOrEqual(1 / 50);
          expect(drift.factor).toBeLessThanOrEqual(50);
        }
      }),
    );
  });

  it('becomes what runs take of late, whatever they took before', () => {
    const ratio = fc.double({ min: 1 / 40, max: 40, noNaN: true });
    fc.assert(
      fc.property(fc.array(fc.tuple(amounts, amounts)), ratio, amounts, (before, factor, fittedMs) => {
        const drift = new Drift();
        for (const [actualMs, fitted] of before) drift.observe(actualMs, fitted);
        for (let run = 0; run < 600; run += 1) drift.observe(factor * fittedMs, fittedMs);
        expect(drift.factor / factor).toBeCloseTo(1, 3);
      }),
    );
  });

  it('is near what the last twenty runs took, and hardly moved by one', () => {
    const drift = new Drift();
    for (let run = 0; run < 100; run += 1) drift.observe(1, 1);
    drift.observe(2, 1);
    expect(drift.factor).toBeLessThan(1.06);
    for (let run = 0; run < 20; run += 1) drift.observe(2, 1);
    expect(drift.factor).toBeGreaterThan(1.5);
  });

  it('ignores runs that took no time', () => {
    const drift = new Drift();
    drift.observe(3, 1);
    for (const [actualMs, fittedMs] of [
      [0, 1],
      [1, 0],
      [Number.NaN, 1],
      [1, Number.NaN],
      [-1, 1],
    ] as const) {
      drift.observe(actualMs, fittedMs);
    }
    expect(drift.factor).toBe(3);
  });
});
