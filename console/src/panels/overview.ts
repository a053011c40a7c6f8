/** Owns the first panel: `info` as a page. */
import { planned, type Api } from '../api.ts';
import { curlView } from '../curl-view.ts';
import { element } from '../element.ts';
import type { DeviceInfo, Info, ModelInfo, TaskName } from '../info.ts';
import { bytesText } from '../lines.ts';
import type { Panel } from '../panel.ts';

/** Time between two looks at the devices while they are shown. @unit ms */
const lookEveryMs = 5000;

const tasks: readonly (readonly [TaskName, string, string])[] = [
  ['embed', 'Dense vectors', 'embed'],
  ['sparseEmbed', 'Sparse vectors', 'embed/sparse'],
  ['multiVector', 'Multi-vectors', 'embed/multi'],
  ['rerank', 'Reranking', 'rerank'],
];

const stateMarks: Readonly<Record<string, string>> = { ready: '●', starting: '◐', down: '○' };

/** Values with their names. */
function factList(facts: readonly (readonly [string, string])[]): HTMLElement {
  return element('dl', {}, ...facts.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));
}

function deviceCard({ id, name, executionProvider, precision, state, serves }: DeviceInfo): HTMLElement {
  const served = tasks.filter(([task]) => serves.includes(task)).map(([, , method]) => method);
  return element(
    'article',
    { class: 'card' },
    element(
      'div',
      { class: 'head' },
      element('h3', {}, id),
      element('span', { class: `state ${state}` }, `${stateMarks[state] ?? '?'} ${state}`),
    ),
    factList([
      ['Name', name],
      ['Provider', executionProvider],
      ['Precision', precision],
      ['Serves', served.join(', ')],
    ]),
  );
}

function modelFacts(model: ModelInfo): HTMLElement {
  return element(
    'div',
    { class: 'model' },
    element('h4', {}, model.id, model.method === undefined ? null : element('small', {}, ` by ${model.method}`)),
    factList([
      ['Identity', model.identity],
      ...(model.dimension === undefined ? [] : [['Dimension', String(model.dimension)] as const]),
      [
        'Reads',
        `${model.maxInputTokens} tokens${model.maxQueryTokens === undefined ? '' : `, ${model.maxQueryTokens} of a query`}`,
      ],
    ]),
  );
}

function taskCard(info: Info, [task, title, method]: (typeof tasks)[number]): HTMLElement | null {
  const capability = info.capabilities[task];
  if (capability === undefined) return null;
  const shown = ['batchLimit', 'maxCandidates', 'methods', 'encodings', 'normalized', 'similarity', 'vocabulary'];
  const facts = shown.flatMap((name) => {
    const value = capability[name];
    if (value === undefined) return [];
    return [[name, Array.isArray(value) ? value.join(', ') : JSON.stringify(value).replaceAll('"', '')] as const];
  });
  return element(
    'article',
    { class: 'card' },
    element('div', { class: 'head' }, element('h3', {}, title), element('code', {}, method)),
    ...info['x-trivec'].models[task].map(modelFacts),
    factList(facts),
  );
}

/** The panel; the state of the devices is looked up again while it is shown. */
export function overviewPanel(api: Api, info: Info): Panel {
  const vendor = info['x-trivec'];
  const devices = element('div', { class: 'cards' });
  const showDevices = (list: readonly DeviceInfo[]) => devices.replaceChildren(...list.map(deviceCard));
  showDevices(vendor.devices);
  const curl = curlView();
  const { batchMembers = 0, bodyBytes = 0, deadlineMs = 0 } = vendor.limits;
  const body = element(
    'section',
    {},
    element('h2', {}, `${info.server.name} ${info.server.version}`),
    element('p', { class: 'purpose' }, `Speaks RCP/${info.protocolVersion}. What it can do, and on what it runs.`),
    element('h3', { class: 'part' }, 'Devices'),
    devices,
    vendor.unusedDevices.length === 0
      ? null
      : element(
          'details',
          {},
          element('summary', {}, `Not used (${vendor.unusedDevices.length})`),
          factList(vendor.unusedDevices.map(({ id, reason }) => [id, reason])),
        ),
    element('h3', { class: 'part' }, 'Capabilities'),
    element('div', { class: 'cards wide' }, ...tasks.map((task) => taskCard(info, task))),
    element('h3', { class: 'part' }, 'Limits and options'),
    element(
      'div',
      { class: 'card' },
      factList([
        ['Calls in an array', String(batchMembers)],
        ['Body', bytesText(bodyBytes)],
        ['Deadline', `${deadlineMs / 1000} s`],
        ['Options (x-trivec)', vendor.options.join(', ')],
      ]),
    ),
    curl.view,
  );
  const showCurl = () => curl.show(api.curl(planned('info', {})));
  api.onKey(showCurl);
  let timer: ReturnType<typeof setInterval> | undefined;
  let isLooking = false;
  /** When the devices were last looked at; the first time was when the page was opened. */
  let lookedAtMs = performance.now();
  const look = async () => {
    if (document.hidden || isLooking) return;
    isLooking = true;
    lookedAtMs = performance.now();
    try {
      showDevices(((await api.look('info', {})) as Info)['x-trivec'].devices);
    } catch {
      showDevices(vendor.devices.map((device) => ({ ...device, state: 'not known' })));
    } finally {
      isLooking = false;
    }
  };
  return {
    id: 'overview',
    title: 'Overview',
    body,
    onShow() {
      showCurl();
      if (performance.now() - lookedAtMs >= lookEveryMs) void look();
      timer = setInterval(() => void look(), lookEveryMs);
    },
    onHide: () => clearInterval(timer),
  };
}
