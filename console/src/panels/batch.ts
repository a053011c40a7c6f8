/** Owns the panel for several calls in one array. */
import type { Api } from '../api.ts';
import { checkBatch, pairReplies } from '../batch-text.ts';
import { element } from '../element.ts';
import { choiceField, inRow, textField } from '../fields.ts';
import type { Info } from '../info.ts';
import { createCallPanel, type Panel } from '../panel.ts';
import { isolated } from '../quoted.ts';
import { withoutTurns } from '../turns.ts';

const ping = { jsonrpc: '2.0', id: 1, method: 'ping', params: { nonce: 1 } };
const cancel = { jsonrpc: '2.0', method: 'notifications/cancel', params: { id: 9 } };
const examples: Readonly<Record<string, readonly unknown[]>> = {
  control: [ping, cancel, { jsonrpc: '2.0', id: 2, method: 'info', params: {} }],
  models: [
    { jsonrpc: '2.0', id: 'a', method: 'embed', params: { inputs: ['heat moves through a plate'], kind: 'query' } },
    {
      jsonrpc: '2.0',
      id: 'b',
      method: 'rerank',
      params: { query: 'how does heat move', passages: ['a cat sat', 'heat flows by conduction'] },
    },
  ],
  mistakes: [
    1,
    { jsonrpc: '2.0', id: 9, method: 'ping' },
    { jsonrpc: '2.0', id: 10, method: 'embed', params: { inputs: 'text' } },
  ],
};

/** One member a line: short to read, and still an array. */
const batchText = (members: readonly unknown[]) =>
  `[\n${members.map((member) => `  ${JSON.stringify(member)}`).join(',\n')}\n]`;

/** Longest text of a reply that is shown. @unit characters */
const maxShown = 20_000;
const replyText = (reply: unknown) => {
  const text = withoutTurns(JSON.stringify(reply, null, 2));
  return text.length <= maxShown ? text : `${text.slice(0, maxShown)}\n… ${text.length - maxShown} more characters`;
};

/** The panel. */
export function batchPanel(api: Api, info: Info): Panel {
  const choice = choiceField('Example', [
    ['control', 'ping, a notification, info'],
    ['models', 'embed and rerank'],
    ['mistakes', 'with mistakes in it'],
  ]);
  const text = textField('Batch', batchText(examples['control'] ?? []), 9, 'a JSON array of calls');
  text.input.classList.add('code');
  // Before the form hears of it, and plans with the text.
  choice.input.addEventListener('input', () => {
    text.input.value = batchText(examples[choice.input.value] ?? []);
  });
  const maxMembers = info['x-trivec'].limits['batchMembers'] ?? Infinity;
  return createCallPanel(api, {
    id: 'batch',
    title: 'Batch',
    purpose:
      'Several calls in one array: a reply for each that has an id, none for a notification, and no mistake stops another call.',
    fields: [inRow(choice), text.view],
    action: 'Send',
    plan() {
      const check = checkBatch(text.input.value);
      if ('problem' in check) return check;
      const { length } = check.members;
      if (length > maxMembers) return { problem: `The server takes ${maxMembers} calls at most, these are ${length}.` };
      // One line for the shell; a line break inside a text of JSON is written as \n already.
      return { calls: [{ path: 'rcp', body: text.input.value.replaceAll(/\s*\n\s*/g, '') }] };
    },
    async run(result, stop) {
      const check = checkBatch(text.input.value);
      if ('problem' in check) return check.problem;
      const startMs = performance.now();
      const answer = await api.post('rcp', text.input.value, stop);
      const tookMs = Math.round(performance.now() - startMs);
      const parsed: unknown = answer === '' ? [] : JSON.parse(answer);
      const replies = Array.isArray(parsed) ? (parsed as unknown[]) : [parsed];
      const cards = pairReplies(check.members, replies).map(({ method, id, isError, reply }) =>
        element(
          'article',
          { class: 'card reply' },
          element(
            'div',
            { class: 'head' },
            element(
              'h3',
              {},
              isolated(method ?? 'no call of this id'),
              ' · id ',
              isolated(withoutTurns(JSON.stringify(id))),
            ),
            element('span', { class: isError ? 'state down' : 'state ready' }, isError ? '✕ error' : '✓ result'),
          ),
          element('pre', { tabindex: '0', 'aria-label': 'Reply' }, element('code', {}, replyText(reply))),
        ),
      );
      result.replaceChildren(...cards);
      return `${check.members.length} members, ${replies.length} replies in ${tookMs} ms.`;
    },
  });
}
