/** Owns every message between the serving process and a probe: a process that tries one device and is thrown away. */
import type { ProviderName } from './protocol.ts';

/** Serving process to probe; the only message. */
export interface ProbeQuestion {
  readonly type: 'probe';
  readonly provider: Exclude<ProviderName, 'cpu'>;
  readonly deviceIndex: number;
  /** Threads of the CPU provider that the device is timed against. */
  readonly threads: number;
}

/** What a device did. */
export interface ProbeMeasurement {
  /** Largest difference to the CPU provider's values, over the largest of those. */
  readonly relativeError: number;
  /** Rows of the timed run. */
  readonly rows: number;
  /** Fastest timed run on the device. @unit ms */
  readonly runMs: number;
  /** Fastest run of the same size on the CPU provider. @unit ms */
  readonly cpuRunMs: number;
  /** Whether the same graph in half precision gave values like these. */
  readonly hasFp16: boolean;
  /** Files of graphics and CUDA drivers that were mapped into the process. */
  readonly libraries: readonly string[];
}

/** Probe to serving process; the only message. */
export type ProbeAnswer =
  ({ readonly type: 'probed' } & ProbeMeasurement) | { readonly type: 'failed'; readonly reason: string };
