import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { launchBrowser, needsChromium, openPage, type WatchedPage } from '../support/browser.ts';
import { curlOf, openPanel, panelOf, statusOf, submitPanel } from '../support/console-page.ts';
import { temporaryFolder } from '../support/files.ts';
import { startServed, type Served } from '../support/served.ts';
import { writeTinyModel } from '../support/tiny-models.ts';

/** More than a look of the page may take. @unit ms */
const patience = { timeout: 20_000, interval: 200 };

let browser: Browser;
let watched: WatchedPage;
let page: Page;

const columnsOfMap = async () =>
  (await panelOf(page, 'multi').locator('thead th').allTextContents()).filter((text) => text !== '');
const rowsOfMap = () => panelOf(page, 'multi').locator('tbody th').allTextContents();
const runInBash = async (command: string, environment: Readonly<Record<string, string>> = {}) => {
  const running = promisify(execFile)('bash', ['-s'], { env: { ...process.env, ...environment }, maxBuffer: 1e8 });
  running.child.stdin?.end(command);
  return (await running).stdout;
};

describe.skipIf(needsChromium.skip)(needsChromium.title('what the console tells is true'), () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  }, 60_000);
  afterAll(() => browser.close());
  beforeEach(async () => {
    watched = await openPage(browser);
    ({ page } = watched);
    return () => page.context().close();
  });

  describe('on a server', () => {
    let served: Served;
    beforeAll(async () => {
      served = await startServed({ flags: ['--executors', '1'] });
    }, 60_000);
    afterAll(() => served.end());

    /** What happens while the server does not run at all, as a machine that swaps; it goes on afterwards. */
    const whileFrozen = async (what: () => Promise<void>) => {
      process.kill(served.pid, 'SIGSTOP');
      try {
        await what();
      } finally {
        process.kill(served.pid, 'SIGCONT');
      }
    };

    it('labels each row with its token, also where punctuation has none', async () => {
      await openPanel(page, served.baseUrl, 'multi');
      const documents = 'Heat flows, by conduction.\nHeat flows by conduction';
      await submitPanel(page, 'multi', { Query: 'how, exactly?', Documents: documents });
      expect(await rowsOfMap()).toEqual(['[CLS]', 'how', ',', 'exactly', '?', '[SEP]']);
      for (const index of [0, 1]) {
        await panelOf(page, 'multi').getByRole('radio').nth(index).check();
        expect(await columnsOfMap()).toEqual(['[CLS]', 'Heat', 'flows', 'by', 'conduct', 'ion', '[SEP]']);
      }
      expect(await panelOf(page, 'multi').locator('.result > .hint').count()).toBe(0);
      expect(watched.problems).toEqual([]);
    });

    it('says that a query was cut, and numbers the rows of what was', async () => {
      await openPanel(page, served.baseUrl, 'multi');
      const told = await submitPanel(page, 'multi', { Query: 'word '.repeat(400), Documents: 'a\nb' });
      expect(told).toMatch(/^2 documents\. 262 tokens .* The query was cut\.$/);
      expect((await rowsOfMap()).slice(0, 2)).toEqual(['row 1', 'row 2']);
      expect(await columnsOfMap()).toHaveLength(3);
      expect(await panelOf(page, 'multi').locator('.result > .hint').innerText()).toContain('have numbers');
      expect(watched.problems).toEqual([]);
    });

    it(
      'says that a server which hangs does not answer, and forgets what it knew of it until it does',
      { timeout: 60_000 },
      async () => {
        await openPanel(page, served.baseUrl, 'live');
        const live = panelOf(page, 'live');
        await live.getByText('Memory of cpu:0/0').waitFor();
        await expect.poll(() => live.locator('.now').first().textContent(), patience).toMatch(/tokens\/s$/);
        await whileFrozen(async () => {
          await expect.poll(() => live.locator('.status').textContent(), patience).toBe('The server does not answer.');
          expect(await live.locator('.now').first().textContent()).toBe('–');
          expect(await live.locator('dl').textContent()).toBe('');
          await page.locator('#tab-overview').click();
          await panelOf(page, 'overview').getByText('not known').waitFor({ timeout: 15_000 });
        });
        await panelOf(page, 'overview').getByText('● ready').waitFor();
        await page.locator('#tab-live').click();
        await expect.poll(() => live.locator('.now').first().textContent(), patience).toMatch(/tokens\/s$/);
        expect(await live.locator('.status').textContent()).toBe('');
      },
    );

    it('opens with a word on a server that does not answer, and opens when it does', async () => {
      await page.route('**/rcp/info', () => undefined);
      await page.goto(served.baseUrl);
      await page.getByRole('alert').filter({ hasText: 'does not answer' }).waitFor({ timeout: 15_000 });
      await page.unroute('**/rcp/info');
      await page.getByRole('button', { name: 'Try again' }).click();
      await panelOf(page, 'overview').waitFor();
    });

    it('stops a call that nobody wants to wait for', async () => {
      await openPanel(page, served.baseUrl, 'embed');
      const stop = panelOf(page, 'embed').getByRole('button', { name: 'Stop' });
      expect(await stop.isVisible()).toBe(false);
      await whileFrozen(async () => {
        await panelOf(page, 'embed').locator('button[type=submit]').click();
        await stop.focus();
        await page.keyboard.press('Enter');
        await expect.poll(() => statusOf(page, 'embed').textContent()).toBe('Stopped.');
      });
      expect(await page.evaluate('document.activeElement.type')).toBe('submit');
      expect(await stop.isVisible()).toBe(false);
      expect(await submitPanel(page, 'embed')).toMatch(/^5 vectors/);
      expect(watched.problems).toEqual([]);
    });

    it('tells no rate of a time in which nobody looked', async () => {
      await openPanel(page, served.baseUrl, 'live');
      const now = panelOf(page, 'live').locator('.now').first();
      await expect
        .poll(async () => {
          await served.call('embed', { inputs: [`words ${Math.random()}`] });
          return now.textContent();
        }, patience)
        .toMatch(/^[1-9]/);
      await page.locator('#tab-embed').click();
      await page.route('**/metrics', () => undefined);
      await page.locator('#tab-live').click();
      expect(await now.textContent()).toBe('–');
    });

    it('works where the browser keeps nothing', async () => {
      await page.addInitScript(() => {
        for (const name of ['localStorage', 'sessionStorage']) {
          Object.defineProperty(globalThis, name, {
            get() {
              throw new DOMException('Access is denied for this document.', 'SecurityError');
            },
          });
        }
      });
      await openPanel(page, served.baseUrl, 'overview');
      const theme = page.getByRole('button', { name: /^Theme/ });
      await theme.click();
      expect(await theme.innerText()).toBe('Theme: light');
      expect(watched.problems).toEqual([]);
    });

    it('gives a command for a long text that a shell runs as it stands', async () => {
      await openPanel(page, served.baseUrl, 'sparse');
      const text = `it's ${'word '.repeat(30_000)}`;
      const told = await submitPanel(page, 'sparse', { Text: text });
      const answer = JSON.parse(await runInBash(await curlOf(page, 'sparse')));
      expect(told).toContain(`${String(answer.result.sparse[0].indices.length)} terms`);
      await page.locator('#tab-multi').click();
      await panelOf(page, 'multi').getByLabel('Documents').fill(text);
      const answers = await runInBash(await curlOf(page, 'multi'));
      expect(answers.match(/"matrices"/g)).toHaveLength(2);
    });

    it('keeps the direction of texts to themselves', async () => {
      const turning = 'a\u202eb';
      await openPanel(page, served.baseUrl, 'rerank');
      await submitPanel(page, 'rerank', { Query: turning, Passages: `${turning}\nb` });
      const line = panelOf(page, 'rerank').getByRole('listitem').filter({ hasText: turning });
      const title = await line.getAttribute('title');
      expect(title).toContain(String.raw`a\u202eb`);
      expect(await curlOf(page, 'rerank')).toContain(String.raw`"a\u202eb"`);
      await line.hover();
      await page.locator('#tab-embed').click();
      await submitPanel(page, 'embed', { Lines: `${turning}\nb` });
      await panelOf(page, 'embed').getByRole('gridcell').first().hover();
      await page.locator('#tab-multi').click();
      await submitPanel(page, 'multi', { Query: turning, Documents: turning });
      await page.locator('#tab-batch').click();
      const call = { jsonrpc: '2.0', id: turning, method: 'ping', params: { nonce: turning } };
      await submitPanel(page, 'batch', { Batch: JSON.stringify([call]) });
      const outside = await page.evaluate<string[]>(`(() => {
        const turns = /[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]/;
        const found = [];
        const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
          const { data, parentElement } = texts.currentNode;
          if (turns.test(data) && parentElement.localName !== 'bdi') found.push(parentElement.outerHTML);
        }
        for (const each of document.querySelectorAll('*')) {
          for (const { name, value } of each.attributes) if (turns.test(value)) found.push(name + '=' + value);
        }
        return found;
      })()`);
      expect(outside).toEqual([]);
      expect(await page.locator('bdi').filter({ hasText: turning }).count()).toBeGreaterThan(5);
      expect(watched.problems).toEqual([]);
    });
  });

  describe('on a server with several models', () => {
    const folder = temporaryFolder();
    const at = (name: string) => join(folder, name);
    let served: Served;
    beforeAll(async () => {
      await writeTinyModel('dense', at('tiny-dense'));
      await writeTinyModel('crossEncoder', at('tiny-judge'));
      await writeTinyModel('crossEncoderWithSigmoid', at('other-judge'));
      const rankers = ['--rerank-model', at('tiny-judge'), '--rerank-model', at('other-judge')];
      served = await startServed({ flags: ['--executors', '1', '--embed-model', at('tiny-dense'), ...rankers] });
    }, 60_000);
    afterAll(() => served.end());

    it('shows the words of the model that ran, whichever is the first one', async () => {
      await openPanel(page, served.baseUrl, 'sparse');
      await submitPanel(page, 'sparse', { Text: 'heat' });
      expect(await panelOf(page, 'sparse').locator('.text').allInnerTexts()).toContain('heat');
      await page.locator('#tab-multi').click();
      await submitPanel(page, 'multi', { Query: 'how does heat move', Documents: 'Heat flows by conduction.' });
      expect(await rowsOfMap()).toEqual(['[CLS]', 'how', 'does', 'heat', 'move', '[SEP]']);
      expect(await columnsOfMap()).toEqual(['[CLS]', 'Heat', 'flows', 'by', 'conduct', 'ion', '[SEP]']);
      expect(watched.problems).toEqual([]);
    });

    it('shows ids and numbers where no words are told', async () => {
      await page.route(/\/(decode|tokenize)$/, (route) => route.fulfill({ body: '[]' }));
      await openPanel(page, served.baseUrl, 'sparse');
      await submitPanel(page, 'sparse', { Text: 'heat' });
      expect(await panelOf(page, 'sparse').locator('.text').first().innerText()).toMatch(/^token \d+$/);
      await page.locator('#tab-multi').click();
      await submitPanel(page, 'multi');
      expect((await rowsOfMap())[0]).toBe('row 1');
      expect(await panelOf(page, 'multi').locator('.result > .hint').innerText()).toContain('have numbers');
    });

    it('lets the user choose among the models of a method', async () => {
      await openPanel(page, served.baseUrl, 'rerank');
      const form = panelOf(page, 'rerank').locator('form');
      const model = form.getByLabel('Model');
      expect(await model.locator('option').allTextContents()).toEqual(['tiny-judge', 'other-judge']);
      await model.selectOption('other-judge');
      expect(await submitPanel(page, 'rerank')).toMatch(/^4 passages by cross-encoder/);
      expect(await curlOf(page, 'rerank')).toContain('"model":"other-judge"');
      await form.getByLabel('Method').selectOption('colbert');
      expect(await model.locator('option').allTextContents()).toEqual(['all-MiniLM-L6-v2']);
      expect(await curlOf(page, 'rerank')).not.toContain('"model"');
      expect(await submitPanel(page, 'rerank')).toMatch(/^4 passages by colbert/);
      expect(watched.problems).toEqual([]);
    });
  });

  it('names the key in its commands once there is one, however late it comes', async () => {
    const key = 'open-sesame';
    const lockedServer = await startServed({ flags: ['--executors', '1'], environment: { TRIVEC_API_KEY: key } });
    try {
      // Keyless until now: what the page asks at first is answered as if it had the key.
      let isOpen = true;
      const withKey = { authorization: `Bearer ${key}` };
      await page.route(/\/(rcp\/info|metrics)$/, (route) =>
        route.continue(isOpen ? { headers: { ...route.request().headers(), ...withKey } } : {}),
      );
      await openPanel(page, lockedServer.baseUrl, 'embed');
      expect(await curlOf(page, 'embed')).not.toContain('Authorization');
      await page.locator('#tab-live').click();
      expect(await curlOf(page, 'live')).not.toContain('Authorization');
      isOpen = false;
      const dialog = page.getByRole('dialog');
      await panelOf(page, 'live').getByRole('button', { name: 'Give a key' }).click({ timeout: 15_000 });
      await dialog.getByLabel('Key', { exact: true }).fill('wrong');
      await dialog.getByRole('button', { name: 'Use this key' }).click();
      await expect.poll(() => curlOf(page, 'live')).toContain('$TRIVEC_API_KEY');
      await page.locator('#tab-embed').click();
      await panelOf(page, 'embed').locator('button[type=submit]').click();
      await dialog.getByLabel('Key', { exact: true }).fill(key);
      await dialog.getByRole('button', { name: 'Use this key' }).click();
      await panelOf(page, 'embed').getByRole('grid').waitFor();
      const answer = await runInBash(await curlOf(page, 'embed'), { TRIVEC_API_KEY: key });
      expect(JSON.parse(answer).result.vectors).toHaveLength(5);
    } finally {
      await lockedServer.end();
    }
  });

  it('names the key where a call was refused for want of one', async () => {
    const key = 'open-sesame';
    const lockedServer = await startServed({ flags: ['--executors', '1'], environment: { TRIVEC_API_KEY: key } });
    try {
      const withKey = { authorization: `Bearer ${key}` };
      await page.route('**/rcp/info', (route) =>
        route.continue({ headers: { ...route.request().headers(), ...withKey } }),
      );
      await openPanel(page, lockedServer.baseUrl, 'embed');
      await panelOf(page, 'embed').locator('button[type=submit]').click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Key', { exact: true }).fill(key);
      await dialog.getByRole('button', { name: 'Use this key' }).click();
      await panelOf(page, 'embed').getByRole('grid').waitFor();
      expect(await curlOf(page, 'embed')).toContain('$TRIVEC_API_KEY');
    } finally {
      await lockedServer.end();
    }
  });
});
