import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBudget, inGrowingSlices } from '../../../scripts/device-check/budget.ts';
import { planProviders } from '../../../scripts/device-check/inventory.ts';
import { sumOfLines } from '../../../scripts/device-check/memory.ts';
import { packSet } from '../../../scripts/device-check/pack.ts';
import { CannotRun, createRowTaker, hasFailure, showRows } from '../../../scripts/device-check/rows.ts';
import { steadyRate } from '../../../scripts/device-check/speed.ts';
import { unpackSet } from '../../../scripts/device-check/unpack.ts';
import { likenessOf } from '../../../scripts/device-check/values.ts';
import { setFolderOf } from '../../../src/cuda/library-environment.ts';
import type { Wheel } from '../../../src/cuda/wheels.ts';

/** A clock that only the test moves. */
const createHands = () => {
  const hands = { ms: 0 };
  return { hands, nowMs: () => hands.ms };
};

describe('a time budget', () => {
  it('gives parts that never end after the whole', () => {
    const { hands, nowMs } = createHands();
    const budget = createBudget(100, nowMs);
    const long = budget.part(500);
    const short = budget.part(30);
    hands.ms = 40;
    expect([budget.remainingMs(), long.remainingMs(), short.remainingMs()]).toEqual([60, 60, 0]);
  });

  it('lets a fast device do all items, and a slow one the first few, without a slice that would not fit', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 40 }), async (count, msOfItem) => {
        const { hands, nowMs } = createHands();
        const items = Array.from({ length: count }, (_, index) => index);
        const asked: number[] = [];
        const { done, isComplete } = await inGrowingSlices(
          items,
          () => 1,
          createBudget(200, nowMs),
          async (slice) => {
            asked.push(...slice);
            hands.ms += slice.length * msOfItem;
          },
        );
        expect(asked).toEqual(items.slice(0, done));
        expect(isComplete).toBe(done === count);
        expect(done).toBe(msOfItem === 0 ? count : Math.min(count, Math.floor(200 / msOfItem)));
      }),
    );
  });
});

const bounds = { leastMs: 10, mostMs: 1000 };
const finding = { isGood: true, value: '1', detail: 'as it must be', made: 7 };

describe('a row', () => {
  it('gives what its check made, and is not begun where too little time is left', async () => {
    const { hands, nowMs } = createHands();
    const taker = createRowTaker(createBudget(100, nowMs), () => undefined);
    expect(await taker.take('cpu', 'first', bounds, async () => finding)).toBe(7);
    hands.ms = 95;
    expect(await taker.take('cpu', 'second', bounds, () => Promise.reject(new Error('begun')))).toBeNull();
    expect(taker.rows.map(({ verdict, detail }) => [verdict, detail])).toEqual([
      ['ok', 'as it must be'],
      ['not run', 'no time left'],
    ]);
    expect(hasFailure(taker.rows)).toBe(false);
  });

  it('fails where its check throws, or is not done within its bound, and not where the check cannot run here', async () => {
    const taker = createRowTaker(createBudget(60_000), () => undefined);
    await taker.take('cuda', 'thrown', bounds, () => Promise.reject(new Error('it broke\nat a line')));
    await taker.take('cuda', 'hung', { leastMs: 0, mostMs: 1 }, () => new Promise<never>(() => undefined));
    await taker.take('cuda', 'elsewhere', bounds, () => Promise.reject(new CannotRun('no /proc')));
    expect(taker.rows.map(({ verdict }) => verdict)).toEqual(['FAILED', 'FAILED', 'not run']);
    expect(taker.rows[0]?.detail).toBe('it broke');
    expect(hasFailure(taker.rows)).toBe(true);
  });

  it('is a line of the table with its verdict and reason', () => {
    const taker = createRowTaker(createBudget(1000), () => undefined);
    taker.skip('cuda', 'server', 'no NVIDIA GPU was found');
    expect(showRows(taker.rows)).toMatch(/^cuda +server +not run +no NVIDIA GPU was found$/mu);
  });
});

describe('the order of providers', () => {
  const usable = (id: string, provider: string, isSoftware: boolean) => ({
    candidate: { id, provider, index: 0, name: id, details: {} },
    verdict: { isUsable: true, hasFp16: true, isSoftware, timing: null, libraries: [] },
    auto: { isUsed: true, reason: null },
  });
  const plan = (devices: unknown[], absent: unknown[]) =>
    planProviders({ devices, absent } as Parameters<typeof planProviders>[0]);

  it('is GPU, CPU, software; what is not there keeps the sentence of the inventory', () => {
    const plans = plan(
      [usable('cpu:0', 'cpu', false), usable('webgpu:0', 'webgpu', true)],
      [{ provider: 'cuda', reason: 'there is none' }],
    );
    expect(plans.map(({ provider, reason }) => [provider, reason])).toEqual([
      ['cuda', 'there is none'],
      ['cpu', null],
      ['webgpu', null],
    ]);
  });
});

