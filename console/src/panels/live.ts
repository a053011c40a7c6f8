/** Owns the live panel: what the metrics say, looked up while somebody sees it. */
import { CallFailure, type Api } from '../api.ts';
import { createChart } from '../chart.ts';
import { curlView } from '../curl-view.ts';
import { element } from '../element.ts';
import type { Figures } from '../figures.ts';
import { bytesText } from '../lines.ts';
import { createLookHistory } from '../look-history.ts';
import { failureOf, type Panel } from '../panel.ts';
import { parseMetrics } from '../prometheus.ts';

const lookEveryMs = 2000;
/** Looks that the charts show: two minutes. */
const keptLooks = 61;

const path = 'metrics';

/** The panel. */
export function livePanel(api: Api): Panel {
  const newChart = (title: string, unit: string) => createChart(title, unit, keptLooks, lookEveryMs / 1000);
  const charts = {
    tokens: newChart('Tokens run', 'tokens/s'),
    calls: newChart('Calls answered', 'calls/s'),
    latency: newChart('Latency of calls, last 10 s', 'ms'),
    queue: newChart('Waiting and running', 'texts'),
    memory: newChart('Memory', 'MB'),
  };
  const facts = element('dl', { class: 'facts' });
  const status = element('p', { class: 'status', role: 'status', 'aria-live': 'polite' });
  const keyButton = element('button', { type: 'button', hidden: true }, 'Give a key');
  const curl = curlView();
  const body = element(
    'section',
    {},
    element('h2', {}, 'Live'),
    element('p', { class: 'purpose' }, 'What the server does now, from /metrics every 2 s.'),
    element('div', { class: 'actions' }, status, keyButton),
    element(
      'div',
      { class: 'cards' },
      ...Object.values(charts).map(({ view }) => view),
      element('div', { class: 'card' }, element('h3', {}, 'Now and since the start'), facts),
    ),
    curl.view,
  );

  const history = createLookHistory(keptLooks, lookEveryMs);
  let timer: ReturnType<typeof setInterval> | undefined;
  let isLooking = false;

  const draw = (figures: Figures | null) => {
    const of = (pick: (figures: Figures) => number | null) =>
      history.figures().map((each) => (each === null ? null : pick(each)));
    charts.tokens.draw([{ name: 'tokens/s', values: of((each) => each.tokensPerSecond) }]);
    charts.calls.draw([{ name: 'calls/s', values: of((each) => each.callsPerSecond) }]);
    charts.latency.draw([
      { name: 'p50', values: of((each) => each.p50Ms) },
      { name: 'p99', values: of((each) => each.p99Ms), isDashed: true },
    ]);
    charts.queue.draw([
      { name: 'running', values: of((each) => each.runningInputs) },
      { name: 'waiting', values: of((each) => each.queuedInputs), isDashed: true },
    ]);
    charts.memory.draw([
      { name: 'executors', values: of(({ executors }) => sumOfBytes(executors.map(({ bytes }) => bytes))) },
      { name: 'server', values: of(({ serverBytes }) => serverBytes / 1e6), isDashed: true },
      ...(figures?.devices ?? []).map(({ name }) => ({
        name,
        values: of(({ devices }) =>
          sumOfBytes(devices.filter((each) => each.name === name).map((each) => each.usedBytes)),
        ),
      })),
    ]);
    if (figures === null) facts.replaceChildren();
    else showFacts(facts, figures);
  };
  /** What is shown is of the past, and nobody knows what became of it. */
  const forget = () => {
    history.miss(performance.now());
    draw(null);
  };

  const look = async () => {
    if (document.hidden || isLooking) return;
    isLooking = true;
    try {
      const samples = parseMetrics(await api.read(path));
      draw(history.take({ samples, atMs: performance.now() }));
      tell('', false);
    } catch (error) {
      forget();
      const isKeyMissing = error instanceof CallFailure && error.status === 401;
      tell(isKeyMissing ? '/metrics needs a key on this server.' : failureOf(error), isKeyMissing);
    } finally {
      isLooking = false;
    }
  };
  const tell = (text: string, needsKey: boolean) => {
    if (status.textContent !== text) status.textContent = text;
    status.classList.toggle('problem', text !== '');
    keyButton.hidden = !needsKey;
  };
  keyButton.addEventListener('click', () => void api.askForKey().then(look));

  const showCurl = () => curl.show(api.curl({ path, body: null }));
  api.onKey(showCurl);
  const lookAgain = () => {
    if (document.hidden) return;
    forget();
    void look();
  };

  for (const chart of Object.values(charts)) chart.draw([]);
  return {
    id: 'live',
    title: 'Live',
    body,
    onShow() {
      showCurl();
      lookAgain();
      document.addEventListener('visibilitychange', lookAgain);
      timer = setInterval(() => void look(), lookEveryMs);
    },
    onHide() {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', lookAgain);
    },
  };
}

/** @unit MB */
const sumOfBytes = (sizes: readonly number[]) => sizes.reduce((sum, bytes) => sum + bytes, 0) / 1e6;

function showFacts(list: HTMLElement, figures: Figures): void {
  const rows: readonly (readonly [string, string])[] = [
    [
      'Queue',
      `${figures.queuedInputs} texts, ${figures.queuedTokens} tokens, ${figures.queueSeconds.toFixed(2)} s to run`,
    ],
    ['Executors ready', String(figures.executorsReady)],
    ['Executors restarted', String(figures.restarts)],
    ...figures.executors.map(({ name, bytes }) => [`Memory of ${name}`, bytesText(bytes)] as const),
    ['Memory of the server', bytesText(figures.serverBytes)],
    ...figures.devices.map(
      ({ name, usedBytes, bytes }) => [`Memory of ${name}`, `${bytesText(usedBytes)} of ${bytesText(bytes)}`] as const,
    ),
    ...(figures.refusals.length === 0
      ? [['Refusals', 'none'] as const]
      : figures.refusals.map(({ what, reason, count }) => [`Refused (${what})`, `${reason}: ${count}`] as const)),
  ];
  list.replaceChildren(...rows.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));
}
