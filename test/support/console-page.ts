/** Owns what tests do on a page of the console: open a panel, fill its form and send it. */
import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';

/** A panel that takes calls. */
export type CallPanelId = 'embed' | 'sparse' | 'multi' | 'rerank' | 'batch';

/** A panel of the page. */
export const panelOf = (page: Page, id: CallPanelId | 'overview' | 'live'): Locator => page.locator(`#panel-${id}`);

/** What the form of a panel says of its call. */
export const statusOf = (page: Page, id: CallPanelId): Locator => panelOf(page, id).locator('form [role=status]');

/** The command of a panel. */
export const curlOf = async (page: Page, id: CallPanelId | 'live'): Promise<string> =>
  (await panelOf(page, id).getByLabel('curl command').textContent()) ?? '';

/** Opens the page with a panel. */
export async function openPanel(page: Page, baseUrl: string, id: CallPanelId | 'overview' | 'live'): Promise<void> {
  await page.goto(`${baseUrl}/#${id}`);
  await panelOf(page, id).waitFor();
}

/** Fills fields by their labels, sends the form, and gives what its status says when the call has ended. */
export async function submitPanel(
  page: Page,
  id: CallPanelId,
  fields: Readonly<Record<string, string>> = {},
): Promise<string> {
  const form = panelOf(page, id).locator('form');
  for (const [label, text] of Object.entries(fields)) await form.getByLabel(label).fill(text);
  await form.locator('button[type=submit]').click();
  await expect.poll(() => statusOf(page, id).textContent(), { timeout: 15_000 }).not.toMatch(/^$|Running/);
  return (await statusOf(page, id).textContent()) ?? '';
}
