/** Owns what a probe measures: a tiny graph on one device, compared and timed with the CPU. */
import { readFileSync } from 'node:fs';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { probeGraph, probeInput, probeOutput, probeWidth } from './probe-graph.ts';
import type { ProbeMeasurement, ProbeQuestion } from './probe-protocol.ts';

/** Rows of the run that proves the values; a device that is hopeless shows it here already. */
const smallRows = 16;
/** Enough work that the way to a device and back does not decide. */
const largeRows = 1024;
/** A device this many times slower than the CPU at the small run is not given the large one. */
const hopelessFactor = 20;
const maxTimedRuns = 5;
/** After this no further run is begun. @unit ms */
const timedMs = 300;
const maxLibraries = 64;
/** Half precision has 11 bits; sums of 1536 products may lose a few of them. */
const maxFp16RelativeError = 0.02;

type Provider = InferenceSession.ExecutionProviderConfig;

async function openSession(precision: 'fp32' | 'fp16', provider: Provider, threads: number): Promise<InferenceSession> {
  return InferenceSession.create(probeGraph(precision), {
    executionProviders: [provider],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
  });
}

/** Values whose sums do not cancel out, so that a relative error says something. */
function inputOf(rows: number): Tensor {
  return new Tensor(
    'float32',
    Float32Array.from({ length: rows * probeWidth }, (_, index) => ((index * 31) % 17) / 17),
    [rows, probeWidth],
  );
}

async function runOnce(session: InferenceSession, input: Tensor): Promise<Float32Array> {
  const outputs = await session.run({ [probeInput]: input });
  return outputs[probeOutput]?.data as Float32Array;
}

/** Fastest of the runs that fit into their time; the first of a new size counts for nothing, since it may compile. @unit ms */
async function timeRuns(session: InferenceSession, rows: number): Promise<number> {
  const input = inputOf(rows);
  if (rows !== smallRows) await runOnce(session, input);
  let fastestMs = Infinity;
  const firstMs = performance.now();
  for (let run = 0; run < maxTimedRuns && performance.now() - firstMs < timedMs; run += 1) {
    const startMs = performance.now();
    await runOnce(session, input);
    fastestMs = Math.min(fastestMs, performance.now() - startMs);
  }
  return fastestMs;
}

/** Infinity where a value is missing or not finite. */
function relativeErrorOf(values: Float32Array, expected: Float32Array): number {
  let largest = 0;
  let difference = values.length === expected.length ? 0 : Infinity;
  expected.forEach((value, index) => {
    largest = Math.max(largest, Math.abs(value));
    const distance = Math.abs((values[index] ?? NaN) - value);
    difference = Number.isFinite(distance) ? Math.max(difference, distance) : Infinity;
  });
  return difference / largest;
}

async function runsFp16(provider: Provider, threads: number, expected: Float32Array): Promise<boolean> {
  try {
    const session = await openSession('fp16', provider, threads);
    return relativeErrorOf(await runOnce(session, inputOf(smallRows)), expected) <= maxFp16RelativeError;
  } catch {
    return false;
  }
}

const driverFile = /(vulkan|vk_|libcuda|cudart|cublas|curand|nvidia|onnxruntime_providers|_dri|dzn)[^/]*\.so/;

function mappedDrivers(): string[] {
  let maps: string;
  try {
    maps = readFileSync('/proc/self/maps', 'utf8');
  } catch {
    return [];
  }
  const files = maps.split('\n').map((line) => /\s(\/.*)$/.exec(line)?.[1] ?? '');
  return [...new Set(files.filter((file) => driverFile.test(file)))].slice(0, maxLibraries);
}

/**
 * What the device did with the graph.
 * @throws Error of the engine, where it did nothing with it
 */
export async function measure({ provider: name, deviceIndex, threads }: ProbeQuestion): Promise<ProbeMeasurement> {
  // WebGPU's `deviceId` is no number of an adapter: the engine chooses that itself.
  const provider: Provider = name === 'cuda' ? { name, deviceId: deviceIndex } : { name };
  // The device first: where it is missing, nothing else is worth the time.
  const device = await openSession('fp32', provider, threads);
  const cpu = await openSession('fp32', 'cpu', threads);
  const expected = await runOnce(cpu, inputOf(smallRows));
  const relativeError = relativeErrorOf(await runOnce(device, inputOf(smallRows)), expected);
  const hasFp16 = await runsFp16(provider, threads, expected);

  const small = { rows: smallRows, cpuRunMs: await timeRuns(cpu, smallRows), runMs: await timeRuns(device, smallRows) };
  const isHopeless = small.runMs > hopelessFactor * small.cpuRunMs;
  const timed = isHopeless
    ? small
    : { rows: largeRows, cpuRunMs: await timeRuns(cpu, largeRows), runMs: await timeRuns(device, largeRows) };
  return { relativeError, hasFp16, libraries: mappedDrivers(), ...timed };
}
