/** Owns the commands `ping` and `info`: whether a server answers, and what it is. */
import type { Command } from 'commander';
import { shownAddress } from '../client/address.ts';
import type { Flags } from './command-settings.ts';
import { apiKeyOf } from './job-flags.ts';
import { showTable } from './model-tables.ts';
import type { ServerClient } from './server-client.ts';
import { print } from './stdout.ts';

type ServerInfo = ServerClient['info'];

async function withServer(url: string, flags: Flags, use: (client: ServerClient) => Promise<void>): Promise<void> {
  const { connectTo } = await import('./server-client.ts');
  const { telling } = await import('./failures.ts');
  await telling(async () => {
    const client = await connectTo(url, apiKeyOf(flags));
    try {
      await use(client);
    } finally {
      await client.close();
    }
  });
}

const ping = (url: string, flags: Flags): Promise<void> =>
  withServer(url, flags, async (client) => {
    const elapsedMs = await client.ping();
    const { name, version } = client.info.server;
    await print(`${name} ${version} at ${shownAddress(url)} answers in ${elapsedMs.toFixed(1)} ms`);
  });

const info = (url: string, flags: Flags): Promise<void> =>
  withServer(url, flags, async ({ info: told }) => {
    await print(flags['json'] === true ? JSON.stringify(told, null, 2) : showInfo(told, shownAddress(url)));
  });

const methods = { embed: 'dense', sparseEmbed: 'sparse', multiVector: 'multi', rerank: 'rerank' } as const;

/** What a server says of itself as text for a person. */
export function showInfo(told: ServerInfo, url: string): string {
  const { server, capabilities, protocolVersion } = told;
  const vendor = told['x-trivec'];
  const about = [
    ['server', `${server.name} ${server.version}, RCP/${String(protocolVersion)}`],
    ['address', url],
  ];
  const offered = Object.entries(methods).flatMap(([key, name]) => {
    const capability = capabilities[key as keyof typeof methods];
    if (capability === undefined) return [];
    const facts = capability as { identity?: string; dimension?: number; batchLimit?: number; maxCandidates?: number };
    const most = facts.batchLimit ?? facts.maxCandidates;
    return [[name, facts.identity ?? '-', String(facts.dimension ?? '-'), most === undefined ? '-' : String(most)]];
  });
  const devices = (vendor?.devices ?? []).map(({ id, name, precision = '-', state, serves }) => [
    id,
    name,
    precision,
    state,
    serves.join(', '),
  ]);
  return [
    showTable(about),
    '',
    showTable([['METHOD', 'IDENTITY', 'DIMENSIONS', 'MOST IN A CALL'], ...offered]),
    ...(devices.length === 0 ? [] : ['', showTable([['DEVICE', 'NAME', 'PRECISION', 'STATE', 'SERVES'], ...devices])]),
  ].join('\n');
}

/** Adds `ping` and `info`. */
export function addServerCommands(program: Command): void {
  program
    .command('ping')
    .description('ask a server whether it answers; exit code 1 where it does not')
    .argument('<url>', 'its address, such as http://127.0.0.1:8000')
    .option('--api-key <text>', 'key of the server (default: TRIVEC_API_KEY)')
    .action(ping);
  program
    .command('info')
    .description('say what a server offers: methods, models, limits, devices')
    .argument('<url>', 'its address, such as http://127.0.0.1:8000')
    .option('--api-key <text>', 'key of the server (default: TRIVEC_API_KEY)')
    .option('--json', 'print what it answered as JSON')
    .action(info);
}
