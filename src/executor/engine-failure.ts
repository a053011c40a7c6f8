/** Owns what an error of the engine says: its message in one line, and what it means for the executor. */
import type { RunFailureCause } from './protocol.ts';

/** Longest message that is passed on. @unit characters */
const maxMessageLength = 500;

/** First line of an error's message, cut to a bounded length. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : 'unknown error';
  return (text.split('\n')[0] ?? '').slice(0, maxMessageLength);
}

/**
 * CUDA's errors after which its context is unusable: illegal address (700), launch timeout (702), assert (710),
 * hardware and memory errors (214, 714 to 719), no or unavailable device (46, 100, 101), unknown (999).
 * @source CUDA runtime, `cudaError`
 */
const lostContextCodes = new Set([46, 100, 101, 214, 700, 702, 710, 714, 715, 716, 717, 718, 719, 999]);

/** CUDA's `cudaErrorMemoryAllocation`. */
const cudaOutOfMemory = 2;

const lostDevice = [
  /device (?:is |was )?lost/i,
  /DEVICE_LOST/i,
  /\[Device[^\]]*\] is lost/,
  /DeviceLost/,
  /fallen off the bus/i,
];

/**
 * How the engine and the allocators under it say that memory did not suffice. WebGPU reports a failed allocation to
 * its log only; what the run sees is the buffer that is invalid since then, or more bindings than a shader has.
 */
const lackOfMemory = [
  /failed to allocate memory/i,
  /ran out of memory/i,
  /out of memory/i,
  /bad_alloc/,
  /BFCArena|bfc_arena/,
  /OUT_OF_(?:DEVICE_|HOST_)?MEMORY/i,
  /ALLOC_FAILED/,
  /array buffer allocation failed/i,
  /invalid (?:typed )?array (?:buffer )?length/i,
  /exceeds the max(?:imum)? (?:buffer|storage buffer binding) size/i,
  /\[Invalid Buffer[^\]]*\] is invalid due to a previous error/,
  /too many storage buffers in shader/i,
];

/** What the message of a failed run says about the executor that ran it. */
export function failureCauseOf(error: unknown): RunFailureCause {
  const text = error instanceof Error ? error.message : '';
  const code = Number(/\bCUDA (?:failure|error):? ?(\d+)/i.exec(text)?.[1]);
  if (lostContextCodes.has(code) || lostDevice.some((pattern) => pattern.test(text))) return 'deviceLost';
  if (code === cudaOutOfMemory || lackOfMemory.some((pattern) => pattern.test(text))) return 'outOfMemory';
  return 'failed';
}
