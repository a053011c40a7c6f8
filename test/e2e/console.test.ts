import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { launchBrowser, needsChromium, openPage, type WatchedPage } from '../support/browser.ts';
import { startServed, type Served } from '../support/served.ts';

const key = 'open-sesame';
const panelIds = ['overview', 'embed', 'sparse', 'multi', 'rerank', 'batch', 'live'] as const;
type PanelId = (typeof panelIds)[number];

/** Most bytes until the page can be used. @unit bytes */
const maxFirstPaintBytes = 300_000;

let browser: Browser;
let served: Served;
let watched: WatchedPage;
let page: Page;

const panel = (id: PanelId): Locator => page.locator(`#panel-${id}`);

async function open(baseUrl: string, id: PanelId = 'overview'): Promise<void> {
  await page.goto(`${baseUrl}/#${id}`);
  await panel(id).waitFor();
}

/** Fills fields by their labels, sends the form, and gives what its status says. */
async function submit(id: PanelId, fields: Readonly<Record<string, string>> = {}): Promise<string> {
  const form = panel(id).locator('form');
  for (const [label, text] of Object.entries(fields)) await form.getByLabel(label).fill(text);
  await form.locator('button[type=submit]').click();
  const status = form.locator('[role=status]');
  await expect.poll(() => status.textContent()).not.toMatch(/^$|Running/);
  return (await status.textContent()) ?? '';
}

