/** Owns how a session is set up on each execution provider. */
import { env } from 'onnxruntime-node';
import type { InferenceSession } from 'onnxruntime-node';
import type { ModelLoad, ProviderChoice } from './protocol.ts';

/** What decides how a session is set up. */
export interface SessionSettings {
  readonly precision: ModelLoad['precision'];
  /** Most threads that work on a run on the CPU. */
  readonly threads: number;
  readonly provider: ProviderChoice;
  /** Names of nodes that are to run on the CPU, though the provider could; for WebGPU only. */
  readonly cpuNodes: readonly string[];
}

/** Makes the engine quiet: its library reports usage over the network unless it is told before its first session. */
export function prepareEngine(): void {
  process.env['ORT_DISABLE_TELEMETRY'] = '1';
  env.logLevel = 'error';
}

/** Why these models cannot be run there at all, or null. */
export function providerProblem(models: readonly ModelLoad[], { name, deviceIndex }: ProviderChoice): string | null {
  if (name === 'cpu') return null;
  if (name === 'webgpu' && deviceIndex !== 0) return 'the engine takes the first WebGPU adapter and no other';
  const quantized = models.find(({ precision }) => precision === 'int8');
  return quantized === undefined ? null : `model ${quantized.modelId} is int8, which runs on the CPU only`;
}

/**
 * One provider, never a list: the engine fails on the first that cannot be loaded instead of taking the next.
 * Memory goes back after each run on the CPU, because lengths vary.
 */
export function sessionOptions(settings: SessionSettings): InferenceSession.SessionOptions {
  const { threads } = settings;
  const session = { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } };
  return {
    executionProviders: [providerOption(settings)],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    enableCpuMemArena: false,
    enableMemPattern: false,
    logSeverityLevel: 3,
    extra: { session, ...slowFusionsOff(settings) },
  };
}

/** Switches off the fusions whose kernels are slower on the CPU than the operators that they replace. */
function slowFusionsOff({ precision, provider }: SessionSettings) {
  const fusions = precision === 'int8' ? 'SkipLayerNormFusion' : 'SkipLayerNormFusion;BiasGeluFusion';
  const isSlow = precision === 'int8' || (precision === 'fp32' && provider.name === 'cpu');
  return isSlow ? { optimization: { disable_specified_optimizers: fusions } } : {};
}

function providerOption({ provider, cpuNodes }: SessionSettings): InferenceSession.ExecutionProviderConfig {
  const { name, deviceIndex } = provider;
  switch (name) {
    case 'cpu':
      return name;
    case 'cuda':
      return { name, deviceId: deviceIndex };
    case 'webgpu':
      // An index out of range reads garbage instead of ending the process.
      return { name, enableRobustness: true, ...(cpuNodes.length > 0 ? { forceCpuNodeNames: cpuNodes } : {}) };
  }
}
