import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { isAlive, until } from '../support/executors.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivec-tool-'));
const pidFile = join(folder, 'pid');
writeFileSync(join(folder, 'nvidia-smi'), `#!/bin/sh\necho $$ > ${pidFile}\nexec sleep 60\n`);
chmodSync(join(folder, 'nvidia-smi'), 0o755);
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const entry = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

const toolPid = () => {
  try {
    return Number(readFileSync(pidFile, 'utf8'));
  } catch {
    return 0;
  }
};

describe.skipIf(process.platform !== 'linux')('a tool that hangs', { timeout: 30_000 }, () => {
  it('goes with the command that a signal ends', async () => {
    const env = { PATH: `${folder}:/usr/bin:/bin`, HOME: folder };
    const child = spawn(process.execPath, [entry, 'devices'], { env, stdio: 'ignore' });
    await until('the tool to be asked', () => toolPid() > 0, 20_000);
    expect(isAlive(toolPid())).toBe(true);
    child.kill('SIGTERM');
    await until('the tool to be gone', () => !isAlive(toolPid()), 2_000);
    expect(child.signalCode ?? 'SIGTERM').toBe('SIGTERM');
  });
});