describe.skipIf(needsChromium.skip)(needsChromium.title('the console in Chromium'), () => {
  beforeAll(async () => {
    [browser, served] = await Promise.all([launchBrowser(), startServed({ flags: ['--executors', '1'] })]);
  }, 60_000);
  afterAll(async () => {
    await browser.close();
    await served.end();
  });
  beforeEach(async () => {
    watched = await openPage(browser);
    ({ page } = watched);
    return () => page.context().close();
  });

  /** What must hold after anything was done on the page. */
  const expectNoProblem = () => {
    expect(watched.problems).toEqual([]);
    expect(watched.urls.filter((url) => !url.startsWith(`${served.baseUrl}/`))).toEqual([]);
  };

  it('can be used after less than 300 KB, without an error and without a request to anybody else', async () => {
    const response = await page.goto(`${served.baseUrl}/`);
    await panel('overview').waitFor();
    expect(response?.headers()['content-security-policy']).toContain("default-src 'none'");
    expect(await watched.receivedBytes()).toBeGreaterThan(10_000);
    expect(await watched.receivedBytes()).toBeLessThan(maxFirstPaintBytes);
    expectNoProblem();
  });

  it('says what the server is and can do, as info does', async () => {
    await open(served.baseUrl);
    const text = await panel('overview').innerText();
    const info = await served.call('info');
    const vendor = info['x-trivec'] as {
      devices: { id: string; name: string }[];
      models: Record<string, { identity: string }[]>;
    };
    for (const { id, name } of vendor.devices) {
      expect(text).toContain(id);
      expect(text).toContain(name);
    }
    for (const { identity } of Object.values(vendor.models).flat()) expect(text).toContain(identity);
    expect(text).toMatch(/● ready/);
    expectNoProblem();
  });

  it('maps how alike lines are, and tells both lines and their cosine', async () => {
    await open(served.baseUrl, 'embed');
    expect(await submit('embed', { Lines: 'heat moves\nwings lift\nheat moves' })).toMatch(/^3 vectors of 384 numbers/);
    const cells = panel('embed').getByRole('gridcell');
    expect(await cells.allInnerTexts()).toEqual(expect.arrayContaining(['1.00']));
    expect(await cells.nth(2).innerText()).toBe('1.00');
    await cells.nth(1).hover();
    const readout = await panel('embed').locator('.readout').innerText();
    expect(readout).toMatch(/^cosine -?\d\.\d{4}: “heat moves” and “wings lift”$/);
    const { vectors } = await served.call<{ vectors: number[][] }>('embed', { inputs: ['heat moves', 'wings lift'] });
    const cosine = (vectors[0] ?? []).reduce((sum, value, index) => sum + value * (vectors[1]?.[index] ?? 0), 0);
    expect(Number(/cosine (\S+):/.exec(readout)?.[1])).toBeCloseTo(cosine, 3);
    expectNoProblem();
  });

  it('shows the terms of a text as words, heaviest first, and tells id and weight', async () => {
    await open(served.baseUrl, 'sparse');
    expect(await submit('sparse', { Text: 'heat' })).toMatch(/^10 terms/);
    const terms = panel('sparse').getByRole('listitem');
    expect(await terms.count()).toBe(10);
    expect(await terms.locator('.text').allInnerTexts()).toContain('heat');
    const weights = (await terms.locator('.value').allInnerTexts()).map(Number);
    expect(weights).toEqual(weights.toSorted((left, right) => right - left));
    await terms.filter({ hasText: /^heat/ }).first().hover();
    expect(await panel('sparse').locator('.readout').innerText()).toMatch(/^“heat\w*”: token \d+, weight \d\.\d{5}$/);
    expectNoProblem();
  });

  it('maps MaxSim token by token, scores as rerank does, and marks the best of each row in words too', async () => {
    await open(served.baseUrl, 'multi');
    const texts = ['a cat sat', 'heat flows by conduction'];
    expect(await submit('multi', { Query: 'how does heat move', Documents: texts.join('\n') })).toMatch(/^2 documents/);
    const rows = panel('multi').getByRole('row');
    expect(await rows.nth(4).getByRole('rowheader').innerText()).toBe('heat');
    const best = panel('multi').locator('td.marked');
    expect(await best.count()).toBe((await rows.count()) - 1);
    expect(await best.first().getAttribute('aria-label')).toMatch(/best of the row$/);
    const { scores } = await served.call<{ scores: number[] }>('rerank', {
      query: 'how does heat move',
      passages: texts,
      method: 'colbert',
    });
    const shown = (await panel('multi').getByRole('radiogroup').locator('.value').allInnerTexts()).map(Number);
    for (const [index, score] of scores.toSorted((left, right) => right - left).entries()) {
      expect(shown[index]).toBeCloseTo(score, 1);
    }
    await panel('multi').getByRole('radio').nth(1).check();
    expect(await panel('multi').getByRole('grid').getAttribute('aria-label')).toContain('a cat sat');
    expectNoProblem();
  });

  it('orders passages by their scores, and says where each stood before', async () => {
    await open(served.baseUrl, 'rerank');
    await submit('rerank', {
      Query: 'how does heat move',
      Passages: 'a cat sat\nheat flows by conduction\nwings produce lift',
    });
    const first = panel('rerank').getByRole('listitem').first();
    expect(await first.innerText()).toMatch(/heat flows by conduction\s*was 2, 1 up/);
    expectNoProblem();
  });

  it("sends the README's batch, and shows each reply beside its call", async () => {
    await open(served.baseUrl, 'batch');
    expect(await submit('batch')).toMatch(/^3 members, 2 replies/);
    expect(await panel('batch').locator('.reply h3').allInnerTexts()).toEqual(['ping · id 1', 'info · id 2']);
    await panel('batch').getByLabel('Example').selectOption('models');
    expect(await submit('batch')).toMatch(/^2 members, 2 replies/);
    expect(await panel('batch').locator('.reply h3').allInnerTexts()).toEqual(['embed · id "a"', 'rerank · id "b"']);
    await panel('batch').getByLabel('Example').selectOption('mistakes');
    await submit('batch');
    expect(await panel('batch').locator('.reply .state').allInnerTexts()).toEqual(['✕ error', '✓ result', '✕ error']);
    expectNoProblem();
  });

  it('shows the curl of the example that was chosen', async () => {
    await open(served.baseUrl, 'batch');
    await panel('batch').getByLabel('Example').selectOption('models');
    expect(await panel('batch').getByLabel('curl command').innerText()).toContain('"method":"embed"');
    expectNoProblem();
  });

  it('says that a call runs until it has ended, whatever else is done meanwhile, and keeps what came of it', async () => {
    await open(served.baseUrl, 'embed');
    let answer: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route('**/rcp/embed', async (route) => {
      await released;
      await route.continue();
    });
    const status = panel('embed').locator('form [role=status]');
    await panel('embed').locator('button[type=submit]').click();
    await page.locator('#tab-batch').click();
    await page.locator('#tab-embed').click();
    await panel('embed').locator('textarea').fill('another');
    expect(await status.innerText()).toMatch(/^Running/);
    answer();
    await expect.poll(() => status.innerText()).toMatch(/^5 vectors/);
    await page.locator('#tab-batch').click();
    await page.locator('#tab-embed').click();
    expect(await status.innerText()).toMatch(/^5 vectors/);
    expectNoProblem();
  });

  it('tells that a batch is no JSON before anything is sent', async () => {
    await open(served.baseUrl, 'batch');
    const before = watched.urls.length;
    expect(await submit('batch', { Batch: '[{"id":1},\n oops]' })).toMatch(/^Not valid JSON.*nothing is sent/);
    expect(watched.urls.slice(before)).toEqual([]);
    expectNoProblem();
  });

  it('shows what the server does now, in charts that say their values', async () => {
    await open(served.baseUrl, 'live');
    const tokens = panel('live').getByRole('img', { name: /^Tokens run: now [\d.]+ tokens\/s/ });
    await tokens.waitFor();
    await expect
      .poll(
        async () => {
          await served.call('embed', { inputs: ['some words to read'] });
          return tokens.getAttribute('aria-label');
        },
        { timeout: 15_000, interval: 200 },
      )
      .toMatch(/now [1-9][\d.]* tokens/);
    expect(await panel('live').getByRole('img').count()).toBe(5);
    expect(await panel('live').locator('dl').innerText()).toMatch(/Memory of cpu:0\/0\s+[\d.]+ MB/);
    expectNoProblem();
  });

  it('never reads the text of a user as markup', async () => {
    const hostile = '<img src=x onerror="document.title=1">';
    await open(served.baseUrl, 'embed');
    await submit('embed', { Lines: `${hostile}\n<script>document.title=1</script>` });
    await panel('embed').getByRole('gridcell').first().hover();
    await page.locator('#tab-rerank').click();
    await submit('rerank', { Query: hostile, Passages: `${hostile}\n<b>bold</b>` });
    await page.locator('#tab-multi').click();
    await submit('multi', { Query: hostile, Documents: hostile });
    await page.locator('#tab-batch').click();
    await submit('batch', {
      Batch: JSON.stringify([{ jsonrpc: '2.0', id: hostile, method: 'ping', params: { nonce: hostile } }]),
    });
    expect(await page.locator('main img, main b, main script').count()).toBe(0);
    expect(await panel('batch').locator('.reply code').innerText()).toContain('<img src=x');
    expect(await page.title()).toBe('trivec console');
    expectNoProblem();
  });

  it('gives a curl command that does the same as the panel', async () => {
    await open(served.baseUrl, 'rerank');
    await panel('rerank').getByLabel('Query').fill("what's heat");
    const command = await panel('rerank').getByLabel('curl command').innerText();
    const { stdout } = await promisify(execFile)('sh', ['-c', command]);
    expect(JSON.parse(stdout).result.scores).toHaveLength(4);
  });

  it('can be used with the keyboard alone', async () => {
    await open(served.baseUrl);
    await page.locator('#tab-overview').focus();
    await page.keyboard.press('ArrowRight');
    expect(await page.evaluate('document.activeElement.id')).toBe('tab-embed');
    expect(await page.locator('[role=tab][tabindex="0"]').count()).toBe(1);
    await page.keyboard.press('End');
    expect(await page.evaluate('document.activeElement.id')).toBe('tab-live');
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.tagName')).toBe('TEXTAREA');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('one\ntwo');
    await page.keyboard.press('Control+Enter');
    await panel('embed').getByRole('grid').waitFor();
    for (let step = 0; step < 10; step++) {
      if ((await page.evaluate('document.activeElement.getAttribute("role")')) === 'gridcell') break;
      await page.keyboard.press('Tab');
    }
    await page.keyboard.press('ArrowRight');
    expect(await panel('embed').locator('.readout').innerText()).toMatch(/“one” and “two”/);
    const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
    expect(outline).toBe('solid');
    expectNoProblem();
  });

  it('is light or dark as the system is, until the user chooses', async () => {
    const background = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
    await page.emulateMedia({ colorScheme: 'light' });
    await open(served.baseUrl);
    const light = await background();
    await page.emulateMedia({ colorScheme: 'dark' });
    const dark = await background();
    expect(dark).not.toBe(light);
    const button = page.getByRole('button', { name: /^Theme/ });
    await button.click();
    expect([await button.innerText(), await background()]).toEqual(['Theme: light', light]);
    await page.reload();
    expect(await background()).toBe(light);
    await button.click();
    await page.emulateMedia({ colorScheme: 'light' });
    expect([await button.innerText(), await background()]).toEqual(['Theme: dark', dark]);
    expectNoProblem();
  });

  it.each([360, 1440])('fits a width of %s pixels', async (width) => {
    await page.setViewportSize({ width, height: 800 });
    await open(served.baseUrl);
    for (const id of panelIds) {
      await page.locator(`#tab-${id}`).click();
      if ((await panel(id).locator('form').count()) > 0) await submit(id);
      expect([id, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([id, width]);
    }
    expectNoProblem();
  });

  it('is no wider for names and ids that are', async () => {
    const long = 'm'.repeat(300);
    await page.route('**/rcp/info', async (route) => {
      const text = await (await route.fetch()).text();
      await route.fulfill({ body: text.replaceAll(/"(id|name)":"[^"]*"/g, `"$1":"${long}"`) });
    });
    await page.route('**/metrics', async (route) => {
      const text = await (await route.fetch()).text();
      await route.fulfill({ body: `${text}\ntrivec_executor_resident_bytes{executor="${long}"} 5\n` });
    });
    await page.setViewportSize({ width: 360, height: 800 });
    await open(served.baseUrl);
    await page.locator('#tab-batch').click();
    await submit('batch', { Batch: JSON.stringify([{ jsonrpc: '2.0', id: long, method: 'ping' }]) });
    await page.locator('#tab-live').click();
    await panel('live').getByText(`Memory of ${long}`).waitFor();
    for (const id of ['overview', 'embed', 'batch', 'live'] as const) {
      await page.locator(`#tab-${id}`).click();
      expect([id, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([id, 360]);
    }
    // A look may be on its way.
    await page.unrouteAll({ behavior: 'wait' });
  });

  it('has a label for every field and a name for every button', async () => {
    await open(served.baseUrl);
    const unnamed = await page.evaluate<string[]>(
      `[...document.querySelectorAll('input, textarea, select, button')]
        .filter((field) => (field.labels?.length ?? 0) === 0 && field.textContent.trim() === '' && !field.ariaLabel)
        .map((field) => field.outerHTML)`,
    );
    expect(unnamed).toEqual([]);
  });

  describe('of a server with a key', () => {
    let locked: Served;
    beforeAll(async () => {
      locked = await startServed({
        flags: ['--executors', '1', '--multi-model', 'none'],
        environment: { TRIVEC_API_KEY: key },
      });
    }, 60_000);
    afterAll(() => locked.end());

    const giveKey = async (text: string, isKept: boolean) => {
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Key', { exact: true }).fill(text);
      if (isKept) await dialog.getByLabel('Keep it for this tab').check();
      await dialog.getByRole('button', { name: 'Use this key' }).click();
    };

    it('asks for it, says when it is refused, and forgets it on reload', async () => {
      await page.goto(locked.baseUrl);
      await giveKey('wrong', false);
      await page.getByRole('alert').filter({ hasText: 'refused' }).waitFor();
      await giveKey(key, false);
      await panel('overview').waitFor();
      expect(await panel('overview').getByLabel('curl command').innerText()).toContain('Bearer $TRIVEC_API_KEY');
      expect(await page.content()).not.toContain(key);
      expect(await page.evaluate('JSON.stringify([{...sessionStorage}, {...localStorage}])')).not.toContain(key);
      await page.reload();
      await page.getByRole('dialog').waitFor();
      // What the browser says of a 401 is no fault of the page.
      expect(watched.problems.filter((problem) => !problem.includes('401'))).toEqual([]);
    });

    it('keeps it for the tab where that is wanted, and sends it with every call, those of the metrics too', async () => {
      await page.goto(locked.baseUrl);
      await giveKey(key, true);
      await panel('overview').waitFor();
      await page.reload();
      await panel('overview').waitFor();
      await page.locator('#tab-live').click();
      await panel('live').getByText('Memory of cpu:0/0').waitFor();
      await page.locator('#tab-embed').click();
      expect(await submit('embed')).toMatch(/^5 vectors/);
      expect(await page.locator('#tab-multi').count()).toBe(0);
    });

    it('says that it needs one where the user gives none, and asks again', async () => {
      await page.goto(locked.baseUrl);
      await page.getByRole('dialog').getByRole('button', { name: 'Not now' }).click();
      await page.getByRole('alert').filter({ hasText: 'needs a key' }).waitFor();
      await page.getByRole('button', { name: 'Try again' }).click();
      await giveKey(key, false);
      await panel('overview').waitFor();
    });

    it('takes none that a header cannot carry', async () => {
      await page.goto(locked.baseUrl);
      await giveKey('ключ', true);
      const problem = await page.evaluate<string>('document.querySelector("dialog input").validationMessage');
      expect(problem).toContain('ASCII');
      await giveKey(key, true);
      await panel('overview').waitFor();
    });

    it('is not asked for by what the page does by itself', async () => {
      await page.goto(locked.baseUrl);
      await giveKey(key, false);
      await panel('overview').waitFor();
      await page.route('**/rcp/info', (route) => route.fulfill({ status: 401 }));
      await panel('overview').getByText('not known').waitFor();
      expect(await page.getByRole('dialog').count()).toBe(0);
    });

    it('says that the metrics need one, where it is taken away', async () => {
      await page.goto(locked.baseUrl);
      await giveKey(key, false);
      await panel('overview').waitFor();
      await page.route('**/metrics', (route) =>
        route.continue({ headers: { ...route.request().headers(), authorization: 'Bearer gone' } }),
      );
      await page.locator('#tab-live').click();
      await panel('live').getByText('/metrics needs a key').waitFor();
      await panel('live').getByRole('button', { name: 'Give a key' }).waitFor();
    });
  });

  it('is not there with --no-console', async () => {
    const bare = await startServed({ flags: ['--executors', '1', '--no-console'] });
    try {
      // The root itself stays: text-embeddings-inference's clients post to it.
      expect((await fetch(`${bare.baseUrl}/`)).status).toBe(405);
      expect((await bare.call('ping', { nonce: 1 }))['nonce']).toBe(1);
    } finally {
      await bare.end();
    }
  });
});
