/** Owns what the end of a probe means: from its answer, or its death, to a verdict. */
import type { ProbeAnswer } from '../../executor/probe-protocol.ts';
import { factsOfAdapter } from './adapter.ts';
import type { GpuCandidate, ProbeResult } from './candidate.ts';
import { explainFailure, knownCause, likelyFix } from './explain.ts';

/** How a probe ended: with a message, or without one. */
export type ProbeEnd =
  | { readonly kind: 'answered'; readonly message: unknown }
  | { readonly kind: 'exited'; readonly code: number | null; readonly signal: string | null }
  | { readonly kind: 'notStarted'; readonly reason: string }
  | { readonly kind: 'timedOut'; readonly timeoutMs: number };

/** CUDA computes products with 10 bits of mantissa; a device that is wrong is wrong by far more. */
const maxRelativeError = 0.01;
const maxLibraries = 64;

/** The verdict on a candidate, by how its probe ended and by what it logged until then. */
export function judgeProbe(candidate: GpuCandidate, end: ProbeEnd, log: string): ProbeResult {
  const unusable = (reason: string): ProbeResult => ({ candidate, verdict: { isUsable: false, reason } });
  switch (end.kind) {
    case 'notStarted':
      return unusable(`its probe could not be started (${end.reason}): free memory or processes`);
    case 'timedOut':
      return unusable(
        `its probe hung for ${end.timeoutMs} ms and was killed: update its driver, or restart the machine`,
      );
    case 'exited': {
      const how = end.signal === null ? `ended with exit code ${end.code ?? 'unknown'}` : `was ended by ${end.signal}`;
      return unusable(`its probe ${how}: ${causeOf(candidate, log)}`);
    }
    case 'answered': {
      const answer = readAnswer(end.message);
      if (answer === null) return unusable('its probe sent an answer that makes no sense: update its driver');
      if (answer.type === 'failed') return unusable(explainFailure(candidate, answer.reason, log));
      if (!(answer.relativeError <= maxRelativeError)) {
        return unusable('its values are not those of the CPU: update its driver');
      }
      return usable(candidate, answer, log);
    }
  }
}

function usable(candidate: GpuCandidate, answer: Extract<ProbeAnswer, { type: 'probed' }>, log: string): ProbeResult {
  const { rows, runMs, cpuRunMs, hasFp16, libraries } = answer;
  const facts =
    candidate.provider === 'webgpu'
      ? factsOfAdapter(log, candidate.details.drivers)
      : { name: null, vendor: null, isSoftware: false };
  const timing = { rows, runMs, cpuRunMs };
  return {
    candidate: candidate.provider === 'webgpu' ? withFacts(candidate, facts) : candidate,
    verdict: { isUsable: true, hasFp16, isSoftware: facts.isSoftware, timing, libraries },
  };
}

function withFacts(
  candidate: Extract<GpuCandidate, { provider: 'webgpu' }>,
  { name, vendor, isSoftware }: ReturnType<typeof factsOfAdapter>,
): GpuCandidate {
  return { ...candidate, name: name ?? candidate.name, details: { ...candidate.details, vendor, isSoftware } };
}

/** A crash has no message of its own; where the log names a known cause, it is that. */
function causeOf(candidate: GpuCandidate, log: string): string {
  return knownCause(candidate, log) ?? likelyFix(candidate);
}

/** The message, where it is an answer of the form that a probe sends; else null. */
export function readAnswer(message: unknown): ProbeAnswer | null {
  if (typeof message !== 'object' || message === null) return null;
  const { type, reason, relativeError, rows, runMs, cpuRunMs, hasFp16, libraries } = message as Record<string, unknown>;
  if (type === 'failed') return typeof reason === 'string' ? { type, reason } : null;
  const numbers = [relativeError, rows, runMs, cpuRunMs];
  if (type !== 'probed' || !numbers.every((value) => typeof value === 'number' && value >= 0)) return null;
  if (typeof hasFp16 !== 'boolean' || !Array.isArray(libraries)) return null;
  const files = libraries.filter((file) => typeof file === 'string').slice(0, maxLibraries);
  return { ...(message as Extract<ProbeAnswer, { type: 'probed' }>), libraries: files };
}
