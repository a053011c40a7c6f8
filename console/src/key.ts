/** Owns the caller's key: in memory, or for this tab where the user wants that; and the dialog that asks for it. */
import { element, freshId } from './element.ts';
import { openStorage } from './storage.ts';

const storageKey = 'trivec-api-key';

/** The key of this page. */
export interface KeyHolder {
  readonly get: () => string | null;
  /** Asks for a key; false where the user gave none. Asked twice at a time, it asks once. */
  ask(wasRefused: boolean): Promise<boolean>;
  /** Calls back whenever a key was given. */
  readonly onGiven: (listener: () => void) => void;
}

/** A holder that begins with what this tab kept. */
export function createKeyHolder(): KeyHolder {
  const storage = openStorage('session');
  const listeners: (() => void)[] = [];
  let key = storage.get(storageKey);
  let asking: Promise<boolean> | null = null;
  const ask = async (wasRefused: boolean): Promise<boolean> => {
    const given = await openDialog(wasRefused);
    if (given === null) return false;
    key = given.key;
    storage.set(storageKey, given.isKept ? key : null);
    for (const listener of listeners) listener();
    return true;
  };
  return {
    get: () => key,
    ask(wasRefused) {
      asking ??= ask(wasRefused).finally(() => {
        asking = null;
      });
      return asking;
    },
    onGiven: (listener) => void listeners.push(listener),
  };
}

/** What is wrong with a key that no header could carry; empty where nothing is. */
const problemOf = (key: string) => (/^[\x20-\x7e]*$/.test(key) ? '' : 'A key has no letters or signs beyond ASCII.');

function openDialog(wasRefused: boolean): Promise<{ key: string; isKept: boolean } | null> {
  const inputId = freshId('key');
  const titleId = freshId('key-title');
  const input = element('input', {
    id: inputId,
    type: 'password',
    autocomplete: 'off',
    required: true,
    spellcheck: 'false',
  });
  input.addEventListener('input', () => input.setCustomValidity(problemOf(input.value.trim())));
  const isKept = element('input', { type: 'checkbox' });
  const cancel = element('button', { type: 'button', class: 'quiet' }, 'Not now');
  const form = element(
    'form',
    { method: 'dialog' },
    element('h2', { id: titleId }, 'This server needs a key'),
    wasRefused ? element('p', { class: 'problem', role: 'alert' }, 'The server refused the key it was given.') : null,
    element('label', { for: inputId }, 'Key'),
    input,
    element('label', { class: 'check' }, isKept, 'Keep it for this tab'),
    element(
      'p',
      { class: 'hint' },
      'It goes to this server only, as Authorization: Bearer. Otherwise it is forgotten on reload.',
    ),
    element('div', { class: 'actions' }, element('button', { type: 'submit' }, 'Use this key'), cancel),
  );
  const dialog = element('dialog', { 'aria-labelledby': titleId }, form);
  document.body.append(dialog);
  return new Promise((resolve) => {
    let given: { key: string; isKept: boolean } | null = null;
    form.addEventListener('submit', () => {
      given = { key: input.value.trim(), isKept: isKept.checked };
    });
    cancel.addEventListener('click', () => dialog.close());
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(given);
    });
    dialog.showModal();
    input.focus();
  });
}
