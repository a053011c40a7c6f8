import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foreignNodesOf, readPlacementLog } from '../../../src/executor/placement-log.ts';
import type { GraphPlacement } from '../../../src/executor/placement-log.ts';

/** Of onnxruntime-node 1.30 with WebGPU: a model whose attention has a mask, then MaxSim. */
const log = readFileSync(new URL('placement-log.txt', import.meta.url), 'utf8');
const webgpu = 'WebGpuExecutionProvider';
const countsOf = (placement: GraphPlacement | undefined) => Object.fromEntries(placement?.counts ?? []);

const entry = (text: string, id = 'graph0') =>
  `2026-01-01 10:00:00.1 [V:onnxruntime:${id}, session_state.cc:1385 VerifyEachNodeIsAssignedToAnEp] ${text}\n`;
const heading = (provider: string, count: number) =>
  entry(` Node(s) placed on [${provider}]. Number of nodes: ${count}`);

describe('the log of the engine', () => {
  it('says of each session which provider has which node', () => {
    const placements = readPlacementLog(log);
    expect([...placements.keys()]).toEqual(['graph0', 'graph1']);
    const first = placements.get('graph0');
    expect(countsOf(first)).toEqual({ [webgpu]: 39, CPUExecutionProvider: 8 });
    expect(first?.nodes).toHaveLength(47);
    expect(first?.nodes).toContainEqual({ name: '', operator: 'Cast', provider: 'CPUExecutionProvider' });
    expect(countsOf(placements.get('graph1'))).toEqual({ [webgpu]: 3 });
  });

  it('names what computes on another provider than the one that was asked for, and nothing that does not', () => {
    const placements = readPlacementLog(log);
    const [fused, maxSim] = ['graph0', 'graph1'].map((id) => placements.get(id));
    if (fused === undefined || maxSim === undefined) throw new Error('a graph is missing');
    expect(foreignNodesOf(fused, webgpu)).toEqual(['Attention_0 (Attention)', 'Attention_1 (Attention)']);
    expect(foreignNodesOf(maxSim, webgpu)).toEqual([]);
    expect(foreignNodesOf(maxSim, 'CUDAExecutionProvider')).toEqual([`all 3 nodes (${webgpu})`]);
  });

  it.each([
    'MatMul',
    'MatMulInteger',
    'FusedMatMul',
    'MatMulNBits',
    'Gemm',
    'Attention',
    'MultiHeadAttention',
    'GroupQueryAttention',
    'LayerNormalization',
    'SimplifiedLayerNormalization',
    'SkipLayerNormalization',
    'EmbedLayerNormalization',
    'Softmax',
    'Gelu',
    'BiasGelu',
    'Erf',
    'Tanh',
    'ReduceMean',
    'ReduceMax',
    'DynamicQuantizeLinear',
    'RotaryEmbedding',
    'TopK',
  ])('calls %s computing', (operator) => {
    const nodes = [{ name: 'n', operator, provider: 'CPUExecutionProvider' }];
    const placement = { counts: new Map([['CPUExecutionProvider', 1]]), nodes };
    expect(foreignNodesOf(placement, webgpu)).toEqual([`n (${operator})`]);
    expect(foreignNodesOf(placement, 'CPUExecutionProvider')).toEqual([]);
  });

  it.each(['Shape', 'Gather', 'Unsqueeze', 'Cast', 'Concat', 'Slice', 'Range', 'Where', 'Equal', 'Expand', 'CumSum'])(
    'does not call %s computing',
    (operator) => {
      const nodes = [{ name: 'n', operator, provider: 'CPUExecutionProvider' }];
      expect(foreignNodesOf({ counts: new Map([['CPUExecutionProvider', 1]]), nodes }, webgpu)).toEqual([]);
    },
  );

  it('is not believed about a graph whose nodes do not all follow', () => {
    const node = entry('  Add (a)');
    expect(readPlacementLog(heading(webgpu, 2) + node + node).get('graph0')?.nodes).toHaveLength(2);
    expect(readPlacementLog(heading(webgpu, 3) + node + node).size).toBe(0);
    expect(readPlacementLog(heading(webgpu, 2) + node + heading('CPUExecutionProvider', 1) + node).size).toBe(0);
    expect(readPlacementLog(heading(webgpu, 2) + node + entry('  Add (b)', 'graph1')).size).toBe(0);
  });

  it('wherever it is cut off, says nothing of a graph or everything that its heading promised', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: log.length }), (length) => {
        for (const { counts, nodes } of readPlacementLog(log.slice(0, length)).values()) {
          const promised = [...counts.values()].reduce((sum, count) => sum + count, 0);
          expect([0, promised]).toContain(nodes.length);
        }
      }),
    );
  });

  it('of another kind says nothing', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(readPlacementLog(text).size).toBe(0);
      }),
    );
  });
});
