/** Owns the page: asks the server what it is, and makes of the answer the panels that it can serve. */
import './style.css';
import { createApi, type Api } from './api.ts';
import { element } from './element.ts';
import type { Info } from './info.ts';
import { createKeyHolder } from './key.ts';
import { failureOf, type Panel } from './panel.ts';
import { batchPanel } from './panels/batch.ts';
import { embedPanel } from './panels/embed.ts';
import { livePanel } from './panels/live.ts';
import { multiPanel } from './panels/multi.ts';
import { overviewPanel } from './panels/overview.ts';
import { rerankPanel } from './panels/rerank.ts';
import { sparsePanel } from './panels/sparse.ts';
import { createTabs } from './tabs.ts';
import { themeButton } from './theme.ts';

function panelsOf(api: Api, info: Info): Panel[] {
  const { capabilities } = info;
  return [
    overviewPanel(api, info),
    ...(capabilities.embed ? [embedPanel(api, info)] : []),
    ...(capabilities.sparseEmbed ? [sparsePanel(api, info)] : []),
    ...(capabilities.multiVector ? [multiPanel(api, info)] : []),
    ...(capabilities.rerank ? [rerankPanel(api, info)] : []),
    batchPanel(api, info),
    livePanel(api),
  ];
}

const api = createApi(createKeyHolder());
const header = element('header', {}, element('h1', {}, 'trivec'), element('span', { class: 'version' }), themeButton());
const content = element('div', { class: 'content' });
document.body.append(header, content);

async function open(): Promise<void> {
  content.replaceChildren(element('p', { class: 'hint', role: 'status' }, 'Asking the server what it can do …'));
  try {
    const info = (await api.call('info', {})) as Info;
    const version = header.querySelector('.version');
    if (version !== null) version.textContent = info.server.version;
    const { list, main } = createTabs(panelsOf(api, info));
    content.replaceChildren(element('nav', {}, list), main);
  } catch (error) {
    const again = element('button', { type: 'button' }, 'Try again');
    again.addEventListener('click', () => void open());
    content.replaceChildren(
      element(
        'section',
        { class: 'card lost' },
        element('p', { class: 'problem', role: 'alert' }, failureOf(error)),
        again,
      ),
    );
  }
}

void open();
