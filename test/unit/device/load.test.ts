import { describe, expect, it } from 'vitest';
import { openConversation } from '../../../src/device/conversation.ts';
import { everyHead, loadModels } from '../../../src/device/warm-up.ts';
import type { HeadTimings, ModelHead, ModelLoad } from '../../../src/executor/protocol.ts';
import { createFakeExecutors } from '../../support/fake-channel.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { plainLoad } from '../../support/model-facts.ts';
import { limits } from './device.ts';

const model: ModelLoad = {
  ...plainLoad,
  modelId: 'm',
  graphPath: '/m.onnx',
  heads: ['dense', 'rows', 'maxSim'],
  vocabularySize: 100,
  maxTokens: 16,
  precision: 'int8',
  maxSimGraphPath: '/max-sim.onnx',
};
const timings: readonly HeadTimings[] = [{ modelId: 'm', head: 'rows', timings: [{ texts: 1, tokens: 8, ms: 0.5 }] }];

async function load(timedHeads: () => readonly ModelHead[]) {
  const fake = createFakeExecutors({ timings });
  const clock = createFakeClock();
  const life = openConversation({ channel: fake.launch('cpu:0/0'), clock, limits, onGone: () => undefined });
  const answer = loadModels(life, {
    models: [model],
    threads: 1,
    provider: { name: 'cpu', deviceIndex: 0 },
    proofRuns: [],
    timedHeads,
  });
  await clock.advance(0);
  return { answer: await answer, question: fake.channels[0]?.received[0] };
}

describe('a load', () => {
  it('asks for no times of heads whose times are known then, and hands on those that came', async () => {
    const { answer, question } = await load(() => [{ modelId: 'm', head: 'dense' }]);
    expect(question).toMatchObject({ type: 'load', timedHeads: [{ modelId: 'm', head: 'dense' }] });
    expect(answer.timings).toEqual(timings);
  });

  it('asks for no times at all where every head is named', () => {
    expect(everyHead([model, { ...model, modelId: 'n', heads: ['sparse'] }])).toEqual([
      { modelId: 'm', head: 'dense' },
      { modelId: 'm', head: 'rows' },
      { modelId: 'm', head: 'maxSim' },
      { modelId: 'n', head: 'sparse' },
    ]);
  });
});
