/** Owns a browser for tests of the console: Debian's Chromium, and a page that keeps what went wrong on it. */
import { existsSync } from 'node:fs';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { requirement } from './require.ts';

const executablePath = '/usr/bin/chromium';

/** Whether there is a browser. */
export const needsChromium = requirement('chromium', existsSync(executablePath), `no ${executablePath}`);

/** A browser without a window. */
export const launchBrowser = (): Promise<Browser> => chromium.launch({ executablePath, args: ['--no-sandbox'] });

/** A page, and what it did. */
export interface WatchedPage {
  readonly page: Page;
  /** Errors and warnings of scripts, of the content policy and of loading. */
  readonly problems: string[];
  /** Every address that was asked for; those of `data:` are not. */
  readonly urls: string[];
  /** What came back until now. @unit bytes */
  receivedBytes(): Promise<number>;
}

/** An empty page in a context of its own. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const problems: string[] = [];
  const urls: string[] = [];
  const sizes: Promise<number>[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith('data:')) urls.push(request.url());
  });
  page.on('requestfinished', (request) => {
    const size = request
      .sizes()
      .then(({ responseBodySize, responseHeadersSize }) => responseBodySize + responseHeadersSize);
    sizes.push(size.catch(() => 0));
  });
  return {
    page,
    problems,
    urls,
    receivedBytes: async () => (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0),
  };
}
