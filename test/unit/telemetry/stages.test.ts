import { describe, expect, it } from 'vitest';
import { CallStages } from '../../../src/telemetry/stages.ts';
import type { CallSpan, SpanAttributes } from '../../../src/telemetry/trace.ts';

const text = (length: number) => ({ ids: new Int32Array(length) });

/** Stages by a clock that each piece of work moves on. */
function createStages(isTraced: boolean) {
  let nowMs = 100;
  const told: [string, number, number, SpanAttributes][] = [];
  const span: CallSpan = {
    traceId: 't',
    stage: (name, beganMs, endedMs, attributes) => told.push([name, beganMs, endedMs, attributes]),
    end: () => undefined,
  };
  const stages = new CallStages(() => nowMs, nowMs, 'r', isTraced ? span : null);
  const take = async <T>(ms: number, result: T): Promise<T> => {
    nowMs += ms;
    return result;
  };
  return { stages, told, take, nowMs: () => nowMs };
}

/** What every call that runs does. */
async function walk({ stages, take }: ReturnType<typeof createStages>, device: string | null = 'cpu:0') {
  const texts = await stages.tokenize('m', () => take(2, [text(3), text(4)]));
  await stages.run({ modelId: 'm', items: texts }, () => take(10, { queueMs: device === null ? 0 : 4, device }));
  await stages.encode(() => take(1, Buffer.from('four')));
}

describe('the stages of a call', () => {
  it('follow each other: tokenise, queue, run, and all of them are in the total', async () => {
    const rig = createStages(false);
    await walk(rig);
    expect(rig.stages.times(rig.nowMs())).toEqual({ tokenizeMs: 2, queueMs: 4, runMs: 6, totalMs: 13 });
    expect(rig.stages).toMatchObject({ modelId: 'm', inputs: 2, tokens: 7 });
  });

  it('that were not reached have no time', () => {
    const { stages } = createStages(false);
    expect(stages.times(101)).toEqual({ tokenizeMs: null, queueMs: null, runMs: null, totalMs: 1 });
  });

  it('of a call that needed no device have no queue and no run', async () => {
    const rig = createStages(true);
    await walk(rig, null);
    expect(rig.stages.times(rig.nowMs())).toMatchObject({ queueMs: null, runMs: null });
    expect(rig.told.map(([name]) => name)).toEqual(['tokenise', 'encode']);
  });

  it('of two jobs in a row add up', async () => {
    const rig = createStages(false);
    await walk(rig);
    await walk(rig);
    expect(rig.stages.times(rig.nowMs())).toMatchObject({ tokenizeMs: 4, queueMs: 8, runMs: 12 });
    expect(rig.stages).toMatchObject({ inputs: 4, tokens: 14 });
  });

  it('are told to the span with model, inputs, tokens and device, and nothing of the texts', async () => {
    const rig = createStages(true);
    await walk(rig);
    const size = { 'trivec.model': 'm', 'trivec.inputs': 2, 'trivec.tokens': 7 };
    expect(rig.told).toEqual([
      ['tokenise', 100, 102, size],
      ['queue', 102, 106, size],
      ['run', 106, 112, { ...size, 'trivec.device': 'cpu:0' }],
      ['encode', 112, 113, { 'trivec.answer_bytes': 4 }],
    ]);
  });
});
