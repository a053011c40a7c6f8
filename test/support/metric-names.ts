/** Owns the names of all metrics, read where each is declared once. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const declarations = fileURLToPath(new URL('../../src/telemetry/metrics.ts', import.meta.url));

/** Every counter, gauge and histogram of a server. */
export const metricNames = (): string[] =>
  [...readFileSync(declarations, 'utf8').matchAll(/'(trivec_[a-z_]+)'/gu)].map(([, name]) => name ?? '');
