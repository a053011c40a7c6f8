/** Owns the tabs: one in the order of the keyboard, arrows between them, the address names the one that is shown. */
import { element } from './element.ts';
import type { Panel } from './panel.ts';

/** The tab list and its panels; each panel is told when it is shown and when it is not. */
export function createTabs(panels: readonly Panel[]): { readonly list: HTMLElement; readonly main: HTMLElement } {
  const list = element('div', { role: 'tablist', 'aria-label': 'Console' });
  const main = element('main');
  const tabs = panels.map(({ id, title }) =>
    element('button', { type: 'button', role: 'tab', id: `tab-${id}`, 'aria-controls': `panel-${id}` }, title),
  );
  const bodies = panels.map(({ id, body }) => {
    body.id = `panel-${id}`;
    body.setAttribute('role', 'tabpanel');
    body.setAttribute('aria-labelledby', `tab-${id}`);
    return body;
  });
  let shown = -1;
  const show = (index: number) => {
    if (index === shown) return;
    panels[shown]?.onHide?.();
    shown = index;
    for (const [other, tab] of tabs.entries()) {
      tab.setAttribute('aria-selected', String(other === index));
      tab.tabIndex = other === index ? 0 : -1;
    }
    for (const [other, body] of bodies.entries()) body.hidden = other !== index;
    tabs[index]?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    panels[index]?.onShow?.();
  };
  const fromAddress = () =>
    Math.max(
      0,
      panels.findIndex(({ id }) => `#${id}` === location.hash),
    );
  const choose = (index: number) => {
    history.replaceState(null, '', `#${panels[index]?.id ?? ''}`);
    show(index);
  };
  for (const [index, tab] of tabs.entries()) tab.addEventListener('click', () => choose(index));
  list.addEventListener('keydown', (event) => {
    const last = tabs.length - 1;
    const targets: Readonly<Record<string, number>> = {
      ArrowRight: shown === last ? 0 : shown + 1,
      ArrowLeft: shown === 0 ? last : shown - 1,
      Home: 0,
      End: last,
    };
    // Those are the browser's, such as Alt and left for the page before.
    const target = event.altKey || event.ctrlKey || event.metaKey ? undefined : targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    choose(target);
    tabs[target]?.focus();
  });
  addEventListener('hashchange', () => show(fromAddress()));
  list.append(...tabs);
  main.append(...bodies);
  queueMicrotask(() => show(fromAddress()));
  return { list, main };
}