describe('what is measured', () => {
  it('a rate counts what came after the warm-up, and everything where there was but one answer', () => {
    expect(steadyRate([{ atMs: 1000, tokens: 50 }], 0)).toBe(50);
    const slowStart = [900, 1000, 1100, 1200].map((atMs) => ({ atMs, tokens: 10 }));
    expect(steadyRate(slowStart, 0)).toBeCloseTo(100);
  });

  it('memory of several GPUs is added, and text that is no number is nothing', () => {
    expect(sumOfLines('512\n1024\n')).toBe(1536);
    expect(sumOfLines('[N/A]\n')).toBeNull();
    expect(sumOfLines('')).toBeNull();
  });

  it('values are compared as far as both sides have them; another shape is never alike', () => {
    const value = (...numbers: number[]) => [Float32Array.from(numbers)];
    expect(likenessOf([value(1, 0), value(0, 0)], [value(2, 0), value(0, 0), value(9, 9)])).toEqual({
      count: 2,
      minCosine: 1,
      maxDifference: 1,
    });
    expect(likenessOf([value(1, 0)], [[]]).minCosine).toBeNaN();
    expect(likenessOf([value(1, 0)], [value(1)]).minCosine).toBeNaN();
    expect(likenessOf([value(Number.NaN, 0)], [value(1, 0)]).minCosine).toBeNaN();
  });
});

describe('the pieces of a set of libraries', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'trivec-pieces-'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  /** A set that is installed in the cache directory `from`. */
  function install(contents: readonly Buffer[]): Wheel[] {
    const entries = contents.map((bytes, index) => ({
      path: `lib/${index}`,
      name: `lib${index}.so`,
      sizeBytes: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    }));
    const wheels = [{ project: 'p', version: '1', file: 'p.whl', sizeBytes: 1, sha256: '0', entries }];
    const set = setFolderOf(join(folder, 'from'), wheels);
    mkdirSync(set, { recursive: true });
    for (const [index, bytes] of contents.entries()) writeFileSync(join(set, `lib${index}.so`), bytes);
    return wheels;
  }
  /** Bytes that cannot be compressed. */
  const noise = (count: number) => {
    const blocks = Array.from({ length: Math.ceil(count / 32) }, (_, index) =>
      createHash('sha256').update(String(index)).digest(),
    );
    return Buffer.concat(blocks).subarray(0, count);
  };
  const pack = (wheels: readonly Wheel[]) => packSet(join(folder, 'from'), wheels, join(folder, 'pieces'), 1000);
  const unpack = (wheels: readonly Wheel[]) => unpackSet(join(folder, 'pieces'), wheels, join(folder, 'to'));

  it('give back every byte, and none of them is larger than asked', async () => {
    const contents = [noise(3500), Buffer.alloc(0), noise(10), Buffer.alloc(5000, 'a')];
    const wheels = install(contents);
    const { pieces } = await pack(wheels);
    expect(pieces.length).toBeGreaterThan(3);
    for (const { name, sizeBytes } of pieces) {
      expect(statSync(join(folder, 'pieces', name)).size).toBe(sizeBytes);
      expect(sizeBytes).toBeLessThanOrEqual(1000);
    }
    const set = await unpack(wheels);
    expect(set).toBe(setFolderOf(join(folder, 'to'), wheels));
    expect(readdirSync(set).map((name) => readFileSync(join(set, name)))).toEqual(contents);
    expect(await unpack(wheels)).toBe(set);
  });

  it('leave nothing behind where one is missing or damaged, and say which', async () => {
    const wheels = install([noise(3500)]);
    await pack(wheels);
    const second = join(folder, 'pieces', 'piece-002');
    const bytes = readFileSync(second);
    writeFileSync(second, Buffer.concat([bytes.subarray(1), Buffer.of(0)]));
    await expect(unpack(wheels)).rejects.toThrow(/piece-002 is damaged/u);
    rmSync(second);
    await expect(unpack(wheels)).rejects.toThrow(/lacks piece-002$/u);
    expect(readdirSync(join(folder, 'to', 'cuda'))).toEqual([]);
  });

  it('of another version are refused, and an incomplete set is not packed', async () => {
    const wheels = install([noise(100)]);
    await pack(wheels);
    const others = install([noise(101)]);
    await expect(unpack(others)).rejects.toThrow(/another version/u);
    rmSync(join(setFolderOf(join(folder, 'from'), others), 'lib0.so'));
    await expect(pack(others)).rejects.toThrow(/no complete set/u);
  });
});
