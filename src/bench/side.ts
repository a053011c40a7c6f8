/** Owns one server under test: reached or started, asked what callers must know, and given up in the end. */
import { createHttpClient } from './http-client.ts';
import type { HttpClient } from './http-client.ts';
import type { BenchPlan, SidePlan, TargetName } from './plan.ts';
import { createSend } from './send.ts';
import type { Send } from './send.ts';
import { startServer } from './serve-child.ts';
import { readSample } from './server-metrics.ts';
import type { MetricsSample } from './server-metrics.ts';
import type { Target } from './target.ts';
import { openaiTarget } from './targets/openai.ts';
import { rcpTarget } from './targets/rcp.ts';
import { teiTarget } from './targets/tei.ts';

const targets: Readonly<Record<TargetName, Target>> = { rcp: rcpTarget, tei: teiTarget, openai: openaiTarget };

/** What ends a benchmark for a reason that is not in its flags, in words for a person. */
export class BenchFailure extends Error {
  override readonly name = 'BenchFailure';
}

/** Which of the servers. */
export type SideName = 'A' | 'B';

/** A server that can be asked. */
export interface Side {
  readonly name: SideName;
  /** What it is, for a person. */
  readonly label: string;
  readonly send: Send;
  /** Its process; null where nobody said. */
  readonly pid: number | null;
  /** What it counts about its runs; null where it does not. */
  sample(): Promise<MetricsSample | null>;
  end(): Promise<void>;
}

/** What starting a server takes. */
export interface SideContext {
  /** The compiled program. */
  readonly entry: string;
  /** The compiled entry that runs it and ends it with this process. */
  readonly launcher: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

const keyVariable = 'TRIVEC_API_KEY';

/**
 * Reaches or starts the server of a plan.
 * @throws BenchFailure where it cannot be used; ConfigurationError where a server refuses its flags
 */
export async function openSide(name: SideName, side: SidePlan, plan: BenchPlan, context: SideContext): Promise<Side> {
  const { server, apiKey } = side;
  if (server.kind === 'running') return reach(name, side, plan, { ...server, end: async () => undefined });
  // A key in the environment would be asked of callers: the server gets the benchmark's or none.
  const variables = { ...context.variables, [keyVariable]: apiKey ?? undefined };
  const deadline = ['--deadline-ms', String(plan.requestTimeoutMs)];
  const child = await startServer({ ...context, variables, flags: [...deadline, ...server.flags] }).catch(fail(name));
  try {
    return await reach(name, side, plan, child);
  } catch (error) {
    await child.end();
    throw error;
  }
}

const fail = (name: SideName) => (error: unknown) => {
  // The faults of a configuration keep their own exit code.
  if (error instanceof Error && error.name !== 'Error') throw error;
  throw new BenchFailure(`${name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
};

async function reach(
  name: SideName,
  { server, target: targetName, model, apiKey }: SidePlan,
  plan: BenchPlan,
  place: { readonly url: string; readonly pid: number | null; end(): Promise<void> },
): Promise<Side> {
  const target = targets[targetName];
  const { pathname } = new URL(place.url);
  const path = pathname === '/' ? target.path : pathname;
  const client = createHttpClient(place.url, {
    maxConnections: plan.callers + plan.maxInFlight,
    timeoutMs: plan.requestTimeoutMs,
    headers: apiKey === null ? {} : { authorization: `Bearer ${apiKey}` },
  });
  try {
    const settings = await target.settle(client, path, model);
    const hasMetrics = targetName === 'rcp' && (await sampleOf(client)) !== null;
    const where =
      server.kind === 'running' ? server.url : ['started here:', 'serve', ...hideKeys(server.flags)].join(' ');
    return {
      name,
      label: `${targetName}, ${where}${settings.model === null ? '' : `, model ${settings.model}`}`,
      send: createSend(client, target, path, settings),
      pid: place.pid,
      sample: async () => (hasMetrics ? sampleOf(client) : null),
      end() {
        client.close();
        return place.end();
      },
    };
  } catch (error) {
    client.close();
    throw new BenchFailure(`${name}: ${place.url} cannot be used: ${(error as Error).message}`, { cause: error });
  }
}

async function sampleOf(client: HttpClient): Promise<MetricsSample | null> {
  try {
    const { status, body } = await client.get('/metrics');
    return status === 200 ? readSample(body.toString()) : null;
  } catch {
    return null;
  }
}

/** Words of a command line without the keys among them. */
export function hideKeys(words: readonly string[]): string[] {
  return words.map((word, index) => {
    if (/^--(compare-)?api-key$/u.test(words[index - 1] ?? '')) return '(hidden)';
    return word.replace(/(--(?:compare-)?api-key[= ]).+/u, '$1(hidden)');
  });
}
