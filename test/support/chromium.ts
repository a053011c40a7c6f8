/** Owns the browser that tests drive: Debian's Chromium, where it is installed. */
import { existsSync } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';
import { requirement } from './require.ts';

const executablePath = '/usr/bin/chromium';

/** Whether there is a browser; demanded as `chromium`. */
export const needsChromium = requirement('chromium', existsSync(executablePath), `no ${executablePath}`);

/** A browser without a window. */
export const launchChromium = (): Promise<Browser> =>
  chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
