/** Owns what a panel is, and the frame that those share which make a call: a form, its state, its result, its curl. */
import { CallFailure, type Api, type PlannedCall } from './api.ts';
import { curlView } from './curl-view.ts';
import { element } from './element.ts';

/** One page of the console. */
export interface Panel {
  readonly id: string;
  readonly title: string;
  readonly body: HTMLElement;
  readonly onShow?: () => void;
  readonly onHide?: () => void;
}

/** What makes a panel of a form. */
export interface CallPanelParts {
  readonly id: string;
  readonly title: string;
  /** One sentence: what the method gives. */
  readonly purpose: string;
  readonly fields: readonly HTMLElement[];
  readonly action: string;
  /** The calls that the form stands for now, or what is wrong with the form. */
  readonly plan: () => { readonly calls: readonly PlannedCall[] } | { readonly problem: string };
  /** Makes the call, until it is stopped; the sentence says what came of it. */
  readonly run: (result: HTMLElement, stop: AbortSignal) => Promise<string>;
}

/** What went wrong, for the user. */
export const failureOf = (error: unknown): string =>
  error instanceof CallFailure ? error.message : 'The answer could not be read.';

/** A panel with a form; Ctrl+Enter in any field sends it, and what runs can be stopped, however long it takes. */
export function createCallPanel(api: Api, parts: CallPanelParts): Panel {
  const { id, title, purpose, fields, action, plan, run } = parts;
  const button = element('button', { type: 'submit' }, action);
  const stopButton = element('button', { type: 'button', class: 'quiet', hidden: true }, 'Stop');
  const status = element('p', { class: 'status', role: 'status', 'aria-live': 'polite' });
  const result = element('div', { class: 'result' });
  const curl = curlView();
  const actions = element('div', { class: 'actions' }, button, stopButton, status);
  const form = element('form', { class: 'card' }, ...fields, actions);
  let running: AbortController | null = null;

  const showCurl = () => {
    const form = plan();
    if ('calls' in form) curl.show(form.calls.map(api.curl).join('\n'));
    return form;
  };
  const showPlan = (): boolean => {
    const form = showCurl();
    const isPossible = 'calls' in form;
    // What runs is told until it has ended, whatever is typed meanwhile.
    if (running !== null) return isPossible;
    status.textContent = isPossible ? '' : form.problem;
    status.classList.toggle('problem', !isPossible);
    return isPossible;
  };
  const submit = async () => {
    if (running !== null || !showPlan()) return;
    const { signal } = (running = new AbortController());
    button.setAttribute('aria-disabled', 'true');
    stopButton.hidden = false;
    status.textContent = 'Running …';
    try {
      status.textContent = await run(result, signal);
    } catch (error) {
      status.textContent = failureOf(error);
      status.classList.toggle('problem', !signal.aborted);
    } finally {
      running = null;
      button.removeAttribute('aria-disabled');
      if (document.activeElement === stopButton) button.focus();
      stopButton.hidden = true;
    }
  };
  stopButton.addEventListener('click', () => running?.abort());
  api.onKey(showCurl);
  form.noValidate = true;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void submit();
  });
  form.addEventListener('input', showPlan);
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void submit();
  });
  const body = element(
    'section',
    {},
    element('h2', {}, title),
    element('p', { class: 'purpose' }, purpose),
    form,
    result,
    curl.view,
  );
  // Whoever comes back finds what was told of the last call.
  return { id, title, body, onShow: showCurl };
}
